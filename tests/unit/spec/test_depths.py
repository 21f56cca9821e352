import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.errors import UsageProblem
from upheld.spec.depths import DEPTHS, Share, depth_of, is_within, share_of


@pytest.mark.parametrize(
    ("tags", "depth"),
    [
        (["@quick", "@wire"], "quick"),
        (["@core"], "core"),
        (["@full"], "full"),
        (["@wire"], "full"),
        ([], "full"),
    ],
)
def test_a_row_has_the_depth_of_its_tag(tags: list[str], depth: str) -> None:
    """A row that nobody gave a depth is judged at full depth alone."""
    assert depth_of(tags) == depth


def test_each_depth_holds_those_before_it() -> None:
    """Quick rows are judged at every depth, full ones at full depth alone."""
    held = {asked: [depth for depth in DEPTHS if is_within(depth, asked)] for asked in DEPTHS}

    assert held == {
        "quick": ["quick"],
        "core": ["quick", "core"],
        "full": ["quick", "core", "full"],
    }


@given(st.sets(st.text(min_size=1), max_size=50), st.integers(1, 12))
def test_the_shares_are_a_partition(rows: set[str], count: int) -> None:
    """Each row is in one of the N shares."""
    shares = [Share(number, count) for number in range(1, count + 1)]

    assert all(sum(share.holds(row) for share in shares) == 1 for row in rows)


def test_a_share_is_the_same_for_ever() -> None:
    """A row's share hangs on its id alone.

    So eight commits in a row judge every row.
    """
    rows = [
        "G22.dies[ledger-exactly_once]",
        "G1.replayed[ledger-at_least_once]",
        "SLA.switch[ledger-exactly_once]",
    ]

    found = [next(number for number in range(1, 9) if Share(number, 8).holds(row)) for row in rows]

    assert found == [6, 7, 4]


def test_a_share_is_read_as_it_is_written() -> None:
    """K counts from 1."""
    assert share_of("3/8", "--slice") == Share(3, 8)
    assert str(Share(3, 8)) == "3/8"


@pytest.mark.parametrize(
    "text", ["0/8", "9/8", "1/0", "-1/8", "1", "1/", "/8", "a/b", "1/8/2", "1/99999999999", "٣/٨"]
)
def test_no_share(text: str) -> None:
    """A share out of range, or none, is one sentence that shows a share."""
    with pytest.raises(UsageProblem, match=r"^--slice '.*' is not K/N .* as in 3/8\.$"):
        share_of(text, "--slice")
