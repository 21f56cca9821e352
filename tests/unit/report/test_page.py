"""The page is one offline file with every row; no text of a design is HTML in it."""

import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from reports import summary

from upheld.report import Cost, RowResult, matrix
from upheld.report.costs import costs
from upheld.report.page import MOST_CARDS, page
from upheld.report.pictures import LARGEST_BYTES
from upheld.report.texts import GuaranteeText, ScenarioText
from upheld.spec import catalogue
from upheld.verdicts import Anomaly, Verdict

ROOT = Path(__file__).parents[3]
UPHELD, VIOLATED = Verdict.UPHELD, Verdict.VIOLATED
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&{{ 7*7 }}"
TEXTS = {
    "G1": GuaranteeText(
        "replay",
        "what comes again",
        "An article, a section",
        (
            ScenarioText(
                "G1.a", "a claim", "features/a.feature:3", "Given ledger\n\nExamples:\n  | mode |"
            ),
        ),
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

    def links(self) -> list[str]:
        """Return where the links lead."""
        return [each["href"] for each in self.all("a")]


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
    return Elements(page(found, TEXTS, [folder] * len(reports), folder))


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

    for part in ("Sums are right.", "An article, a section", "  | mode |", "a.feature:3"):
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
        {"lapsed": HOSTILE},
        {"again": HOSTILE},
        {"history": HOSTILE},
        {"log": [HOSTILE]},
        {"timeline": [HOSTILE]},
        {"narrowed": [HOSTILE]},
        {"oracle": HOSTILE, "rests_on": [HOSTILE]},
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

    sources = [each["src"] for _, each in found.found if "src" in each]
    assert [each.partition(",")[0] for each in sources] == ["data:image/svg+xml;base64"]
    assert not found.all("link")
    assert all(each["href"].startswith("#") for each in found.all("a"))


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


def test_cards_beyond_the_most_are_counted_and_linked(tmp_path: Path) -> None:
    """The file stays small, and says where the others are."""
    (tmp_path / "report.jsonl").touch()
    rows = [row(VIOLATED, repetition=number) for number in range(MOST_CARDS + 3)]

    found = shown(rows, folder=tmp_path)

    assert found.said.count("To see it again:") == MOST_CARDS
    assert "3 more cards not on this page." in found.said
    assert len(found.all("article")) == MOST_CARDS + 3
    assert found.links().count("report.jsonl") == 3


def test_pictures_beyond_the_most_are_linked(tmp_path: Path) -> None:
    """Sixty of the largest would be twice as large as the page may be."""
    (tmp_path / "a.svg").write_bytes(b"x" * LARGEST_BYTES)
    rows = [row(VIOLATED, picture="a.svg", repetition=number) for number in range(20)]

    found = shown(rows, folder=tmp_path)

    assert 5 < len(found.all("img")) < 10
    assert len(found.all("img")) + found.links().count("a.svg") == 20


@pytest.mark.parametrize(
    ("history", "link"),
    [
        ("history/a.jsonl", "../run/history/a.jsonl"),
        ("history/G1.a[x]#?.jsonl", "../run/history/G1.a%5Bx%5D%23%3F.jsonl"),
        ("history/missing.jsonl", None),
        ("../other", None),
        ("javascript:alert(1)", "../run/javascript%3Aalert%281%29"),
    ],
)
def test_a_history_in_the_folder_is_linked(tmp_path: Path, history: str, link: str | None) -> None:
    """The link leads there from the page, and to no other file."""
    folder = tmp_path / "run"
    (folder / "history").mkdir(parents=True)
    (tmp_path / "page").mkdir()
    if link:
        (folder / history).touch()
    found = matrix([([row(UPHELD, history=history)], summary())], {})

    said = Elements(page(found, TEXTS, [folder], tmp_path / "page"))

    assert [each for each in said.links() if not each.startswith("#")] == [link] * bool(link)
    assert history in said.said


def test_the_cost_of_each_design_stands_beside_its_verdicts() -> None:
    """Sums but for the memory, of which the most counts; what is not known is not 0."""
    cost = Cost(harness_cpu_s=1, design_cpu_s=2, peak_memory_mb=7, topics=3, topic_bytes=1000)
    less = cost.model_copy(update={"peak_memory_mb": 5, "topic_bytes": 234})
    found = matrix([([row(UPHELD, cost=cost), row(UPHELD, cost=less)], summary())], {})

    assert dict(costs(found)) == {
        "seconds": ["2 s"],
        "CPU of the design": ["4 s"],
        "CPU of the broker": ["unknown"],
        "CPU of the harness": ["2 s"],
        "most memory of an instance": ["7 MiB"],
        "topics": ["6"],
        "bytes on the broker": ["1,234"],
    }
    assert "1,234" in Elements(page(found, TEXTS, [Path("/nowhere")], Path("/nowhere"))).said


def test_a_card_has_the_record_that_shows_it() -> None:
    """Its key, its input, and the records that are enough for it."""
    lost = Anomaly(name="lost", text="k", key="a-key", source="entries-3@510")
    said = shown([row(VIOLATED, anomalies=[lost], shrunk=["12 ms  entries-3@510"])]).said

    for part in ("key a-key", "input entries-3@510", "12 ms  entries-3@510"):
        assert part in said


def test_a_mark_says_what_when_and_with_which_evidence() -> None:
    """A mark of an older report may lack any of them."""
    mark = {"at_ms": 12, "fault": "with events waiting", "evidence": {"waiting": 3}}

    said = shown([row(UPHELD, marks=[mark, {}])]).said

    assert "with events waiting, after 12 ms; waiting 3" in said
    assert "without a name, after ? ms" in said


def test_the_page_of_a_full_run_is_small(tmp_path: Path) -> None:
    """Every row of the catalogue for three designs, of which one is often wrong."""
    command = [sys.executable, ROOT / "bench/page.py", "--rounds", "0", "--keep", tmp_path]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    file = tmp_path / "index.html"
    text = file.read_text(encoding="utf-8")
    rows = 3 * len(catalogue.load().by_row)
    red = len(range(0, rows // 3, 3))
    assert said.startswith(f"{rows} rows")
    assert file.stat().st_size < 3_000_000
    assert text.count("<article ") == rows
    assert text.count("To see it again:") == MOST_CARDS
    assert f"{red - MOST_CARDS} more cards not on this page." in text
