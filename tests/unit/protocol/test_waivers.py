"""How long a known failure counts, and which lines of their file are refused."""

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.errors import UsageProblem
from upheld.protocol.waivers import Waiver, demand_comparable, numbers, read

LINK = "https://example.org/1?a=b&c=d"
UNTIL = date(2026, 12, 24)


def read_back(tmp_path: Path, text: str) -> dict[str, Waiver]:
    """Return the waivers of a file with this text."""
    file = tmp_path / "known"
    file.write_text(text)
    return read(file, called="it")


@pytest.mark.parametrize(
    ("line", "waiver"),
    [
        (f"G22.x, slow, and old, {LINK}", Waiver("slow, and old", LINK)),
        (f"G22.x, a=b, {LINK}", Waiver("a=b", LINK)),
        ("G22.x, slow, issue=7", Waiver("slow", "issue=7")),
        (f"G22.x, slow, {LINK}, owner=ann", Waiver("slow", LINK, "ann")),
        (
            f"G22.x, slow, and old, {LINK}, fixed_in = v1.4, until = 2026-12-24 , owner=ann b.",
            Waiver("slow, and old", LINK, "ann b.", UNTIL, "v1.4"),
        ),
    ],
)
def test_a_line_is_read_with_its_columns(tmp_path: Path, line: str, waiver: Waiver) -> None:
    """Columns may have any order; a line without them means what it always meant."""
    assert read_back(tmp_path, f"# known\n\n{line}\n") == {"G22.x": waiver}


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("until=2026-13-01", "until='2026-13-01' is no date, as in until=2026-12-31."),
        ("until=20261224", "until='20261224' is no date, as in until=2026-12-31."),
        ("until=2026-W52-4", "until='2026-W52-4' is no date, as in until=2026-12-31."),
        ("until=", "until='' is no date, as in until=2026-12-31."),
        ("until=tomorrow", "until='tomorrow' is no date, as in until=2026-12-31."),
        ("owner=", "owner= names nobody."),
        ("fixed_in=soon", "fixed_in='soon' begins with no number, as in fixed_in=1.4.2."),
        ("fixed_in=", "fixed_in='' begins with no number, as in fixed_in=1.4.2."),
        (
            "untill=2026-12-24",
            "there is no column untill=; there are owner, until, fixed_in. Did you mean until?",
        ),
        ("x=1", "there is no column x=; there are owner, until, fixed_in."),
        ("owner=ann, owner=ben", "owner= is given twice."),
    ],
)
def test_a_column_that_says_nothing_is_refused(tmp_path: Path, columns: str, says: str) -> None:
    """One sentence names file, line and column."""
    with pytest.raises(UsageProblem) as refused:
        read_back(tmp_path, f"G1.x, slow, {LINK}\nG2.x, slow, {LINK}, {columns}\n")

    assert str(refused.value) == f"{tmp_path / 'known'}, line 2: {says}"


@pytest.mark.parametrize("line", ["G1.x, slow, owner=ann", "G1.x, slow", "G1.x", ", slow, link"])
def test_a_line_without_reason_or_link_is_refused(tmp_path: Path, line: str) -> None:
    """A column is no link."""
    with pytest.raises(UsageProblem, match="line 1: expected “id, reason, link”, this is "):
        read_back(tmp_path, line)


@pytest.mark.parametrize(
    ("waiver", "lapsed"),
    [
        (Waiver("slow", LINK), ""),
        (Waiver("slow", LINK, until=date(2026, 12, 25)), ""),
        (Waiver("slow", LINK, until=UNTIL), "a known failure until 2026-12-24 alone"),
        (Waiver("slow", LINK, fixed_in="1.10"), ""),
        (Waiver("slow", LINK, fixed_in="1.9.0"), "a known failure that version 1.9.0 was to mend"),
        (Waiver("slow", LINK, fixed_in="v1.8"), "a known failure that version v1.8 was to mend"),
    ],
)
def test_a_waiver_ends_on_its_date_and_with_its_version(waiver: Waiver, lapsed: str) -> None:
    """From that date or that version on it does not count."""
    said = waiver.lapsed(UNTIL, "1.9-SNAPSHOT")

    assert said == (f"{lapsed}: {waiver}" if lapsed else "")


def test_a_waiver_is_said_with_its_columns() -> None:
    """A person reads who follows it, and how long it counts."""
    waiver = Waiver("slow", LINK, "ann", UNTIL, "2")

    assert str(waiver) == f"slow {LINK} (owner ann, until 2026-12-24, fixed in 2)"
    assert str(Waiver("slow", LINK)) == f"slow {LINK}"
    assert (waiver.days_left(date(2026, 12, 20)), Waiver("slow", LINK).days_left(UNTIL)) == (
        4,
        None,
    )


@given(st.lists(st.integers(0, 99), min_size=1, max_size=4))
def test_numbers_of_a_version_are_in_the_order_of_versions(parts: list[int]) -> None:
    """A later part is greater, a zero at the end is nothing, and words are nothing."""
    text = ".".join(map(str, parts))

    assert numbers(f"v{text}.0-rc1") == numbers(text)
    assert numbers(text) < numbers(f"{text}.1")
    assert numbers(text) < numbers(f"{parts[0] + 1}")


def test_a_version_without_a_number_ends_no_waiver() -> None:
    """Nobody could say whether the design is before or after it."""
    known = {"G1.x": Waiver("slow", LINK), "G2.x": Waiver("slow", LINK, fixed_in="2.0")}

    demand_comparable(known, "1", called="design.toml")
    with pytest.raises(UsageProblem) as refused:
        demand_comparable(known, "main-ab12", called="design.toml")
    assert str(refused.value) == (
        "design.toml: the known failure G2.x has fixed_in=2.0, and `version` is 'main-ab12', which "
        "begins with no number to compare it with."
    )
