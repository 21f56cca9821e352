"""The work of containers is a run's own."""

from upheld.supervisor.kin import Kin
from upheld.supervisor.stat import Stat


def row(parent: int, seconds: float, born_ticks: int = 1) -> Stat:
    """Return a process that has taken so many CPU-seconds."""
    return Stat("S", parent, 1, born_ticks, seconds)


def test_what_a_container_took_counts_when_it_has_ended() -> None:
    """Its children count with it, as they were seen last."""
    kin = Kin()
    running = {7: row(1, 2.0), 8: row(7, 1.0), 9: row(1, 50.0)}

    assert kin.look(running, [7]) == 3.0
    assert kin.look({9: row(1, 60.0)}) == 3.0


def test_a_stranger_with_the_same_id_is_none_of_it() -> None:
    """The kernel gives a number again; two containers count both."""
    kin = Kin()
    kin.look({7: row(1, 2.0)}, [7])

    assert kin.look({7: row(1, 9.0, born_ticks=5)}) == 2.0
    assert kin.look({7: row(1, 9.0, born_ticks=5)}, [7]) == 11.0


def test_a_container_that_is_not_there_counts_nothing() -> None:
    """It ended before it was looked at."""
    assert Kin().look({9: row(1, 50.0)}, [7, 0]) == 0.0
