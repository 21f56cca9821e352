"""Garbage of a history that is done with goes before the next one."""

import gc
import weakref

from uncollected import uncollected

from upheld import garbage


class Cycle:
    """Something that keeps itself, as a history does by its views."""

    def __init__(self) -> None:
        self.itself = self


def test_a_cycle_that_is_done_with_is_forgotten() -> None:
    """Counting references alone frees none."""
    kept = Cycle()
    alive = weakref.ref(kept)
    with uncollected():
        del kept

        assert alive()
        garbage.forget_ended()
        assert alive() is None


def test_what_lives_on_is_not_looked_at_again() -> None:
    """It costs its collection once, however many histories follow."""
    with uncollected():
        kept = Cycle()
        garbage.forget_ended()

        assert any(each is kept for each in gc.get_objects(generation=garbage.YOUNG + 1))
