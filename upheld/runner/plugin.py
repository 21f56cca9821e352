"""The judge inside pytest: it chooses rows, makes attempts, and reports verdicts.

It turns what a scenario raised into a verdict. `upheld run` registers the plugin as an object. It
is installed nowhere, so it does nothing in other people's pytest.
"""

import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, cast

import pytest
from _pytest.runner import runtestprotocol
from pytest_bdd.scenario import scenario_wrapper_template_registry
from rich.console import Console

from upheld import garbage
from upheld.checks.strength import strength_of
from upheld.checks.timing import BUSY
from upheld.errors import MachineProblem, UsageProblem, harness_failed, is_interrupt, kept
from upheld.history import events, keeping
from upheld.history.narrowed import narrowed
from upheld.judging import prerequisites
from upheld.judging.claims import sentences_of
from upheld.judging.evidence import illustrate
from upheld.judging.usefulness import warnings
from upheld.kafka.failures import foreseen
from upheld.protocol.manifest import Manifest
from upheld.report import Cost, RowResult, Summary
from upheld.report.folder import HISTORIES
from upheld.runner import suite
from upheld.runner.account import RunAccount
from upheld.runner.choice import Choice
from upheld.runner.definitions import looked_up_once
from upheld.runner.trouble import trouble
from upheld.spec.gherkin import ON_A_CLUSTER, TIMED, Row, Scenario
from upheld.steps import modules
from upheld.supervisor.costs import Look, cost, look
from upheld.supervisor.host import is_left_by_others
from upheld.supervisor.interrupts import held
from upheld.threads import raise_failure
from upheld.trial.rig import Rig
from upheld.trial.trial import Asked, Trial
from upheld.ui.timeleft import RowKey
from upheld.verdicts import (
    ATTEMPTS,
    CLIENT_ATTEMPTS,
    DISTURBED_ATTEMPTS,
    ClientFailed,
    Disturbed,
    Judged,
    MarkMissed,
    ProxyFailed,
    Reason,
    Verdict,
    Violated,
    is_unforeseen,
    judged,
)

SHRUNK_S: Final = 0.5  # per history, since another row waits
ILLUSTRATED: Final = 20  # more pictures are of no use in a run; `judge` draws any
REPORTED_ANOMALIES: Final = 20
QUIET_WITHIN_S: Final = 60.0  # for a row that others have disturbed
# What pytest keeps of the last failure for a debugger, with all that its frames hold.
LAST_FAILURE: Final = ("last_type", "last_value", "last_traceback", "last_exc")


class Plugin(RunAccount):
    """The plugin of one run."""

    def __init__(self, rig: Rig, choice: Choice, console: Console) -> None:
        super().__init__(choice, rig.out, rig.seed, console)
        self.rig = rig
        self.illustrated = 0
        self.looked: Look | None = None  # the CPU-seconds taken when the last row ended
        self.is_alone = True  # whether no other row is judged beside
        self.is_never_quiet = False  # whether others have kept the cores for long

    # --- collection

    def pytest_configure(self, config: pytest.Config) -> None:
        """Register the sentences, and have each looked up once for all rows.

        The traceback of a failure in them is Python's own, since pytest's parses the source of
        every frame.
        """
        config.option.tbstyle = "native"
        suite.OWN[:] = map(str, self.choice.catalogue.own)
        for module in modules():
            config.pluginmanager.register(module, module.__name__)
        lookups = ExitStack()
        lookups.enter_context(looked_up_once())
        config.add_cleanup(lookups.close)

    @pytest.hookimpl(tryfirst=True)
    def pytest_bdd_apply_tag(self) -> bool:
        """Keep tags for the catalogue: they are no marks of pytest."""
        return True

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make an item of every scenario for every design, as often as asked."""
        if "design" in metafunc.fixturenames:
            names = [m.name for m in self.choice.manifests]
            metafunc.parametrize(
                "design", self.choice.manifests, ids=names, indirect=True, scope="session"
            )
            metafunc.parametrize("repetition", range(self.choice.repeat), indirect=True)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the chosen rows, design by design, those that bring most news first."""
        kept = [
            i
            for i in items
            if isinstance(i, pytest.Function)
            and self.row(i)[1].id in self.choice.rows[_design_of(i).name]
        ]
        order = {key: place for place, key in enumerate(self.choice.keys())}
        kept.sort(key=lambda i: order[self.key(i)])
        items[:] = kept
        self.begin([self.key(i) for i in kept])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Report a suite that cannot be collected as the harness's fault."""
        if report.failed:
            self.errors.append(str(report.longrepr))
            self.progress.message(f"the suite cannot be collected: {report.longrepr}", "magenta")

    def pytest_internalerror(
        self, excrepr: object, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> bool:
        """Tell a failure of pytest or of this plugin in one sentence.

        The rest goes to a file beside the other logs.
        """
        self.errors.append(str(excrepr))
        if isinstance(excinfo.value, OSError):
            self.problem = (
                f"The output folder {self.rig.out} cannot be written ({excinfo.value.strerror})."
            )
        elif isinstance(excinfo.value, MachineProblem):
            self.problem = str(excinfo.value)
        else:
            self.problem = harness_failed(excinfo.value, self._kept(excinfo.value))
        return True

    def _kept(self, error: BaseException) -> Path | None:
        """Write the traceback of a fault of ours beside the other logs; return its file."""
        return kept(error, self.rig.out / "logs")

    def key(self, item: pytest.Function) -> RowKey:
        """Return the row of an item, as a run counts it."""
        return RowKey(_design_of(item).name, self.row(item)[1].id, _repetition_of(item))

    def row(self, item: pytest.Function) -> tuple[Scenario, Row]:
        """Return the catalogue's scenario and row of an item."""
        template = scenario_wrapper_template_registry[item.obj]
        scenario = next(s for t in template.tags if (s := self.choice.catalogue.by_id.get(t)))
        cells = item.callspec.params.get("_pytest_bdd_example", {})
        return scenario, next(r for r in scenario.rows if dict(r.cells) == cells)

    # --- fixtures

    @pytest.fixture
    def design(self, request: pytest.FixtureRequest) -> Manifest:
        """Return the design under test."""
        manifest: Manifest = request.param
        return manifest

    @pytest.fixture
    def repetition(self, request: pytest.FixtureRequest) -> int:
        """Return the number of the repetition, from zero."""
        number: int = request.param
        return number

    @pytest.fixture(autouse=True)
    def trial(
        self, request: pytest.FixtureRequest, design: Manifest, repetition: int
    ) -> Iterator[Trial]:
        """Yield a new attempt, unless it is known before that the row cannot be judged."""
        item = request.node
        row = self.row(item)[1]
        prerequisites.demand(
            row, design, broker_is_ours=self.rig.broker.ours, is_secured=self.rig.is_secured
        )
        attempt = item.stash[ATTEMPT] + repetition * ATTEMPTS
        # Each repetition keeps its history: one of them may be violated.
        nth = f"-{repetition + 1}" if repetition else ""
        on_a_cluster = ON_A_CLUSTER in row.tags
        if not on_a_cluster:
            self.rig.end_cluster()
        rig = self.rig.of_a_row(design, on_a_cluster=on_a_cluster)
        trial = Trial(rig, design, Asked(row.id, sentences_of(row), row), attempt, nth)
        trial.tags = row.tags
        item.stash[TRIAL] = trial
        if TIMED in row.tags:
            self.rig.rest(design)
        else:  # an instance for the next fault boots while this row is judged
            self.rig.pool(design).prepare()
        yield trial
        ended = item.stash[ENDED]
        try:
            if isinstance(ended, Violated):
                item.stash[ENDED] = trial.looked_at(ended)
        finally:
            trial.close(gently=not self.interrupted)

    # --- attempts and verdicts

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Function, nextitem: pytest.Item | None) -> bool:
        """Try until a mark was left, at most five times; then report."""
        for name in LAST_FAILURE:
            vars(sys).pop(name, None)
        garbage.forget_ended()
        began = time.monotonic()
        ends: list[BaseException | None] = []
        self.row_started(self.key(item))
        self.looked = self.looked or self._look()
        for attempt in range(ATTEMPTS):
            item.stash[ATTEMPT] = attempt
            item.stash[ENDED] = None
            last = attempt == ATTEMPTS - 1
            runtestprotocol(item, log=False, nextitem=nextitem)
            ends.append(_end_of(item))
            if last or not self._is_tried_again(item, ends):
                break
            if trial := item.stash.get(TRIAL, None):
                trial.history.close()  # the next attempt writes over the file
        result = self.result(item, time.monotonic() - began)
        self.report(result)
        if why := self.why_to_stop(result):
            item.session.shouldstop = self.stopped = why
        return True

    def _is_tried_again(self, item: pytest.Function, ends: Sequence[BaseException | None]) -> bool:
        """Return whether an attempt is made again.

        After a failure of a client it is made by other clients. If others took the cores, it is
        made when they leave them.

        Args:
            item: The row.
            ends: The ends of all attempts at it.
        """
        ended = ends[-1]
        times = sum(type(end) is type(ended) for end in ends)
        if isinstance(ended, MarkMissed):
            return True
        if isinstance(ended, Disturbed):
            is_tried = times < DISTURBED_ATTEMPTS and self._is_quiet_again()
        else:
            is_tried = (
                isinstance(ended, ClientFailed)
                and times < CLIENT_ATTEMPTS
                and not trouble(self.rig, ended)
            )
            if is_tried:
                self.rig.renew_clients()
        if is_tried:
            self.progress.message(f"{self.row(item)[1].id} is tried again: {ended}", "magenta")
        return is_tried

    def _is_quiet_again(self) -> bool:
        """Return whether others leave the cores in time, unless they did not before in this run."""
        if self.is_alone and not self.is_never_quiet:
            self.is_never_quiet = not is_left_by_others(BUSY, QUIET_WITHIN_S)
        return self.is_alone and not self.is_never_quiet

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Let Ctrl-C end the run, even if it comes as a SystemError.

        A thread of the harness that died meanwhile ends the row.
        """
        try:
            value = yield
        except SystemError as error:
            if is_interrupt(error):
                raise KeyboardInterrupt from error
            raise
        raise_failure()
        return value

    pytest_runtest_setup = pytest_runtest_teardown = pytest_runtest_call

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Keep the first exception that ended the attempt, or a failure of the proxy."""
        if call.excinfo is None:
            return
        if item.stash[ENDED] is None or isinstance(call.excinfo.value, ProxyFailed):
            item.stash[ENDED] = foreseen(call.excinfo.value)

    def result(self, item: pytest.Function, seconds: float) -> RowResult:
        """Return the result of a row, and record it in the row's history too."""
        scenario, row = self.row(item)
        manifest = _design_of(item)
        ended = item.stash[ENDED]
        trial = item.stash.get(TRIAL, None)
        found = judged(trial.outcome(ended) if trial else ended)
        if isinstance(
            ended, UsageProblem
        ):  # such as a model that fails: no row can be judged by it
            self.refused = ended
            self.problem = str(ended)
        elif found.verdict not in {Verdict.UPHELD, Verdict.UNSUPPORTED} and (
            problem := trouble(self.rig, ended)
        ):
            self.problem = problem
            found = Judged(Verdict.HARNESS_ERROR, Reason.HARNESS_FAILED, problem)
        elif ended and found.code is Reason.HARNESS_FAILED and is_unforeseen(ended):
            found = found._replace(reason=harness_failed(ended, self._kept(ended)))
        result = RowResult(
            design=manifest.name,
            id=row.id,
            guarantee=scenario.guarantee,
            name=scenario.name,
            repetition=_repetition_of(item),
            verdict=found.verdict,
            code=found.code,
            reason=found.reason,
            anomalies=list(found.anomalies[:REPORTED_ANOMALIES]),
            totals=Counter(a.name for a in found.anomalies),
            attempts=item.stash[ATTEMPT] + 1,
            seconds=round(seconds, 2),
        )
        self._note_waivers(result, manifest)
        if trial:
            result.kills = trial.instances.kills
            result.marks = [
                mark.model_dump(exclude={"kind", "logs"}) for mark in trial.history.of(events.Mark)
            ]
            result.narrowed = narrowed(trial.history)
            rests = strength_of(trial.history)
            result.oracle = rests.oracle
            result.rests_on = list(rests.rests_on)
            result.lacks = list(rests.lacks)
            result.power = rests.power(row.id)
            result.entries = sum(
                a.input.totals.get("entries", 0) for a in trial.applications.values()
            )
            result.keys = sum(
                a.input.totals.get("accounts", 0) for a in trial.applications.values()
            )
            result.partitions = max((a.partitions for a in trial.applications.values()), default=0)
            result.waited_ms = trial.waited_ms() if found.verdict is Verdict.UPHELD else {}
            if found.verdict is Verdict.UPHELD:
                result.states, result.states_shown = trial.states_shown()
                result.warnings = list(warnings(trial.history))
            result.cost = self._cost(trial)
            trial.history.add(
                events.Ended(
                    verdict=found.verdict,
                    code=found.code,
                    reason=found.reason,
                    anomalies=found.anomalies,
                    seconds=result.seconds,
                )
            )
            result.history_sha256 = trial.history.digest.sha256
            if found.verdict is Verdict.VIOLATED and self.illustrated < ILLUSTRATED:
                self.illustrated += 1
                drawing = trial.path.with_suffix(".svg")
                with suppress(OSError):  # the history holds all that a picture shows
                    illustrate(trial.history, result, trial.path, drawing, SHRUNK_S)
                    result.picture = f"{HISTORIES}/{drawing.name}"
            trial.history.close()
            file = keeping.kept(trial.path, self.choice.keep, is_failed=result.has_card)
            result.history = f"{HISTORIES}/{file.name}" if file else ""
            del item.stash[TRIAL]  # a history is tens of megabytes, and the file holds it
            del item.stash[ENDED]  # and so is the traceback of its end
        return result

    def _note_waivers(self, result: RowResult, manifest: Manifest) -> None:
        """Note in a row whether it is a known failure, or why it is none any more."""
        today = self.choice.today
        for waiver in manifest.waivers(result.id, result.scenario):
            if lapsed := waiver.lapsed(today, manifest.version):
                result.lapsed = result.lapsed or lapsed
            elif result.known is None:
                result.known = str(waiver)
                result.known_until = str(waiver.until or "")
                result.known_days = waiver.days_left(today)

    def _look(self) -> Look:
        """Return the CPU-seconds so far; the cluster's nodes count as the broker's."""
        brokers = [self.rig.broker, *([self.rig.cluster.broker] if self.rig.cluster else [])]
        return look(pid for broker in brokers for pid in broker.pids)

    def _cost(self, trial: Trial) -> Cost:
        """Return the cost of the row since the last one had ended."""
        assert self.looked
        now = self._look()
        found = cost(self.looked, now)
        self.looked = now
        found.peak_memory_mb = (trial.instances.peak_bytes >> 20) or None
        found.topics = len(trial.topics)
        found.topic_bytes = trial.topic_bytes
        return found

    # --- the end

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note Ctrl-C; rows that were judged stay judged.

        Pytest also comes here when it stops by itself, which is no Ctrl-C.
        """
        self.interrupted = excinfo.type is KeyboardInterrupt

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Write the report to its end, and set the exit code.

        This is the first thing at the end: a user who interrupts once may do it again, and that
        cuts nothing of it.
        """
        with held():
            session.exitstatus = self.finish().exit_code
            yield

    def finish(self) -> Summary:
        """Write the summary of the run on its broker, and return it."""
        broker = self.rig.broker
        return self.close(f"{broker.kind} {broker.version}", broker.why)


ATTEMPT = pytest.StashKey[int]()
ENDED = pytest.StashKey[BaseException | None]()
TRIAL = pytest.StashKey[Trial]()


def arguments(out: Path) -> list[str]:
    """Return pytest's arguments, which keep out addopts, conftest and other plugins."""
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
        "-p",
        "no:unraisableexception",  # it would keep an interrupt that a finalizer has swallowed
    ]


def _end_of(item: pytest.Function) -> BaseException | None:
    """Return what decides the verdict of an attempt."""
    trial = item.stash.get(TRIAL, None)
    ended = item.stash[ENDED]
    return trial.outcome(ended) if trial else ended


def _design_of(item: pytest.Function) -> Manifest:
    return cast(Manifest, item.callspec.params["design"])


def _repetition_of(item: pytest.Function) -> int:
    return cast(int, item.callspec.params["repetition"])
