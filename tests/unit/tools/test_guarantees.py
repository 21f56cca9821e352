"""The page of a guarantee has all that is known of it."""

import re

import guarantees
import pytest
from pages import DOCS

from upheld.protocol.manifest import load, shipped
from upheld.spec import catalogue

KNOWN = catalogue.load()
PAGES = {name: guarantees.page(each) for name, each in KNOWN.guarantees.items()}


def test_a_page_has_every_part() -> None:
    """From the promise to the verdicts."""
    page = PAGES["G22"]

    for part in (
        KNOWN.guarantees["G22"].promise,
        "Enabling Exactly-Once in Kafka Streams",
        "## What breaks it",
        "## What it costs",
        "rows took",
        "### G22.dies-with-a-transaction-open",
        "[`ahead-of-commit`](../anomalies.md#ahead-of-commit)",
        "## Wrong designs that it catches",
        "| `spark` | upheld 18/18 |",
    ):
        assert part in page


def test_each_scenario_is_on_the_page_of_its_guarantee_and_on_no_other() -> None:
    """Its Gherkin begins at its tags and ends before those of the next one."""
    for scenario in KNOWN.scenarios:
        begin = re.compile(rf"^@{re.escape(scenario.id)}(?= |$)", re.MULTILINE)
        assert {
            name: len(begin.findall(page)) for name, page in PAGES.items() if begin.search(page)
        } == {scenario.guarantee: 1}
        page = PAGES[scenario.guarantee]
        assert all(f"| `{row.id}` |" in page for row in scenario.rows)


@pytest.mark.parametrize("name", [name for name in shipped() if name.startswith("broken/")])
def test_each_wrong_design_is_on_the_pages_that_it_names(name: str) -> None:
    """With its mistake, and the anomaly that its rows name."""
    sin = load(name).sin
    assert sin
    for named in sin.scenarios:
        page = PAGES[named.partition(".")[0]]
        assert f"| `{name}` | {guarantees.mistake(name)} |" in page


def test_the_index_has_every_guarantee() -> None:
    """By family, with a link to its page."""
    index = guarantees.index()

    for name, guarantee in KNOWN.guarantees.items():
        assert f"| [{name}]({name}.md) | {guarantee.promise} |" in index


def test_anomalies_that_pages_link_to_are_described() -> None:
    """A link leads to a heading."""
    described = (DOCS / "anomalies.md").read_text(encoding="utf-8")

    for page in PAGES.values():
        for line in page.splitlines():
            for target in line.split("(../anomalies.md#")[1:]:
                assert f"\n## {target.partition(')')[0]}\n" in described
