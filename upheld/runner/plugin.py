"""The judge inside pytest: chooses rows, makes attempts, turns what a scenario raised into a
verdict, and reports.

An object that `upheld run` registers; it is installed nowhere, so it is inert in everybody else's
pytest.
"""

import errno
import platform
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Collection, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from pytest_bdd.scenario import scenario_wrapper_template_registry
from rich.console import Console

import upheld
from upheld.errors import MachineProblem, is_interrupt
from upheld.history import events
from upheld.judging.evidence import illustrate
from upheld.protocol.manifest import Manifest
from upheld.report import (
    COLOURS,
    FORMAT,
    Cost,
    RowResult,
    Summary,
    Writer,
    card,
    cpu_seconds,
    exit_code,
    median_seconds,
)
from upheld.spec import durations
from upheld.spec.catalogue import Catalogue
from upheld.spec.depths import Depth
from upheld.spec.durations import Durations
from upheld.spec.gherkin import ON_A_CLUSTER, TIMED, Row, Scenario
from upheld.supervisor.costs import Look, cost, look
from upheld.supervisor.host import Memory
from upheld.trial.rig import Rig
from upheld.trial.trial import Trial
from upheld.ui.progress import Progress
from upheld.ui.timeleft import RowKey, TimeLeft
from upheld.verdicts import ATTEMPTS, Judged, MarkMissed, Reason, Verdict, judged

# Another row waits, and so many cards nobody reads; `judge` draws any.
SHRUNK_S, ILLUSTRATED = (
    0.5,
    20,
)
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# A disk with less is full: a broker or a design that writes there has failed for that.
LEAST_ROOM_BYTES = 1 << 16
VERSIONS = ("confluent-kafka", "pytest", "pytest-bdd", "pydantic", "kio", "pyspark")


@dataclass
class Choice:
    """What a run judges, beside the rig it judges on."""

    manifests: list[Manifest]
    catalogue: Catalogue
    rows: dict[str, set[str]]  # design -> ids of the rows chosen of it
    depth: Depth = "full"
    slice: str = ""
    shard: str = ""
    promised: dict[str, int] = field(default_factory=dict)  # design -> its rows at full depth
    repeat: int = 1
    fail_fast: bool = False
    max_seconds: float | None = None
    max_memory_mb: int | None = None
    again: str = "upheld run"
    specs: dict[str, str] = field(default_factory=dict)  # design -> how the user named it
    results: list[RowResult] = field(default_factory=list)
    durations: Durations = field(default_factory=durations.load)

    def keys(self) -> list[RowKey]:
        """Sort the chosen rows: design after design, repetition after repetition, most news
        first.
        """
        known = [row.id for scenario in self.catalogue.by_id.values() for row in scenario.rows]
        found: list[RowKey] = []
        for manifest in self.manifests:
            ids = durations.most_news_first(
                (row_id for row_id in known if row_id in self.rows[manifest.name]),
                guarantee=_guarantee,
                seconds=partial(self.durations.news_seconds, manifest.name),
            )
            for repetition in range(self.repeat):
                found += [RowKey(manifest.name, row_id, repetition) for row_id in ids]
        return found

    def left_out(self) -> str:
        """Say how many rows were not judged, and which guarantees have no verdict thereby; empty if
        none.
        """
        judged = {RowKey(row.design, row.id, row.repetition) for row in self.results}
        keys = self.keys()
        left = [key for key in keys if key not in judged]
        if not left:
            return ""
        verdicts = {(key.design, _guarantee(key.row_id)) for key in judged}
        lacking: dict[str, list[str]] = {}
        for key in left:
            if (key.design, _guarantee(key.row_id)) not in verdicts:
                lacking.setdefault(key.design, []).append(_guarantee(key.row_id))
        order = list(self.catalogue.guarantees)
        named = [
            ", ".join(
                sorted(
                    set(ids), key=lambda name: (order.index(name) if name in order else -1, name)
                )
            )
            for ids in lacking.values()
        ]
        if len(self.manifests) > 1:
            named = [f"{design} {ids}" for design, ids in zip(lacking, named, strict=True)]
        without = f"no verdict on {'; '.join(named)}" if named else "every guarantee has a verdict"
        return f"{len(left)} of {len(keys)} rows left out; {without}"


class RunAccount:
    """What a run has come to: each row told and written at once, the summary last."""

    def __init__(self, choice: Choice, out: Path, seed: int, console: Console) -> None:
        self.choice, self.out, self.seed = choice, out, seed
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
        self.stopped: str | None = None  # why rows were left out

    def begin(self, keys: list[RowKey], alone: Collection[RowKey] = ()) -> None:
        """Show the rows that are to be judged, some of them alone, when the others are done."""
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
        """Name a row for a person; the design only where there are several."""
        return f"{design} {row_id}" if len(self.choice.manifests) > 1 else row_id

    def report(self, result: RowResult, lane: int = 1) -> None:
        """One line for the file, one for the person, and a card for what is not as it should be."""
        self.choice.results.append(result)
        self.writer.write(result)
        self.time_left.finished(lane)
        attempts = f"  {result.attempts} attempts" if result.attempts > 1 else ""
        known = "  (known failure)" if result.known else ""
        shares = ", ".join(
            f"{share} seen within {wait_ms / 1000:.2f} s"
            for share, wait_ms in result.waited_ms.items()
        )
        self.progress.finished(
            f"{self._named(result.design, result.id)} {result.seconds:.1f} "
            f"s{attempts}{known}{shares and f'  ({shares})'}",
            result.verdict,
            style=COLOURS[result.verdict],
            lane=lane,
            is_quiet=result.verdict in {Verdict.UPHELD, Verdict.UNSUPPORTED} and not known,
        )
        if result.verdict in {Verdict.VIOLATED, Verdict.INCONCLUSIVE, Verdict.HARNESS_ERROR}:
            spec, scenario = (
                self.choice.specs.get(result.design, result.design),
                result.id.partition("[")[0],
            )
            again = f"{self.choice.again} --design {spec} --only '@{scenario}' --seed {self.seed}"
            self.progress.message(card(result, again))

    def why_to_stop(self, result: RowResult) -> str | None:
        """Why nothing is judged after this row, if so."""
        if self.problem:
            return self.problem
        if self.choice.fail_fast and (result.fails or result.verdict is Verdict.HARNESS_ERROR):
            return "--fail-fast"
        if self.choice.max_seconds and time.monotonic() - self.began > self.choice.max_seconds:
            return "--max-seconds"
        return None

    def close(self, broker: str, why: str) -> Summary:
        """Write the summary, which is the end of the report."""
        self.progress.end()
        peak_mb, seconds = self.memory.stop(), time.monotonic() - self.began
        results = self.choice.results
        if self.choice.max_seconds and seconds > self.choice.max_seconds:
            self.limits_broken.append(f"{seconds:.0f} s of at most {self.choice.max_seconds:.0f} s")
        if self.choice.max_memory_mb and peak_mb > self.choice.max_memory_mb:
            self.limits_broken.append(f"{peak_mb} MiB of at most {self.choice.max_memory_mb} MiB")
        chosen = {name: len(rows) * self.choice.repeat for name, rows in self.choice.rows.items()}
        code = exit_code(results, sum(chosen.values()), limits_broken=bool(self.limits_broken))
        if (self.errors or self.problem) and code != 1:
            code = 3
        if self.interrupted:
            code = 130
        self.summary = Summary(
            format=FORMAT,
            partial=self.interrupted or len(results) < sum(chosen.values()),
            upheld=upheld.__version__,
            seed=self.seed,
            depth=self.choice.depth,
            slice=self.choice.slice,
            shard=self.choice.shard,
            repeat=self.choice.repeat,
            design_versions={manifest.name: manifest.version for manifest in self.choice.manifests},
            broker=broker,
            broker_why=why,
            versions=_versions(),
            promised=self.choice.promised
            or {name: len(rows) for name, rows in self.choice.rows.items()},
            chosen=chosen,
            judged={name: sum(r.design == name for r in results) for name in chosen},
            verdicts={v: sum(r.verdict is v for r in results) for v in Verdict},
            known_failures=sum(r.known is not None for r in results),
            untested=[g.id for g in self.choice.catalogue.guarantees.values() if not g.specified],
            seconds=round(seconds, 1),
            median_seconds=median_seconds(results),
            peak_memory_mb=peak_mb,
            cpu_s=cpu_seconds(results),
            limits_broken=self.limits_broken,
            exit_code=code,
        )
        self.writer.write(self.summary)
        self.writer.close()
        return self.summary


class Plugin(RunAccount):
    """One run's plugin."""

    def __init__(self, rig: Rig, choice: Choice, console: Console) -> None:
        super().__init__(choice, rig.out, rig.seed, console)
        self.rig, self.illustrated = rig, 0
        self.looked: Look | None = None  # at what had been taken when the row before ended

    # --- collection

    def pytest_configure(self, config: pytest.Config) -> None:
        """Bring the sentences; one that fails leaves Python's own traceback, since pytest's parses
        the source of every frame.
        """
        from upheld.steps import modules  # noqa: PLC0415  (steps register themselves where they are imported)

        config.option.tbstyle = "native"
        for module in modules():
            config.pluginmanager.register(module, module.__name__)

    @pytest.hookimpl(tryfirst=True)
    def pytest_bdd_apply_tag(self) -> bool:
        """Tags are the catalogue's, not pytest's marks."""
        return True

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Every scenario for every design, as often as asked."""
        if "design" in metafunc.fixturenames:
            names = [m.name for m in self.choice.manifests]
            metafunc.parametrize(
                "design", self.choice.manifests, ids=names, indirect=True, scope="session"
            )
            metafunc.parametrize("repetition", range(self.choice.repeat), indirect=True)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the chosen rows, one design after the other, those that bring most news first."""
        kept = [
            i
            for i in items
            if isinstance(i, pytest.Function)
            and self.row(i)[1].id in self.choice.rows[self.design_of(i).name]
        ]
        order = {key: place for place, key in enumerate(self.choice.keys())}
        kept.sort(key=lambda i: order[self.key(i)])
        items[:] = kept
        self.begin([self.key(i) for i in kept])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A suite that cannot be collected is the harness's fault."""
        if report.failed:
            self.errors.append(str(report.longrepr))
            self.progress.message(f"the suite cannot be collected: {report.longrepr}", "magenta")

    def pytest_internalerror(
        self, excrepr: object, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> bool:
        """Pytest itself, or this plugin, failed: one sentence for the person, the rest beside the
        other logs.
        """
        self.errors.append(str(excrepr))
        if isinstance(excinfo.value, OSError):
            self.problem = (
                f"The output folder {self.rig.out} cannot be written ({excinfo.value.strerror})."
            )
        elif isinstance(excinfo.value, MachineProblem):
            self.problem = str(excinfo.value)
        else:
            told = self.rig.out / "logs" / "harness.txt"
            told.write_text("".join(traceback.format_exception(excinfo.value)), encoding="utf-8")
            self.problem = (
                f"The harness failed ({excinfo.typename}: {excinfo.value}); {told} says where."
            )
        return True

    @staticmethod
    def design_of(item: pytest.Function) -> Manifest:
        """The design of an item."""
        manifest: Manifest = item.callspec.params["design"]  # type: ignore[assignment]
        return manifest

    def key(self, item: pytest.Function) -> RowKey:
        """The row of an item, as a run counts it."""
        repetition: int = item.callspec.params["repetition"]  # type: ignore[assignment]
        return RowKey(self.design_of(item).name, self.row(item)[1].id, repetition)

    def row(self, item: pytest.Function) -> tuple[Scenario, Row]:
        """The catalogue's scenario and row of an item."""
        template = scenario_wrapper_template_registry[item.obj]
        scenario = next(s for t in template.tags if (s := self.choice.catalogue.by_id.get(t)))
        cells = item.callspec.params.get("_pytest_bdd_example", {})
        return scenario, next(r for r in scenario.rows if dict(r.cells) == cells)

    # --- fixtures

    @pytest.fixture
    def design(self, request: pytest.FixtureRequest) -> Manifest:
        """The design under test."""
        manifest: Manifest = request.param
        return manifest

    @pytest.fixture
    def repetition(self, request: pytest.FixtureRequest) -> int:
        """Which of the repetitions asked for."""
        number: int = request.param
        return number

    @pytest.fixture(autouse=True)
    def trial(
        self, request: pytest.FixtureRequest, design: Manifest, repetition: int
    ) -> Iterator[Trial]:
        """A fresh attempt."""
        item = request.node
        attempt = item.stash[ATTEMPT] + repetition * ATTEMPTS
        # Each repetition keeps its history: one of them may be red.
        nth = f"-{repetition + 1}" if repetition else ""
        rig = self.rig
        row = self.row(item)[1]
        if ON_A_CLUSTER in row.tags:
            rig = rig.on_a_cluster()
        else:
            rig.end_cluster()
        trial = Trial(rig, design, row.id, attempt, nth)
        trial.tags = row.tags
        item.stash[TRIAL] = trial
        pool = self.rig.pool(design)
        if TIMED in row.tags:
            pool.rest()
        else:  # the instance that the next fault will ask for boots while this row is judged
            pool.prepare()
        yield trial
        trial.close(gently=not self.interrupted)

    # --- attempts and verdicts

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Function, nextitem: pytest.Item | None) -> bool:
        """Try until a mark was left, at most five times; then report."""
        began = time.monotonic()
        self.row_started(self.key(item))
        self.looked = self.looked or self.look()
        for attempt in range(ATTEMPTS):
            item.stash[ATTEMPT] = attempt
            item.stash[ENDED] = None
            last = attempt == ATTEMPTS - 1
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            if last or not isinstance(item.stash[ENDED], MarkMissed):
                break
            item.stash[TRIAL].history.close()  # the next attempt writes the same file anew
        result = self.result(item, time.monotonic() - began)
        self.report(result)
        if self.is_last_word(result):
            for report in reports:
                item.ihook.pytest_runtest_logreport(report=report)
        if why := self.why_to_stop(result):
            item.session.shouldstop = self.stopped = why
        return True

    def is_last_word(self, _: RowResult) -> bool:
        """Whether the row is not judged again."""
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Ctrl-C ends the run, in whatever guise it comes."""
        try:
            return (yield)
        except SystemError as error:
            if is_interrupt(error):
                raise KeyboardInterrupt from error
            raise

    pytest_runtest_setup = pytest_runtest_teardown = pytest_runtest_call

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Keep the first thing that ended the attempt."""
        if call.excinfo is not None and item.stash[ENDED] is None:
            item.stash[ENDED] = call.excinfo.value

    def result(self, item: pytest.Function, seconds: float) -> RowResult:
        """What the row came to, recorded in its history too."""
        scenario, row = self.row(item)
        manifest = self.design_of(item)
        ended, trial = item.stash[ENDED], item.stash.get(TRIAL, None)
        found = judged(ended or (trial.not_offered if trial else None))
        if found.verdict not in {Verdict.UPHELD, Verdict.UNSUPPORTED} and (
            trouble := self.trouble(ended)
        ):
            self.problem = trouble
            found = Judged(Verdict.HARNESS_ERROR, Reason.HARNESS_FAILED, trouble)
        known = manifest.known_failures.get(row.id) or manifest.known_failures.get(scenario.id)
        result = RowResult(
            design=manifest.name,
            id=row.id,
            guarantee=scenario.guarantee,
            name=scenario.name,
            repetition=item.callspec.params["repetition"],  # type: ignore[arg-type]
            verdict=found.verdict,
            code=found.code,
            reason=found.reason,
            known=" ".join(known) if known else None,
            anomalies=list(found.anomalies[:20]),
            totals=Counter(a.name for a in found.anomalies),
            attempts=item.stash[ATTEMPT] + 1,
            seconds=round(seconds, 2),
        )
        if trial:
            result.kills = trial.instances.kills
            result.marks = [m.model_dump(exclude={"kind"}) for m in trial.history.of(events.Mark)]
            result.entries = sum(
                a.input.totals.get("entries", 0) for a in trial.applications.values()
            )
            result.keys = sum(
                a.input.totals.get("accounts", 0) for a in trial.applications.values()
            )
            result.partitions = max((a.partitions for a in trial.applications.values()), default=0)
            result.waited_ms = trial.waited_ms() if found.verdict is Verdict.UPHELD else {}
            result.cost = self.cost(trial)
            result.history = str(trial.path.relative_to(self.rig.out))
            trial.history.add(
                events.Ended(
                    verdict=found.verdict,
                    code=found.code,
                    reason=found.reason,
                    anomalies=found.anomalies,
                    seconds=result.seconds,
                )
            )
            if found.verdict is Verdict.VIOLATED and self.illustrated < ILLUSTRATED:
                self.illustrated += 1
                drawing = trial.path.with_suffix(".svg")
                with suppress(OSError):  # without it nothing is lost
                    illustrate(trial.history, result, trial.path, drawing, SHRUNK_S)
                    result.picture = str(drawing.relative_to(self.rig.out))
            trial.history.close()
            del item.stash[TRIAL]  # a history is tens of megabytes, and the file holds it
            del item.stash[ENDED]  # so does the traceback of what ended it
        return result

    def look(self) -> Look:
        """Look at what has been taken so far, the cluster's nodes counted with the broker."""
        brokers = [self.rig.broker, *([self.rig.cluster.broker] if self.rig.cluster else [])]
        return look(pid for broker in brokers for pid in broker.pids)

    def cost(self, trial: Trial) -> Cost:
        """What the row took since the one before had ended."""
        assert self.looked
        before, self.looked = self.looked, self.look()
        found = cost(before, self.looked)
        found.peak_memory_mb = (trial.instances.peak_bytes >> 20) or None
        found.topics = len(trial.topics)
        found.topic_bytes = trial.topic_bytes
        return found

    def trouble(self, ended: BaseException | None) -> str | None:
        """What befell this machine, for which no design answers: a full disk, or the end of our
        broker.
        """
        for place in (self.rig.out, self.rig.run.scratch):
            if shutil.disk_usage(place).free < LEAST_ROOM_BYTES:
                return (
                    f"The disk of {place} is full, so nothing more can be judged; make room there."
                )
        if isinstance(ended, OSError) and ended.errno in FULL:
            return (
                f"Nothing more can be written below {self.rig.out} ({ended.strerror}); make room "
                "there."
            )
        for rig, log in ((self.rig, "broker.log"), (self.rig.cluster, "cluster.log")):
            if rig and rig.broker.ended(0):
                return (
                    f"The broker ended by itself; the last words of {self.rig.out / 'logs' / log} "
                    "may say why."
                )
        return None

    # --- the end

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Ctrl-C: what was judged stays judged.

        Pytest comes here as well when it stops by itself, which is none.
        """
        self.interrupted = excinfo.type is KeyboardInterrupt

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the summary and set the exit code; first of all, for who interrupts once may do it
        again.
        """
        broker = self.rig.broker
        session.exitstatus = self.close(f"{broker.kind} {broker.version}", broker.why).exit_code


ATTEMPT = pytest.StashKey[int]()
ENDED = pytest.StashKey[BaseException | None]()
TRIAL = pytest.StashKey[Trial]()


def _guarantee(row_id: str) -> str:
    return row_id.partition(".")[0]


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def arguments(out: Path) -> list[str]:
    """How pytest is called: hermetically, so that no addopts, conftest or plugin of others reaches
    a verdict.
    """
    suite = Path(__file__).parent / "suite"
    return [
        str(suite / "test_features.py"),
        "-c",
        str(suite / "pytest.ini"),
        "--rootdir",
        str(out),
        "--noconftest",
        "-p",
        "pytest_bdd.plugin",
        "-p",
        "no:terminal",
        "-p",
        "no:cacheprovider",
        "--junitxml",
        str(out / "junit.xml"),
    ]
