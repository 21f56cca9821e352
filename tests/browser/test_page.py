"""The page works in a real browser, from a file, with the network off.

`tox run -e page` runs it: Chromium and its driver have to be on PATH, and for axe-core npm.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import chromium, packages
from reports import summary
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from upheld.report import Cost, RowResult, matrix
from upheld.report.page import page
from upheld.report.texts import texts
from upheld.spec import catalogue
from upheld.verdicts import Anomaly, Verdict

HOSTILE = "</script><script>document.title='run'</script>"
LOST = Anomaly(name="lost", text="k", expected="2", got="1")
NAMED = [
    ("G1.undisturbed[ledger-exactly_once]", Verdict.UPHELD),
    ("G2.crash-under-traffic[ledger-exactly_once]", Verdict.VIOLATED),
    ("G3.whole-collection[ledger-exactly_once]", Verdict.INCONCLUSIVE),
    ("G3.whole-at-the-cut[ledger-exactly_once]", Verdict.UNSUPPORTED),
    ("G5.crash-before-the-commit[ledger-at_least_once-sqlite]", Verdict.HARNESS_ERROR),
    ("G0.of-another-version", Verdict.VIOLATED),
]
EVERY_PART: dict[str, Any] = {
    "reason": "a reason",
    "warnings": ["it shows little"],
    "known": "https://example.org/7",
    "anomalies": [LOST],
    "totals": {"lost": 3},
    "marks": [{"fault": "after a commit", "at_ms": 7, "evidence": {"offset": 3}}],
    "timeline": ["input  .", "a      s!"],
    "log": ["a  INFO  a line"],
    "narrowed": ["Fetch 4"],
    "waited_ms": {"99 %": 1200},
    "entries": 5,
    "attempts": 2,
    "cost": Cost(harness_cpu_s=1, broker_cpu_s=2, design_cpu_s=3, topics=2, topic_bytes=12345),
    "history": "history/a.jsonl",
    "again": "upheld run",
}
# The rules of WCAG 2.0 to 2.2 at the levels A and AA.
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OPEN_ALL = """
document.querySelectorAll("tr.line").forEach((line) => line.querySelector("button").click());
"""
AUDIT = """
const done = arguments[arguments.length - 1];
axe.run({runOnly: {type: "tag", values: arguments[0]}}).then(done);
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    """Return a browser."""
    with chromium("browser") as opened:
        yield opened


@pytest.fixture
def opened(browser: webdriver.Chrome, tmp_path: Path) -> webdriver.Chrome:
    """Return the browser with a page of two designs, one of them hostile."""
    rows = [
        row("mine", "G1.a[ledger-exactly_once]", Verdict.UPHELD),
        row("mine", "G2.b[relay-at_least_once]", Verdict.VIOLATED),
        row(HOSTILE, "G2.b[relay-at_least_once]", Verdict.UPHELD),
    ]
    file = tmp_path / "index.html"
    file.write_text(
        page(matrix([(rows, summary())], {}), {}, [tmp_path], tmp_path), encoding="utf-8"
    )
    browser.get("about:blank")
    browser.get(file.as_uri())
    return browser


@pytest.fixture
def every_part(browser: webdriver.Chrome, tmp_path: Path) -> webdriver.Chrome:
    """Return the browser with every verdict and every part of a card, in two reports."""
    known = catalogue.load()
    reports = [
        [row(design, name, verdict, **EVERY_PART) for name, verdict in NAMED]
        for design in ("mine", HOSTILE)
    ]
    (tmp_path / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    found = matrix([(rows, summary(cpu_s={"design": 1.0})) for rows in reports], known.promises)
    file = tmp_path / "index.html"
    file.write_text(
        page(found, dict(texts(known)), [tmp_path] * 2, tmp_path, ["a hint"]), encoding="utf-8"
    )
    browser.get("about:blank")
    browser.get(file.as_uri())
    return browser


def row(design: str, name: str, verdict: Verdict, **changes: Any) -> RowResult:
    """Return a row; a violated one has a card."""
    found = [LOST] if verdict is Verdict.VIOLATED else []
    said: dict[str, Any] = {
        "anomalies": found,
        "again": "upheld run" if found else "",
        "seconds": 1,
    }
    guarantee = name.partition(".")[0]
    named = {"design": design, "id": name, "guarantee": guarantee, "verdict": verdict}
    return RowResult(**(said | {"name": "a claim"} | changes | named))


def guarantees(browser: webdriver.Chrome) -> list[str]:
    """Return the ids of the guarantees that can be seen."""
    lines = browser.find_elements(By.CSS_SELECTOR, "tr.line")
    return [line.get_attribute("id") or "" for line in lines if line.is_displayed()]


def test_it_opens_without_an_error(opened: webdriver.Chrome) -> None:
    """Nothing is written to the console, and no text of a design has run."""
    assert opened.get_log("browser") == []
    assert opened.title.startswith("Upheld: mine")
    assert guarantees(opened) == ["G1", "G2"]


def test_filters_leave_what_they_say(opened: webdriver.Chrome) -> None:
    """By verdict, by program and by text; the count says how many are left."""
    opened.find_element(By.NAME, "text").send_keys("g1.a")
    assert guarantees(opened) == ["G1"]
    assert opened.find_element(By.ID, "shown").text == "1 of 2 guarantees"

    opened.find_element(By.NAME, "text").clear()
    opened.find_element(By.NAME, "text").send_keys(" ", Keys.BACKSPACE)
    Select(opened.find_element(By.NAME, "program")).select_by_visible_text("relay")
    assert guarantees(opened) == ["G2"]

    opened.find_element(By.CSS_SELECTOR, "[value=violated]").click()
    opened.find_element(By.CSS_SELECTOR, "[value=upheld]").click()
    assert guarantees(opened) == []


def test_a_cell_opens_its_card(opened: webdriver.Chrome) -> None:
    """The card shows what was expected, what came, and the command."""
    cell = opened.find_element(By.CSS_SELECTOR, "#G2 button")
    assert not opened.find_element(By.ID, "panel-G2").is_displayed()

    cell.click()

    panel = opened.find_element(By.ID, "panel-G2")
    assert cell.get_attribute("aria-expanded") == "true"
    for part in ("lost", "expected", "upheld run"):
        assert part in panel.text


def test_the_tab_key_reaches_every_cell(opened: webdriver.Chrome) -> None:
    """A reader without a mouse sees as much."""
    reached = set[str]()
    for _ in range(30):
        opened.switch_to.active_element.send_keys(Keys.TAB)
        focused = opened.switch_to.active_element
        if focused.tag_name == "button":
            row_id = focused.find_element(By.XPATH, "./ancestor::tr").get_attribute("id")
            reached.add(f"{row_id} {focused.get_attribute('data-column')}")

    assert reached == {"G1 0", "G2 0", "G2 1"}


@pytest.mark.parametrize("name", ["G2", "G2.b", "G2.b[relay-at_least_once]-1-1"])
def test_a_link_leads_to_its_row(opened: webdriver.Chrome, name: str) -> None:
    """A guarantee, a scenario and a row have addresses."""
    opened.execute_script(f"location.hash = '#{name}'")

    assert opened.find_element(By.ID, "panel-G2").is_displayed()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_either_theme(
    every_part: webdriver.Chrome, pytestconfig: pytest.Config, theme: str
) -> None:
    """Neither with all cards closed, nor with all of them open, at WCAG AA."""
    axe = packages(pytestconfig) / "node_modules/axe-core/axe.min.js"
    scheme = {"name": "prefers-color-scheme", "value": theme}
    every_part.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    every_part.execute_script(axe.read_text(encoding="utf-8"))
    is_dark = every_part.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches")
    assert is_dark == (theme == "dark")

    for action in ("", OPEN_ALL):
        every_part.execute_script(action)
        found = every_part.execute_async_script(AUDIT, LEVELS)
        assert [
            (each["id"], [n["html"] for n in each["nodes"]]) for each in found["violations"]
        ] == []
        assert len(found["passes"]) > 10
    assert every_part.find_element(By.CSS_SELECTOR, "article .pair").is_displayed()
