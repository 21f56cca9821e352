"""The account of a run: each row is shown and written at once, the summary last."""

import platform
import time
from collections.abc import Collection
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote
from typing import Final

from rich.console import Console

import upheld
from upheld.errors import Problem
from upheld.report import (
    COLOURS,
    FORMAT,
    RowResult,
    Summary,
    Writer,
    card,
    cpu_seconds,
    exit_code,
    matrix,
    median_seconds,
    versions,
)
from upheld.report.baseline import limit
from upheld.report.formats import Shown, write_all
from upheld.report.model import Comparison
from upheld.report.oracles import catches, rests_on, weaker
from upheld.report.reasons import undeclared
from upheld.runner.choice import Choice
from upheld.supervisor.host import Memory
from upheld.supervisor.interrupts import held
from upheld.ui.progress import UNREAD, Progress
from upheld.ui.timeleft import RowKey, TimeLeft
from upheld.verdicts import Verdict

VERSIONS: Final = ("confluent-kafka", "pytest", "pytest-bdd", "pydantic", "kio", "pyspark")
VIOLATED: Final = 1  # exit codes
HARNESS_ERROR: Final = 3
INTERRUPTED: Final = 130


class RunAccount:
    """The results of a run so far, its limits, and the report that it writes."""

    def __init__(self, choice: Choice, out: Path, seed: int, console: Console) -> None:
        self.choice = choice
        self.out = out
        self.seed = seed
        self.time_left = TimeLeft(choice.durations)
        self.progress = Progress(console)
        self.console = self.progress.console
        self.writer = Writer(out)
        self.memory = Memory()
        self.began = time.monotonic()
        self.interrupted = False
        self.limits_broken: list[str] = []
        self.summary: Summary | None = None
        self.errors: list[str] = []
        self.problem: str | None = None  # why this machine ended the run early
        self.refused: Problem | None = None  # the problem itself, if it is not the machine's
        self.stopped: str | None = None  # why rows were left out
        self._said = set[str]()  # the reasons of unsupported rows that were shown

    def begin(self, keys: list[RowKey], alone: Collection[RowKey] = ()) -> None:
        """Show the rows to judge; those of `alone` follow when the others are done."""
        self.time_left.begin(keys, alone)
        self.progress.begin(len(keys) + len(alone), self.seconds_left)

    def row_started(self, key: RowKey, lane: int = 1) -> None:
        """Show that a row is under way."""
        self.time_left.started(key, lane)
        self.progress.started(self._named(key.design, key.row_id), lane)

    def seconds_left(self) -> float:
        """Estimate the seconds until the run ends, by its last row or by --max-seconds."""
        seconds = self.time_left.seconds()
        if self.choice.max_seconds is None:
            return seconds
        return min(seconds, max(0.0, self.choice.max_seconds - (time.monotonic() - self.began)))

    def left_out(self) -> str:
        """Say what the run left out, and why; empty if that is nothing."""
        said = self.choice.left_out()
        why = "Ctrl-C" if self.interrupted else self.stopped
        return f"{why}: {said}" if said and why and why != self.problem else said

    def _named(self, design: str, row_id: str) -> str:
        """Name a row for a person; the design is part of it only if there are several."""
        return f"{design} {row_id}" if len(self.choice.manifests) > 1 else row_id

    def report(self, result: RowResult, lane: int = 1) -> None:
        """Write and show a result, with a card if it is not as it should be."""
        if result.has_card:
            result.again = self._again(result)
        if self.choice.baseline:
            self.choice.baseline.compare(result)
        with held():
            self.writer.write(result)
            self.choice.results.append(result)
        self.time_left.finished(lane)
        attempts = f"  {result.attempts} attempts" if result.attempts > 1 else ""
        known = "  (known failure)" if result.known else ""
        if result.excused:
            known += "  (as bad in the baseline)"
        waits = ", ".join(
            f"{share} seen within {wait_ms / 1000:.2f} s"
            for share, wait_ms in result.waited_ms.items()
        )
        notes = known + "".join(f"  ({note})" for note in (waits, versions(result)) if note)
        notes += f"  [{rests}]" if (rests := rests_on(result)) else ""
        notes += f"  ({power})" if (power := catches(result)) else ""
        why = f": {result.reason}" if result.verdict is Verdict.UNSUPPORTED else ""
        is_news = bool(why) and why not in self._said
        self._said.add(why)
        self.progress.finished(
            f"{self._named(result.design, result.id)} {result.seconds:.1f} s{attempts}{notes}{why}",
            result.verdict,
            style=COLOURS[result.verdict],
            lane=lane,
            is_quiet=result.verdict in {Verdict.UPHELD, Verdict.UNSUPPORTED}
            and not known
            and not is_news
            and not result.narrowed,
        )
        if result.has_card:
            self.progress.message(card(result, result.again))

    def _again(self, result: RowResult) -> str:
        """Return the command that repeats a row."""
        spec = self.choice.specs.get(result.design, result.design)
        design = f"--design {quote(spec)}"
        if earlier := self.choice.earlier:
            design = f"--from {quote(earlier)} --to {quote(spec)}"
        chosen = f"{design} --only '@{result.scenario}'{self.choice.narrowed}"
        return f"{self.choice.again} {chosen} --seed {self.seed}"

    def why_to_stop(self, result: RowResult) -> str | None:
        """Return why no row is judged after this one, or None."""
        if self.progress.is_unread:
            self.problem = self.problem or UNREAD
        if self.problem:
            return self.problem
        if self.choice.fail_fast and self._has_failed(result):
            return "--fail-fast"
        if self.choice.max_seconds and time.monotonic() - self.began > self.choice.max_seconds:
            return "--max-seconds"
        return None

    def _has_failed(self, result: RowResult) -> bool:
        """Return whether a row makes the run fail, whatever the others come to."""
        is_ours = result.verdict is Verdict.HARNESS_ERROR and not result.excused
        older = self.choice.baseline
        return result.fails or is_ours or (older is not None and older.is_worse(result))

    def close(self, broker: str, why: str) -> Summary:
        """Write the summary, which ends the report, and the other formats; return it.

        An interrupt waits until all are written.
        """
        with held():
            summary = self._close(broker, why)
            self.write_formats(summary)
            return summary

    def write_formats(self, summary: Summary) -> None:
        """Write the report in the formats that the run was asked for."""
        known = self.choice.catalogue
        found = matrix([(self.choice.results, summary)], known.promises)
        write_all(self.choice.formats, Shown(found, known, [self.out], self.errors))

    def _close(self, broker: str, why: str) -> Summary:
        self.progress.end()
        peak_mb = self.memory.stop()
        seconds = time.monotonic() - self.began
        results = self.choice.results
        if self.choice.max_seconds and seconds > self.choice.max_seconds:
            self.limits_broken.append(f"{seconds:.0f} s of at most {self.choice.max_seconds:.0f} s")
        unmeasured = []
        self.limits_broken += self.choice.new_limits
        if self.choice.is_strict:
            self.limits_broken += undeclared(results)
        compared = self._compared()
        if compared and (worse := limit(compared)):
            self.limits_broken.append(worse)
        self.limits_broken += weaker(results, self.choice.required)
        if self.choice.max_memory_mb and peak_mb > self.choice.max_memory_mb:
            self.limits_broken.append(f"{peak_mb} MiB of at most {self.choice.max_memory_mb} MiB")
        elif self.choice.max_memory_mb and not peak_mb:
            unmeasured.append(f"memory of at most {self.choice.max_memory_mb} MiB")
        chosen = {name: len(rows) * self.choice.repeat for name, rows in self.choice.rows.items()}
        code = exit_code(
            results,
            sum(chosen.values()),
            limits_broken=bool(self.limits_broken),
            limits_unmeasured=bool(unmeasured),
        )
        if (self.errors or self.problem) and code != VIOLATED:
            code = int(self.refused.exit_code) if self.refused else HARNESS_ERROR
        if self.interrupted:
            code = INTERRUPTED
        self.summary = Summary(
            format=FORMAT,
            ended=datetime.now(UTC).isoformat(timespec="seconds"),
            partial=self.interrupted or len(results) < sum(chosen.values()),
            upheld=upheld.__version__,
            seed=self.seed,
            depth=self.choice.depth,
            slice=self.choice.slice,
            shard=self.choice.shard,
            narrowed=self.choice.is_narrowed,
            repeat=self.choice.repeat,
            design_versions={manifest.name: manifest.version for manifest in self.choice.manifests},
            subjects=self.choice.subjects,
            follows=self.choice.follows,
            broker=broker,
            broker_why=why,
            versions=_versions(),
            promised=self.choice.promised
            or {name: len(rows) for name, rows in self.choice.rows.items()},
            specs={m.name: m.spec for m in self.choice.manifests if m.spec},
            newer=self.choice.newer,
            chosen=chosen,
            judged={name: sum(r.design == name for r in results) for name in chosen},
            verdicts={v: sum(r.verdict is v for r in results) for v in Verdict},
            known_failures=sum(r.known is not None for r in results),
            cannot={m.name: list(m.cannot) for m in self.choice.manifests if m.cannot},
            untested=[g.id for g in self.choice.catalogue.guarantees.values() if not g.specified],
            seconds=round(seconds, 1),
            median_seconds=median_seconds(results),
            peak_memory_mb=peak_mb,
            cpu_s=cpu_seconds(results),
            limits_broken=self.limits_broken,
            limits_unmeasured=unmeasured,
            baseline=compared,
            exit_code=code,
        )
        self.writer.write(self.summary)
        self.writer.close()
        return self.summary

    def _compared(self) -> Comparison | None:
        """Return what became of the rows since the baseline, if there is one."""
        older = self.choice.baseline
        return older.compared(self.choice.results, self.choice.alike(self.seed)) if older else None


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
