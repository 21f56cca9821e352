"""Cucumber's own schema, page and a real browser take the messages of a report.

`tox run -e page` runs it: Chromium, its driver, Node and npm have to be on PATH.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import cycle
from pathlib import Path

import pytest
from browsers import chromium, cucumber, packages
from reports import summary
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from upheld.report import RowResult
from upheld.report.messages import ndjson
from upheld.spec import catalogue
from upheld.verdicts import Anomaly, Verdict

HOSTILE = "</script><script>document.title='run'</script>"
LOST = Anomaly(name="lost", text=HOSTILE, expected="17 postings", got="16 postings")
KNOWN = catalogue.load()


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    """Return a browser."""
    with chromium("browser") as opened:
        yield opened


@pytest.fixture(scope="module")
def npm(pytestconfig: pytest.Config) -> Path:
    """Return a folder with Cucumber's packages."""
    return packages(pytestconfig)


def every_row() -> list[RowResult]:
    """Return a row of each scenario that the catalogue has, and one that it has not.

    The verdicts come in turn, and a known failure is among them.
    """
    ids = [*(scenario.rows[0].id for scenario in KNOWN.scenarios), "G1.of-another-version"]
    return rows_of(ids)


def rows_of(ids: Iterable[str]) -> list[RowResult]:
    """Return rows whose verdicts come in turn; later violations are known failures."""
    rows = list[RowResult]()
    for number, (name, verdict) in enumerate(zip(ids, cycle(Verdict), strict=False)):
        is_red = verdict is Verdict.VIOLATED
        rows.append(
            RowResult(
                design=HOSTILE,
                id=name,
                guarantee=name.partition(".")[0],
                name=HOSTILE,
                verdict=verdict,
                reason="" if is_red or verdict is Verdict.UPHELD else HOSTILE,
                known="https://example.org/7" if is_red and number > len(Verdict) else None,
                anomalies=[LOST] if is_red else [],
                again="upheld run --only @G3" if is_red else "",
                seconds=1.25,
            )
        )
    return rows


def of_one_feature() -> list[RowResult]:
    """Return rows of one feature: the page opens a feature if a row of it has failed."""
    by_feature = defaultdict[str, list[str]](list)
    for scenario in KNOWN.scenarios:
        by_feature[scenario.feature.name] += [row.id for row in scenario.rows]
    return rows_of(max(by_feature.values(), key=len)[: len(Verdict) + 2])


def messages(rows: list[RowResult]) -> str:
    """Return the messages of a report, with a picture for each row."""
    return ndjson(rows, summary(), KNOWN.features, lambda _: b"<svg/>")


@pytest.fixture(scope="module")
def text() -> str:
    """Return the messages of a report that has every verdict."""
    return messages(every_row())


def test_the_published_schema_accepts_every_envelope(npm: Path, text: str) -> None:
    """Each scenario and each verdict is among them."""
    made = cucumber(npm, text)

    assert made.stderr == ""
    assert made.returncode == 0


def test_the_schema_refuses_what_is_no_envelope(npm: Path, text: str) -> None:
    """The check above can fail: of each message its first field is taken away."""
    broken = list[str]()
    for kind in ("meta", "source", "pickle", "testCase", "testStepFinished", "hook"):
        line = next(line for line in text.split("\n") if line.startswith(f'{{"{kind}"'))
        envelope = json.loads(line)
        envelope[kind].pop(next(iter(envelope[kind])))
        broken.append(json.dumps(envelope))

    made = cucumber(npm, "\n".join(broken))

    assert made.stderr.count("must have required property") == len(broken)
    assert made.returncode == 1


def test_cucumbers_page_shows_scenarios_and_the_failing_card(
    npm: Path, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    """Each row is counted by its status, and the card says what was expected."""
    rows = of_one_feature()
    file = tmp_path / "cucumber.html"
    file.write_text(cucumber(npm, messages(rows)).stdout, encoding="utf-8")

    browser.get(file.as_uri())
    # The page draws itself anew as it likes, so what is on it is read in one go.
    failed = WebDriverWait(browser, 60).until(lambda _: texts_of(browser, "FAILED"))

    said = {status: texts_of(browser, status) for status in ("PASSED", "SKIPPED", "PENDING")}
    passed = sum(row.verdict is Verdict.UPHELD for row in rows)
    assert f"({passed} / {len(rows)}) passed" in WebDriverWait(
        browser, 60, ignored_exceptions=[StaleElementReferenceException]
    ).until(lambda _: browser.find_element(By.ID, "report").text)
    for part in ("After: verdict", "expected  17 postings", "upheld run --only @G3"):
        assert part in failed[0]
    assert any(text.startswith("Given") for text in said["PASSED"])
    assert any("known failure: https://example.org/7" in text for text in said["SKIPPED"])
    assert any("inconclusive: " in text for text in said["PENDING"])
    assert browser.title == "Cucumber"
    assert [each for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []


def texts_of(browser: webdriver.Chrome, status: str) -> list[str]:
    """Return the text of each step that has this status."""
    items = f"document.querySelectorAll('li[data-status={status}]')"
    found: list[str] = browser.execute_script(f"return [...{items}].map((e) => e.textContent)")
    return found
