"""Measure how soon the page of a full run can be filtered, in a headless Chromium.

    python bench/page.py [--rounds 5] [--keep FOLDER]

The run is made up: every row of the catalogue for three designs, of which one breaks each third
promise. Its texts and pictures are as long as those of real reports. Each round starts a browser
with an empty profile and opens the file. It takes the time from the start of the navigation to the
second frame after the page's script. All rows are drawn then, and the filters work. The load of the
machine counts, so run it alone.
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Final

from selenium import webdriver

from upheld import commands
from upheld.report import FORMAT, Cost, RowResult, Summary, matrix
from upheld.report.page import page
from upheld.report.texts import texts
from upheld.spec import catalogue
from upheld.spec.catalogue import Catalogue
from upheld.verdicts import Anomaly, Verdict

DESIGNS: Final = ("first", "second", "wrong")
WORDS: Final = "a record that no fold of the input gives, in one partition of the outputs "
TEXT: Final = (WORDS * 9)[:600]
PICTURE_BYTES: Final = 8_300  # nine of ten real ones are smaller
MARK: Final = """
window.drawn = new Promise((tell) => addEventListener("DOMContentLoaded", () =>
  requestAnimationFrame(() => requestAnimationFrame(() => tell(performance.now())))));
"""
ASK: Final = "window.drawn.then(arguments[0])"


def full_run(known: Catalogue, folder: Path) -> tuple[list[RowResult], Summary]:
    """Return the report of a full run of three designs, and write its pictures."""
    picture = f"<svg xmlns='http://www.w3.org/2000/svg'><desc>{'x' * PICTURE_BYTES}</desc></svg>"
    (folder / "a.svg").write_text(picture)
    ids = [row.id for scenario in known.scenarios for row in scenario.rows]
    rows = [
        _row(design, name, known, is_red=design == DESIGNS[-1] and number % 3 == 0)
        for design in DESIGNS
        for number, name in enumerate(ids)
    ]
    counts = {design: len(ids) for design in DESIGNS}
    verdicts = {str(each): sum(row.verdict is each for row in rows) for each in Verdict}
    summary = Summary(
        format=FORMAT,
        partial=False,
        ended="2026-11-28T07:00:00+00:00",
        upheld="0.1.0",
        seed=7,
        design_versions=dict.fromkeys(DESIGNS, "1.0"),
        broker="embedded Apache Kafka 4.3.1, Java 17.0.15",
        broker_why="asked for",
        versions={"python": "3.11.7"},
        promised=counts,
        chosen=counts,
        judged=counts,
        verdicts=verdicts,
        known_failures=0,
        untested=[],
        seconds=1800.0,
        median_seconds=2.5,
        peak_memory_mb=3000,
        cpu_s=dict.fromkeys(("harness", "broker", "design"), 400.0),
        exit_code=1,
    )
    return rows, summary


def _row(design: str, name: str, known: Catalogue, *, is_red: bool) -> RowResult:
    scenario = known.by_row[name]
    anomaly = Anomaly(
        name="duplicated",
        text=TEXT,
        key="barber-00019",
        source="trial-bd2a15-ledger-entries-3@510",
        expected=TEXT[:200],
        got=TEXT[:200],
    )
    red = {
        "anomalies": [anomaly] * 3,
        "totals": {"duplicated": 170, "lost": 64},
        "timeline": ["a            s------------R-------", "output                    !"] * 4,
        "log": [f"a  10:11:12.345  INFO  {WORDS}"] * 8,
        "shrunk": [f"2644 ms  controllers-2@311  {WORDS}"] * 8,
        "picture": "a.svg",
        "again": f"upheld run --design {design} --only '@{scenario.id}'",
    }
    return RowResult(
        design=design,
        id=name,
        guarantee=scenario.guarantee,
        name=scenario.name,
        verdict=Verdict.VIOLATED if is_red else Verdict.UPHELD,
        marks=[{"at_ms": 812, "fault": "with events waiting", "evidence": {"waiting": 31}}],
        waited_ms={"50 %": 310, "99 %": 1240},
        entries=4000,
        keys=128,
        partitions=4,
        kills=1,
        seconds=2.5,
        cost=Cost(
            harness_cpu_s=0.3,
            broker_cpu_s=1.3,
            design_cpu_s=0.6,
            peak_memory_mb=41,
            topics=5,
            topic_bytes=452393,
        ),
        history=f"history/{design}-{name}.jsonl",
        **(red if is_red else {}),
    )


def opened_ms(file: Path) -> tuple[float, float]:
    """Return the milliseconds to the first paint of text, and to filters that work."""
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(option)
    driver = commands.program("chromedriver")
    with webdriver.Chrome(options, webdriver.ChromeService(driver)) as browser:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": MARK})
        browser.get(file.as_uri())
        drawn = float(browser.execute_async_script(ASK))
        shown = browser.find_element("id", "shown").text
        if "guarantees" not in shown:
            raise SystemExit(f"the page cannot be filtered: {shown!r}")
        entry = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        return float(browser.execute_script(f"return {entry}")), drawn


def main() -> None:
    """Make the page, and print its size and the times of each round with their median."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=5, help="0 makes the page alone")
    asked.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the page there")
    arguments = asked.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        known = catalogue.load()
        rows, summary = full_run(known, folder)
        file = folder / "index.html"
        text = page(matrix([(rows, summary)], known.promises), dict(texts(known)), [folder], folder)
        file.write_text(text, encoding="utf-8")
        print(f"{len(rows)} rows, {file.stat().st_size / 1e6:.2f} MB")
        found = [opened_ms(file) for _ in range(arguments.rounds)]
        for painted, drawn in found:
            print(f"  first text {painted:.0f} ms, filterable {drawn:.0f} ms")
        if found:
            print(f"median filterable {statistics.median(drawn for _, drawn in found):.0f} ms")


if __name__ == "__main__":
    main()
