"""The oracle `itself` is counted beside the models of programs."""

from itself import Cell, Kill, known, table

from upheld.verdicts import Verdict


def test_the_kills_of_models_are_known() -> None:
    """Every kind of fault has kills in both shapes, but for torn outputs of a relay."""
    found = {(kill.shape, kill.kind) for kill in known()}

    assert found >= {("fold", kind) for kind in ("loss", "duplicate", "torn", "not restored")} | {
        ("map", kind) for kind in ("loss", "duplicate", "order")
    }


def test_what_is_caught_is_counted_by_shape_and_kind() -> None:
    """A row that cannot be judged is not caught; one that was not judged is left out."""
    kills = [Kill("d", row, "map", "loss") for row in "abcd"] + [Kill("d", "e", "fold", "torn")]
    verdicts = {
        ("d", "a"): Verdict.VIOLATED,
        ("d", "b"): Verdict.UPHELD,
        ("d", "c"): Verdict.UNSUPPORTED,
        ("d", "e"): Verdict.VIOLATED,
    }

    assert table(kills, verdicts) == {
        ("fold", "torn"): Cell(1, 1, 0),
        ("map", "loss"): Cell(3, 1, 1),
    }
