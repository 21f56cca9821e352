"""The pages that tools write are as the features and the code say."""

from pathlib import Path

import anomalies
import pages
import programs
import pytest
from anomaly_stories import CAPTIONS, TOLD

from upheld.programs import PROGRAMS
from upheld.report.timeline import drawn, lanes
from upheld.spec import anomalies as catalogue


@pytest.mark.parametrize("page", [anomalies.PAGE, programs.PAGE], ids=lambda page: page.path.name)
def test_a_written_page_is_up_to_date(page: pages.Whole) -> None:
    """The tool of its name writes it anew."""
    assert list(page.out_of_date()) == []


def test_every_anomaly_has_a_story_that_shows_it() -> None:
    """A check finds the anomaly in its history, and the timeline marks something."""
    assert set(TOLD) == set(CAPTIONS) == set(catalogue.anomalies())
    for name, tell in TOLD.items():
        told = tell()
        found = told.anomaly(name)
        assert len(list(drawn(lanes(told.story.history, [found])))) > 2, name


def test_every_program_has_its_contract_on_the_page() -> None:
    """No program is left out."""
    found = [each.name for module in programs.CONTRACTS for each in programs.named_in(module)]

    assert sorted(found) == sorted(PROGRAMS)


def test_a_page_that_is_not_up_to_date_is_named(tmp_path: Path) -> None:
    """It is missing, or says something else; writing it mends both."""
    page = pages.Whole(tmp_path / "page.md", lambda: "new\n")

    assert list(page.out_of_date()) == [f"{page.path} is missing"]
    page.path.write_text("old\n")
    assert page.main("Write it", ["--check"]) == 1
    assert page.main("Write it", []) == 0
    assert page.main("Write it", ["--check"]) == 0


def test_the_page_of_anomalies_links_to_a_heading_of_each() -> None:
    """`linked` names an anchor that the page has."""
    text = anomalies.PAGE.path.read_text(encoding="utf-8")

    for name in catalogue.anomalies():
        assert pages.linked(name).endswith(f"#{name})")
        assert f"\n## {name}\n" in text
