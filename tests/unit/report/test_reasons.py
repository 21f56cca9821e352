"""The reasons of unsupported rows are said once, with their rows."""

from upheld.report import RowResult
from upheld.report.reasons import undeclared, unsupported
from upheld.verdicts import Reason, Verdict


def row(name: str, reason: str, code: Reason = Reason.NOT_OFFERED) -> RowResult:
    """Return an unsupported row; an upheld one if it has no reason."""
    return RowResult(
        design="d",
        id=name,
        guarantee="G1",
        name="n",
        verdict=Verdict.UNSUPPORTED if reason else Verdict.UPHELD,
        code=code if reason else None,
        reason=reason,
        seconds=1,
    )


def test_a_reason_is_said_once_with_the_first_rows() -> None:
    """The rows of one reason are counted from the fourth on, each once."""
    rows = [row(f"G1.{name}", "no \x1b redis") for name in "abcdea"] + [row("G1.f", "")]

    assert list(unsupported(rows)) == [
        "unsupported, since no \\x1b redis: G1.a, G1.b, G1.c and 2 others"
    ]


def test_what_no_manifest_declares_is_said_to_strict() -> None:
    """A capability and a limit are declared; the machine and a surprise are not."""
    rows = [
        row(f"G1.{code}", code, code)
        for code in Reason
        if code in (Reason.NOT_OFFERED, Reason.CANNOT, Reason.UNDECLARED, Reason.MACHINE_LACKS)
    ]

    assert [said.rpartition(" ")[2] for said in undeclared(rows)] == [
        "G1.undeclared",
        "G1.machine-lacks",
    ]
