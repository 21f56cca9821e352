"""A time in which nothing changes is measured."""

from upheld.trial.stillness import Stillness


def test_the_time_begins_anew_with_each_change() -> None:
    """The first look is one, too."""
    times_ms = iter([0, 100, 300, 400, 450, 900])
    stillness = Stillness(lambda: next(times_ms))

    assert [stillness.look(seen) for seen in "aabbb"] == [0, 200, 0, 50, 500]
