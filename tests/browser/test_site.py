"""The documentation site works in a real browser, from files, with no network.

`tox run -e page` runs it: Chromium, its driver and npm have to be on PATH.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import website
from browsers import chromium
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

WAIT_S = 20
LOCAL = {"file", "data", "blob", "about", "chrome"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, built strictly."""
    if not shutil.which("npm"):
        pytest.skip("npm is not on PATH")
    folder = tmp_path_factory.mktemp("docs") / "site"
    try:
        website.build(folder)
    except website.NotFetched as problem:
        pytest.skip(str(problem))
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    """Return a browser that reaches no host and notes each request."""
    with chromium("browser", "performance") as opened:
        yield opened


@pytest.fixture
def opened(browser: webdriver.Chrome, site: Path) -> webdriver.Chrome:
    """Return the browser with the first page of the site, and empty logs."""
    browser.get((site / "index.html").as_uri())
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    return browser


def requested(browser: webdriver.Chrome) -> set[str]:
    """Return the addresses that the browser asked for since its log was read last."""
    said = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    return {
        str(each["params"]["request"]["url"])
        for each in said
        if each["method"] == "Network.requestWillBeSent"
    }


def search(browser: webdriver.Chrome, words: str) -> list[str]:
    """Search as a reader does, and return the addresses of what is found, best first."""
    waiting = WebDriverWait(browser, WAIT_S, ignored_exceptions=[WebDriverException])
    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    waiting.until(lambda _: _within(browser, "[role=combobox]"))[0].send_keys(words)
    found = waiting.until(lambda _: _within(browser, "a[role=option]"))
    return [each.get_attribute("href") or "" for each in found]


def _within(browser: webdriver.Chrome, selector: str) -> list[WebElement]:
    """Return elements of the dialogue that has the focus."""
    return browser.switch_to.active_element.shadow_root.find_elements(By.CSS_SELECTOR, selector)


@pytest.mark.parametrize("page", ["index.html", "anomalies.html", "guarantees/G22.html"])
def test_a_page_opens_and_asks_no_host_for_anything(
    opened: webdriver.Chrome, site: Path, page: str
) -> None:
    """Nothing is written to the console; scripts, styles and fonts are files."""
    opened.get((site / page).as_uri())

    assert opened.get_log("browser") == []
    asked = requested(opened)
    assert any(address.endswith(".css") for address in asked)
    assert {address for address in asked if urlsplit(address).scheme not in LOCAL} == set()


def test_a_search_finds_what_an_anomaly_means(opened: webdriver.Chrome) -> None:
    """The section of the anomaly comes first."""
    found = search(opened, "stale-overwrite")

    assert "anomalies.html" in found[0]
    assert urlsplit(found[0]).fragment == "stale-overwrite"
    assert opened.get_log("browser") == []


def test_a_diagram_is_drawn(opened: webdriver.Chrome, site: Path) -> None:
    """Mermaid comes from the site too."""
    opened.get((site / "architecture.html").as_uri())

    drawn = WebDriverWait(opened, WAIT_S).until(
        lambda _: opened.find_elements(By.CSS_SELECTOR, "div.mermaid")
    )
    assert drawn[0].size["height"] > 100
    assert opened.get_log("browser") == []
