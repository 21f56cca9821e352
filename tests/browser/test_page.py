"""The page works in a real browser, from a file, with the network off.

`tox run -e page` installs what this needs: Chromium and its driver, from the system's packages.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from reports import summary
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from upheld.report import RowResult, matrix
from upheld.report.page import page
from upheld.verdicts import Anomaly, Verdict

HOSTILE = "</script><script>document.title='run'</script>"
LOST = Anomaly(name="lost", text="k", expected="2", got="1")


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    """Return a browser without a window that reaches no host."""
    driver = shutil.which("chromedriver")
    assert driver, "chromedriver is not on PATH; see tox run -e page"
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options, webdriver.ChromeService(driver)) as opened:
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
    file.write_text(page(matrix([(rows, summary())], {}), {}, [tmp_path]), encoding="utf-8")
    browser.get("about:blank")
    browser.get(file.as_uri())
    return browser


def row(design: str, name: str, verdict: Verdict) -> RowResult:
    """Return a row; a violated one has a card."""
    found = [LOST] if verdict is Verdict.VIOLATED else []
    return RowResult(
        design=design,
        id=name,
        guarantee=name.partition(".")[0],
        name="a claim",
        verdict=verdict,
        anomalies=found,
        again="upheld run" if found else "",
        seconds=1,
    )


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
