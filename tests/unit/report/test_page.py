"""The page is one offline file with every row; no text of a design is HTML in it."""

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from reports import summary

from upheld.report import RowResult, matrix
from upheld.report.page import MOST_CARDS, page
from upheld.report.pictures import LARGEST_BYTES
from upheld.report.texts import GuaranteeText, ScenarioText
from upheld.verdicts import Anomaly, Verdict

UPHELD, VIOLATED = Verdict.UPHELD, Verdict.VIOLATED
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&{{ 7*7 }}"
TEXTS = {
    "G1": GuaranteeText(
        "replay",
        "what comes again",
        "An article, a section",
        (ScenarioText("G1.a", "a claim", "features/a.feature:3", ("Given ledger",)),),
    )
}


class Elements(HTMLParser):
    """The elements of a page, with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.said = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.said += data

    def all(self, tag: str) -> list[dict[str, str]]:
        """Return the attributes of each element of a kind."""
        return [attributes for name, attributes in self.found if name == tag]


def row(verdict: Verdict, name: str = "G1.a[ledger-exactly_once]", **changes: Any) -> RowResult:
    """Return a row; a violated one has a card."""
    said: dict[str, Any] = {"design": "mine", "name": "a claim"}
    if verdict is VIOLATED:
        lost = Anomaly(name="lost", text="k", expected="2", got="1")
        said |= {"anomalies": [lost], "again": "upheld run --only @G1.a"}
    guarantee = name.partition(".")[0]
    return RowResult(id=name, guarantee=guarantee, verdict=verdict, seconds=1, **(said | changes))


def shown(*reports: list[RowResult], folder: Path = Path("/nowhere")) -> Elements:
    """Return the page of reports, whose pictures lie in a folder."""
    found = matrix([(rows, summary()) for rows in reports], {"G1": "Sums are right."})
    return Elements(page(found, TEXTS, [folder] * len(reports)))


def test_every_row_of_every_report_has_its_place() -> None:
    """An id is there once, and each cell opens a panel that is there."""
    found = shown([row(UPHELD), row(VIOLATED, "G2.b[relay-at_least_once]")], [row(UPHELD)])

    ids = Counter(attributes["id"] for _, attributes in found.found if "id" in attributes)
    articles = found.all("article")
    panels = [each["aria-controls"] for each in found.all("button")]
    assert set(ids.values()) == {1}
    assert {*panels} <= set(ids)
    assert len(panels) == 3
    assert [(a["data-scenario"], a["data-column"], a["data-verdict"]) for a in articles] == [
        ("G1.a", "0", "upheld"),
        ("G1.a", "1", "upheld"),
        ("G2.b", "0", "violated"),
    ]
    assert [(a["data-program"], a["data-mode"]) for a in articles] == [
        ("ledger", "exactly_once"),
        ("ledger", "exactly_once"),
        ("relay", "at_least_once"),
    ]


def test_what_opens_says_the_promise_its_source_and_the_scenario() -> None:
    """A reader needs no other file to know what was judged."""
    said = shown([row(UPHELD)]).said

    for part in ("Sums are right.", "An article, a section", "Given ledger", "a.feature:3"):
        assert part in said


@pytest.mark.parametrize(
    "changes",
    [
        {"design": HOSTILE},
        {"name": HOSTILE, "id": "G1.of-another-version"},
        {"id": f"G1.{HOSTILE}"},
        {"guarantee": HOSTILE},
        {"reason": HOSTILE},
        {"known": HOSTILE},
        {"again": HOSTILE},
        {"history": HOSTILE},
        {"log": [HOSTILE]},
        {"timeline": [HOSTILE]},
        {"narrowed": [HOSTILE]},
        {"totals": {HOSTILE: 1}},
        {"waited_ms": {HOSTILE: 1}},
        {"marks": [{"fault": HOSTILE, "evidence": {HOSTILE: HOSTILE}}]},
        {"anomalies": [Anomaly(name=HOSTILE, text=HOSTILE, expected=HOSTILE, got=HOSTILE)]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_text_of_a_design_is_never_html(changes: dict[str, Any]) -> None:
    """It is shown, and adds no element and no attribute."""
    judged = row(VIOLATED).model_copy(update=changes)

    found = shown([judged])

    usual = Counter(tag for tag, _ in shown([row(VIOLATED)]).found)
    tags = Counter(tag for tag, _ in found.found)
    assert tags["script"] == usual["script"] == 1
    assert tags["img"] == 0
    assert not [name for _, each in found.found for name in each if name.startswith("on")]
    assert "{{ 7*7 }}" in found.said


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    """The page works with the network off; a picture is in the file itself."""
    (tmp_path / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")

    found = shown([row(VIOLATED, picture="a.svg")], folder=tmp_path)

    links = [each for _, each in found.found if {"src", "href"} & set(each)]
    assert [each["src"].partition(",")[0] for each in links] == ["data:image/svg+xml;base64"]
    assert not found.all("link")


@pytest.mark.parametrize("how", ["missing", "link", "large", "above"])
def test_a_picture_that_is_none_of_the_run_is_left_out(tmp_path: Path, how: str) -> None:
    """The timeline in text stands instead."""
    (tmp_path / "other").write_text("a secret")
    folder = tmp_path / "run"
    folder.mkdir()
    if how == "link":
        (folder / "a.svg").symlink_to("../other")
    elif how == "large":
        (folder / "a.svg").write_bytes(b"x" * (LARGEST_BYTES + 1))
    name = "../other" if how == "above" else "a.svg"

    found = shown([row(VIOLATED, picture=name, timeline=["..!"])], folder=folder)

    assert not found.all("img")
    assert "..!" in found.said


def test_cards_beyond_the_most_are_counted() -> None:
    """The file stays small, and says where the others are."""
    rows = [row(VIOLATED, repetition=number) for number in range(MOST_CARDS + 3)]

    found = shown(rows)

    assert found.said.count("To see it again:") == MOST_CARDS
    assert "3 more cards are in report.jsonl alone." in found.said
    assert len(found.all("article")) == MOST_CARDS + 3


def test_a_mark_says_what_when_and_with_which_evidence() -> None:
    """A mark of an older report may lack any of them."""
    mark = {"at_ms": 12, "fault": "with events waiting", "evidence": {"waiting": 3}}

    said = shown([row(UPHELD, marks=[mark, {}])]).said

    assert "with events waiting, after 12 ms; waiting 3" in said
    assert "without a name, after ? ms" in said
