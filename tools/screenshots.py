"""Take the pictures of report pages that the docs show, from real runs.

    python tools/screenshots.py [--reports FOLDER]

It judges `plain` and a wrong design at depth quick, which takes a few minutes, and writes
`docs/images/{green,red,page}.png`: each alone, and both side by side. FOLDER keeps the reports in
`green` and `red`. If it has them, nothing is judged. Chromium and its driver have to be on PATH.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from selenium import webdriver
from selenium.webdriver.common.by import By

from upheld import commands

ROOT: Final = Path(__file__).resolve().parent.parent
IMAGES: Final = ROOT / "docs/images"
DESIGNS: Final = {"green": "plain", "red": "broken/tracks_the_topic_it_reads"}
RED_CARD: Final = "#G7 button"
SIZES: Final = {"green": (1250, 900), "red": (1250, 1000), "page": (1250, 900)}
CHROMIUM: Final = (
    "--headless=new",
    "--no-sandbox",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)


def upheld(*arguments: str) -> None:
    """Run a command of this tree; a violated run is what is wanted."""
    subprocess.run(commands.own_module("upheld", *arguments), cwd=ROOT, check=False)


def pages(folder: Path) -> dict[str, Path]:
    """Return the page of each picture, and judge what has no report yet."""
    reports = {name: folder / name for name in DESIGNS}
    for name, design in DESIGNS.items():
        if not (reports[name] / "report.jsonl").is_file():
            options = ("--broker", "embedded", "--depth", "quick", "--seed", "7")
            upheld("run", "--design", design, *options, "--out", str(reports[name]))
    found = {name: report / "index.html" for name, report in reports.items()}
    for name, page in found.items():
        upheld("report", str(reports[name]), "--html", str(page))
    found["page"] = folder / "both.html"
    upheld("report", *map(str, reports.values()), "--html", str(found["page"]))
    return found


def take(browser: webdriver.Chrome, name: str, page: Path) -> None:
    """Take one picture: of the page's top, or of the red card."""
    browser.set_window_size(*SIZES[name])
    browser.get(page.as_uri())
    if name == "red":
        browser.find_element(By.CSS_SELECTOR, RED_CARD).click()
        card = browser.find_element(By.CSS_SELECTOR, "#panel-G7 article[data-verdict=violated]")
        browser.execute_script("arguments[0].scrollIntoView()", card)
    browser.save_screenshot(str(IMAGES / f"{name}.png"))


def main() -> None:
    """Take all pictures."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--reports", type=Path, metavar="FOLDER", help="keep the reports there")
    options = webdriver.ChromeOptions()
    for option in CHROMIUM:
        options.add_argument(option)
    with tempfile.TemporaryDirectory() as scratch:
        found = pages(asked.parse_args().reports or Path(scratch))
        service = webdriver.ChromeService(commands.program("chromedriver"))
        with webdriver.Chrome(options, service) as browser:
            for name, page in found.items():
                take(browser, name, page)


if __name__ == "__main__":
    main()
