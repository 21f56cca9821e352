"""A headless Chromium, and packages of npm that look at pages and messages."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver

HERE = Path(__file__).parent
PINS = HERE / "package.json"  # the one place that says which versions
CUCUMBER = HERE / "cucumber.mjs"
OLDEST_NODE = 20  # that Cucumber's packages run on
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium(*logs: str) -> Iterator[webdriver.Chrome]:
    """Yield a browser that reaches no host, and keeps these logs of its own.

    The test is skipped if there is none.
    """
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    driver = shutil.which("chromedriver")
    if not browser:
        pytest.skip("chromium is not on PATH")
    if not driver:
        pytest.skip("chromedriver is not on PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for option in ("--headless=new", "--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    with webdriver.Chrome(options, webdriver.ChromeService(driver)) as opened:
        yield opened


def packages(config: pytest.Config) -> Path:
    """Return a folder of pytest's cache with the pinned packages in `node_modules`.

    The test is skipped if npm or a Node that is new enough is missing, or no package can be had.
    """
    for program in ("node", "npm"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not on PATH")
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    if int(said.strip().removeprefix("v").partition(".")[0]) < OLDEST_NODE:
        pytest.skip(f"Node is older than {OLDEST_NODE}")
    folder = config.cache.mkdir("npm")
    installed = folder / "installed.json"
    pins = PINS.read_text()
    if not installed.is_file() or installed.read_text() != pins:
        (folder / PINS.name).write_text(pins)
        options = ("--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund")
        done = subprocess.run(["npm", "install", *options], cwd=folder, check=False, timeout=300)
        if done.returncode:
            pytest.skip("npm cannot fetch the packages")
        installed.write_text(pins)
    return folder


def cucumber(folder: Path, messages: str) -> subprocess.CompletedProcess[str]:
    """Hold messages against the published schema, and make Cucumber's page of them."""
    return subprocess.run(
        ["node", CUCUMBER, folder],
        input=messages,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
