"""The judge inside pytest on a suite of two scenarios whose ends stand here.

Held are attempts, verdicts and codes. No Kafka is started.
"""

import errno
import io
import json
import os
import re
import signal
import weakref
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from confluent_kafka import KafkaError, KafkaException
from hostile import HOSTILE, is_plain
from reports import summary as made_summary
from rich.console import Console
from uncollected import uncollected

import upheld
from upheld.cli.run import closing
from upheld.errors import MachineProblem, UsageProblem, to_report
from upheld.history import History
from upheld.history.reading import read as read_history
from upheld.judging import prerequisites
from upheld.protocol.manifest import Manifest
from upheld.protocol.waivers import Waiver
from upheld.report import RowResult, Summary, hints, read
from upheld.report.baseline import Baseline, worst
from upheld.runner import plugin
from upheld.runner.choice import Choice, First
from upheld.runner.plugin import Plugin, arguments
from upheld.spec import catalogue, kills
from upheld.spec.durations import Durations, Recorded
from upheld.spec.gherkin import Row
from upheld.supervisor.interrupts import heard
from upheld.trial.trial import Trial
from upheld.ui.progress import UNREAD
from upheld.verdicts import (
    ATTEMPTS,
    DISTURBED_ATTEMPTS,
    AdapterBreach,
    Cannot,
    Disturbed,
    Inconclusive,
    MachineLacks,
    MarkMissed,
    NotOffered,
    ProxyFailed,
    Reason,
    Undeclared,
    Verdict,
    Violated,
)

GUARANTEES = """
[tags]
replay = "a family"
[sources]
article = "An article"
[G1]
promise = "Something is kept."
family = "replay"
programs = ["relay"]
source = "article"
section = "A section"
strength = "documented"
since = "0.1.0"
status = "specified"
"""
FEATURE = """
@replay
Feature: Two ends
  @G1.first
  Scenario: the first end is what was written
    Given relay waits in mode exactly_once
    When the end of G1.first comes
  @G1.second
  Scenario: the second end is what was written
    Given relay waits in mode exactly_once
    When the end of G1.second comes
"""
SUITE = """
import sys
from pytest_bdd import given, parsers, scenarios, when
scenarios(FOLDER)
@given("relay waits in mode exactly_once")
def waits(): pass
@when(parsers.re("the end of (?P<name>.+) comes"))
def comes(name, trial): sys.modules[MODULE].come(name, trial.application_id)
"""
KILLS = kills.load()
FIRST = "G1.first[relay-exactly_once]"
SECOND = "G1.second[relay-exactly_once]"
COMING: dict[str, list[BaseException | Callable[[], object] | None]] = {}
SEEN: list[tuple[str, str]] = []  # scenario and application id of each attempt


def come(name: str, application_id: str) -> None:
    """Let the next end of a scenario come; the last one written stays."""
    SEEN.append((name, application_id))
    ends = COMING.get(name, [None])
    end = ends.pop(0) if len(ends) > 1 else ends[0]
    if isinstance(end, BaseException):
        raise end
    if end is not None:
        end()


class Run:
    """A run over the two scenarios, on a rig where nothing is real."""

    def __init__(self, folder: Path) -> None:
        features = folder / "features"
        self.out = folder / "out"
        features.mkdir()
        (self.out / "logs").mkdir(parents=True)
        (features / "guarantees.toml").write_text(GUARANTEES)
        (features / "two.feature").write_text(FEATURE)
        self.suite = folder / "suite.py"
        self.suite.write_text(
            SUITE.replace("FOLDER", repr(str(features))).replace("MODULE", repr(__name__))
        )
        self.found = catalogue.load(features)
        self.broker_ends = False
        self.renewed: list[int] = []  # attempts made before the clients were replaced
        self.delete: Callable[[object], None] = lambda _: None
        self.said = io.StringIO()
        self.gate: Plugin
        self.plugins: list[object] = []

    def judge(
        self, *, known: dict[str, Any] | None = None, **options: Any
    ) -> tuple[dict[str, str], Summary]:
        """Return the verdict of each row, and the summary, as the report has them."""
        manifest = Manifest(
            folder=self.out,
            name="fake",
            version="1",
            command=("true",),
            programs=("relay",),
            modes=("exactly_once",),
            known_failures=known or {},
        )
        rig: Any = SimpleNamespace(
            histories=self.out / "history",
            run=SimpleNamespace(run_id="0" * 12, scratch=self.out),
            broker=SimpleNamespace(
                kind="no",
                version="1",
                why="a test",
                ours=True,
                ended=lambda _: self.broker_ends,
                pids=[],
            ),
            reading=SimpleNamespace(clear=self.delete, sizes=lambda _: {}),
            pool=lambda _: SimpleNamespace(prepare=lambda: None),
            rest=lambda _: None,
            cluster=None,
            is_secured=False,
            end_cluster=lambda: None,
            of_a_row=lambda _design, **_asked: rig,
            end_row=lambda: None,
            renew_clients=lambda: self.renewed.append(len(SEEN)),
            out=self.out,
            seed=7,
            time_scale=1.0,
        )
        choice = Choice([manifest], self.found, {"fake": set(self.found.by_row)}, **options)
        self.gate = Plugin(rig, choice, console=Console(file=self.said, width=1000))
        # Every test's suite has the same name.
        own = ["--import-mode", "importlib", "--assert", "plain"]
        plugins = [self.gate, *self.plugins]
        pytest.main([str(self.suite), *arguments(self.out)[1:], *own], plugins=plugins)
        rows, summary = read(self.out / "report.jsonl")
        assert summary == self.gate.summary
        return {row.id: row.verdict for row in rows}, summary


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a run whose ends the test writes into COMING."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    COMING.clear()
    SEEN.clear()
    return Run(tmp_path)


NULL = SystemError("<method 'flush' of 'Producer'> returned NULL without setting an exception")
TIMED_OUT = KafkaException(KafkaError(KafkaError._TIMED_OUT))


@pytest.mark.parametrize("failure", [NULL, TIMED_OUT])
def test_a_client_of_the_harness_that_fails_costs_an_attempt(
    run: Run, failure: BaseException
) -> None:
    """The next attempt has other clients and another application id, and is judged."""
    COMING["G1.first"] = [failure, None]

    verdicts, summary = run.judge()

    rows, _ = read(run.out / "report.jsonl")
    assert verdicts == {FIRST: "upheld", SECOND: "upheld"}
    assert (rows[0].attempts, run.renewed, summary.exit_code) == (2, [1], 0)
    assert len({application_id for _, application_id in SEEN}) == 3
    assert f"{FIRST} is tried again: the harness's own Kafka client failed" in run.said.getvalue()


def test_a_client_of_the_harness_that_always_fails_is_one_sentence(run: Run) -> None:
    """After three attempts nothing is proved, and no fault is to be reported."""
    COMING["G1.first"] = [NULL]

    verdicts, summary = run.judge()

    rows, _ = read(run.out / "report.jsonl")
    assert verdicts == {FIRST: "harness-error", SECOND: "upheld"}
    assert (rows[0].attempts, rows[0].code, summary.exit_code) == (3, Reason.CLIENT_FAILED, 3)
    assert rows[0].reason == (
        f"the harness's own Kafka client failed (SystemError: {NULL}), "
        "which is no fault of the design"
    )


@pytest.mark.parametrize("end", [AdapterBreach("no"), Violated.one("stuck", "x"), MarkMissed("x")])
def test_what_the_proxy_cannot_read_counts_before_what_follows_from_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, end: BaseException
) -> None:
    """Its client fails then, and neither the adapter nor the design is to blame."""

    def close(_: Trial, **__: bool) -> None:
        raise ProxyFailed("the wire carries what the proxy cannot read: fetch v99")

    monkeypatch.setattr(Trial, "close", close)
    COMING["G1.first"] = [end]

    run.judge()

    rows, _ = read(run.out / "report.jsonl")
    assert (rows[0].verdict, rows[0].code) == (Verdict.HARNESS_ERROR, Reason.HARNESS_FAILED)
    assert rows[0].attempts == 1
    assert "fetch v99" in rows[0].reason


def test_a_client_is_not_tried_again_without_its_broker(run: Run) -> None:
    """The broker's end is the reason then."""
    COMING["G1.first"] = [TIMED_OUT]
    run.broker_ends = True

    run.judge()

    rows, _ = read(run.out / "report.jsonl")
    assert rows[0].attempts == 1
    assert "The broker ended by itself" in rows[0].reason


def test_a_mark_that_is_never_left_is_inconclusive_after_five_attempts(run: Run) -> None:
    """Without a mark no row is upheld, and the trying ends after five attempts.

    Every attempt is under an application id of its own.
    """
    COMING["G1.first"] = [MarkMissed("the fault did not happen")]

    verdicts, summary = run.judge()

    rows, _ = read(run.out / "report.jsonl")
    assert verdicts == {FIRST: "inconclusive", SECOND: "upheld"}
    assert (rows[0].attempts, rows[0].reason) == (
        ATTEMPTS,
        "in 5 attempts: the fault did not happen",
    )
    assert len({application for name, application in SEEN if name == "G1.first"}) == ATTEMPTS == 5
    assert (summary.exit_code, summary.partial) == (2, False)


@pytest.mark.parametrize("ends", [lambda: None, lambda: Violated.one("stuck", "x"), AdapterBreach])
def test_the_history_of_a_row_is_gone_when_the_next_one_is_judged(
    run: Run, monkeypatch: pytest.MonkeyPatch, ends: Callable[[], BaseException | None]
) -> None:
    """Many rows take no more memory than one, also where tracebacks hold frames."""
    kept: list[weakref.ref[History]] = []
    alive: list[int] = []

    def made(*asked: Any) -> Trial:
        trial = Trial(*asked)
        kept.append(weakref.ref(trial.history))
        return trial

    def end() -> None:
        if problem := ends():
            raise problem

    monkeypatch.setattr(plugin, "Trial", made)
    COMING["G1.first"] = [end]
    COMING["G1.second"] = [lambda: alive.append(sum(each() is not None for each in kept))]

    with uncollected():
        run.judge()

    assert (len(kept), alive) == (2, [1])


DISTURBED = Disturbed("k is late, but others took 50% of the cores meanwhile")


@pytest.mark.parametrize(
    ("ends", "verdict", "attempts"),
    [
        ([DISTURBED, None], "upheld", 2),
        ([DISTURBED, Violated.one("late", "k is late")], "violated", 2),
        ([DISTURBED, DISTURBED, DISTURBED, None], "inconclusive", DISTURBED_ATTEMPTS),
    ],
)
def test_a_row_that_others_disturb_is_tried_again_when_they_leave_the_cores(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    ends: list[BaseException | None],
    verdict: str,
    attempts: int,
) -> None:
    """A machine that is quiet for a moment proves what a busy one cannot."""
    monkeypatch.setattr(plugin, "is_left_by_others", lambda _most, _within_s: True)
    COMING["G1.first"] = ends

    verdicts, _ = run.judge()

    assert verdicts[FIRST] == verdict
    assert read(run.out / "report.jsonl")[0][0].attempts == attempts
    assert f"{FIRST} is tried again: k is late" in run.said.getvalue()


def test_a_machine_that_is_never_quiet_is_waited_for_once(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each further row would wait in vain, too."""
    waited: list[float] = []
    monkeypatch.setattr(plugin, "is_left_by_others", lambda _, within_s: waited.append(within_s))
    COMING["G1.first"] = [DISTURBED]
    COMING["G1.second"] = [DISTURBED]

    verdicts, _ = run.judge()

    assert set(verdicts.values()) == {"inconclusive"}
    assert waited == [plugin.QUIET_WITHIN_S]


def test_a_mark_that_is_left_at_the_second_attempt_is_enough(run: Run) -> None:
    """The verdict is that of the attempt whose fault happened.

    The history is that attempt's alone.
    """
    COMING["G1.first"] = [MarkMissed("not yet"), None]

    verdicts, summary = run.judge()

    rows, _ = read(run.out / "report.jsonl")
    assert (verdicts[FIRST], rows[0].attempts, summary.exit_code) == ("upheld", 2, 0)
    assert read_history(run.out / rows[0].history).begun.attempt == 1


@pytest.mark.parametrize(
    ("end", "verdict", "code"),
    [
        (None, "upheld", 0),
        (NotOffered("not in this design"), "unsupported", 0),
        (Inconclusive("the canary was slow"), "inconclusive", 2),
        (Violated.one("lost", "one is missing"), "violated", 1),
        (AdapterBreach("said nonsense"), "harness-error", 3),
        (MachineProblem("no port"), "harness-error", 3),
        (ZeroDivisionError("ours"), "harness-error", 3),
    ],
)
def test_how_a_scenario_ends_is_its_verdict(
    run: Run, end: BaseException | None, verdict: str, code: int
) -> None:
    """One attempt each: only a missed mark is tried again."""
    COMING["G1.first"] = [end, None]

    verdicts, summary = run.judge()

    assert (verdicts, summary.exit_code) == ({FIRST: verdict, SECOND: "upheld"}, code)
    assert read(run.out / "report.jsonl")[0][0].attempts == 1


def test_what_is_known_before_is_said_before(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row is not begun, nothing is written for it, and its reason is printed."""

    def demand(row: Row, *_: object, **__: object) -> None:
        raise NotOffered("fake answers for no key")

    monkeypatch.setattr(prerequisites, "demand", demand)

    verdicts, _ = run.judge()

    rows, summary = read(run.out / "report.jsonl")
    assert SEEN == []
    assert verdicts == {FIRST: "unsupported", SECOND: "unsupported"}
    assert [(row.reason, row.code, row.history) for row in rows] == [
        ("fake answers for no key", "not-offered", "")
    ] * 2
    assert not (run.out / "history").exists()
    assert re.search(rf"unsupported {re.escape(FIRST)} .*: fake answers", run.said.getvalue())
    reason = f"unsupported, since fake answers for no key: {FIRST}, {SECOND}\n"
    assert closing(summary, run.out, rows).startswith(reason)


def test_fail_fast_stops_at_the_first_row_that_fails(run: Run) -> None:
    """Rows that were not judged are counted: the run is partial."""
    COMING["G1.first"] = [Violated.one("lost", "one is missing")]

    verdicts, summary = run.judge(fail_fast=True)

    assert verdicts == {FIRST: "violated"}
    assert (summary.exit_code, summary.partial, summary.judged, summary.chosen) == (
        1,
        True,
        {"fake": 1},
        {"fake": 2},
    )


def test_fail_fast_passes_a_known_failure_and_stops_where_it_is_upheld(run: Run) -> None:
    """A known failure fails no run; the day it passes it does."""
    COMING["G1.first"] = [Violated.one("lost", "one is missing")]

    verdicts, summary = run.judge(
        fail_fast=True, known={"G1.first": ("hard", "link"), "G1.second": ("odd", "link")}
    )

    assert verdicts == {FIRST: "violated", SECOND: "upheld"}
    assert (summary.exit_code, summary.known_failures) == (1, 2)
    assert run.said.getvalue().count("(known failure)") == 2


def test_a_waiver_that_has_ended_excuses_nothing(run: Run) -> None:
    """The row fails the run, and the card and a hint say what it was."""
    COMING["G1.first"] = [Violated.one("lost", "one is missing")]
    waiver = Waiver("hard", "link", owner="ann", until=date(2026, 12, 1))

    for day, code in {30: 0, 1: 1}.items():
        today = date(2026, 11 if day == 30 else 12, day)
        _, summary = run.judge(known={"G1.first": waiver}, today=today)
        assert (summary.exit_code, summary.known_failures) == (code, 1 - code)

    rows, _ = read(run.out / "report.jsonl")
    said = "a known failure until 2026-12-01 alone: hard link (owner ann, until 2026-12-01)"
    assert [(row.known, row.lapsed) for row in rows] == [(None, said), (None, "")]
    assert f"  waiver    {said}" in run.said.getvalue()
    assert f"fake {FIRST} was {said}; it counts as any other row" in list(hints(rows, KILLS))


def test_a_waiver_of_a_row_that_has_ended_leaves_that_of_its_scenario(run: Run) -> None:
    """The line of the scenario is enough, and its days are shown."""
    COMING["G1.first"] = [Violated.one("lost", "one is missing")]
    ended = Waiver("hard", "link", fixed_in="1")
    known = {FIRST: ended, "G1.first": Waiver("odd", "link", until=date(2026, 12, 24))}

    _, summary = run.judge(known=known, today=date(2026, 12, 20))

    rows, _ = read(run.out / "report.jsonl")
    assert (summary.exit_code, summary.known_failures) == (0, 1)
    assert (rows[0].known, rows[0].known_until, rows[0].known_days) == (
        "odd link (until 2026-12-24)",
        "2026-12-24",
        4,
    )


def test_a_limit_of_an_engine_that_is_new_fails_the_run(run: Run) -> None:
    """All of its rows are judged, and the summary says why the run fails."""
    verdicts, summary = run.judge(new_limits=["--strict: fake cannot swim"])

    assert verdicts == {FIRST: "upheld", SECOND: "upheld"}
    assert (summary.exit_code, summary.limits_broken) == (1, ["--strict: fake cannot swim"])


@pytest.mark.parametrize(
    ("ended", "is_declared"),
    [
        (NotOffered("fake keeps no state in redis (capability redis)"), True),
        (Cannot("fake cannot swim"), True),
        (Undeclared("the clients of fake send no EndTxn"), False),
        (MachineLacks("this machine has no redis-server"), False),
    ],
)
def test_strict_accepts_what_is_declared_alone(
    run: Run, ended: NotOffered, is_declared: bool
) -> None:
    """A lack that no manifest declares fails the run, and its reason is named."""
    COMING["G1.first"] = [ended]

    _, strict = run.judge(is_strict=True)

    said = (
        []
        if is_declared
        else [f"--strict: unsupported and nowhere declared, since {ended}: {FIRST}"]
    )
    assert strict.limits_broken == said
    assert strict.exit_code == (0 if is_declared else 1)


def test_without_strict_nothing_has_to_be_declared(run: Run) -> None:
    """An unsupported row is counted, and fails no run."""
    COMING["G1.first"] = [MachineLacks("this machine has no redis-server")]

    _, summary = run.judge()

    assert (summary.exit_code, summary.limits_broken) == (0, [])


def test_a_limit_of_time_stops_the_run_and_fails_it(run: Run) -> None:
    """It says which limit, though all that was judged was upheld."""
    verdicts, summary = run.judge(max_seconds=1e-9)

    assert verdicts == {FIRST: "upheld"}
    assert (summary.exit_code, summary.partial) == (1, True)
    (broken,) = summary.limits_broken
    assert re.fullmatch(r"\d+ s of at most 0 s", broken)


def test_the_cheapest_row_comes_first(run: Run) -> None:
    """The cheapest row comes first, whatever its place in the file.

    Each row is a line with its number.
    """
    durations = Durations(designs={"fake": Recorded(rows_s={FIRST: 2, SECOND: 1})})

    run.judge(durations=durations)

    rows, _ = read(run.out / "report.jsonl")
    assert [row.id for row in rows] == [SECOND, FIRST]
    lines = [line for line in run.said.getvalue().splitlines() if line.startswith("[")]
    assert [line.rpartition(" 0.")[0] for line in lines] == [
        f"[1/2] upheld {SECOND}",
        f"[2/2] upheld {FIRST}",
    ]
    assert run.gate.left_out() == ""


def test_what_failed_last_time_comes_first(run: Run) -> None:
    """Its cost does not count, and the other rows follow in their order."""
    durations = Durations(designs={"fake": Recorded(rows_s={FIRST: 1, SECOND: 2})})

    run.judge(durations=durations, first=First("last.jsonl", {"fake": {SECOND}}))

    rows, _ = read(run.out / "report.jsonl")
    assert [row.id for row in rows] == [SECOND, FIRST]


def baseline(**verdicts: Verdict) -> Baseline:
    """Return a baseline in which the rows had these verdicts."""
    rows = [
        RowResult(design="fake", id=name, guarantee="G1", name="x", verdict=verdict, seconds=1)
        for name, verdict in zip((FIRST, SECOND), verdicts.values(), strict=False)
    ]
    expected = {"fake": {FIRST, SECOND}}
    return Baseline("last.jsonl", worst(rows), made_summary(), expected=expected)


def test_a_run_fails_on_what_got_worse_since_its_baseline(run: Run) -> None:
    """A row that declined fails no run by itself; the report says what it was."""
    COMING["G1.first"] = [Cannot("fake cannot swim")]

    _, summary = run.judge(baseline=baseline(first=Verdict.UPHELD, second=Verdict.UPHELD))

    rows, _ = read(run.out / "report.jsonl")
    assert (summary.exit_code, summary.limits_broken) == (1, ["--baseline: 1 row got worse"])
    assert summary.baseline
    assert [(each.id, each.was, each.now) for each in summary.baseline.worse] == [
        (FIRST, "upheld", "unsupported")
    ]
    assert [row.before for row in rows] == ["upheld", "upheld"]


def test_a_run_does_not_fail_on_what_was_as_bad(run: Run) -> None:
    """--fail-fast goes on too, and a person is told."""
    COMING["G1.first"] = [Violated.one("lost", "one is missing")]
    before = baseline(first=Verdict.VIOLATED, second=Verdict.UPHELD)

    verdicts, summary = run.judge(fail_fast=True, baseline=before)

    assert verdicts == {FIRST: "violated", SECOND: "upheld"}
    assert (summary.exit_code, summary.baseline and summary.baseline.as_bad) == (0, 1)
    assert "  (as bad in the baseline)\n" in run.said.getvalue()


def test_fail_fast_stops_at_the_first_row_that_got_worse(run: Run) -> None:
    """Rows that it left out are missed too."""
    COMING["G1.first"] = [Inconclusive("too slow")]
    before = baseline(first=Verdict.UPHELD, second=Verdict.UPHELD)

    verdicts, summary = run.judge(fail_fast=True, baseline=before)

    assert verdicts == {FIRST: "inconclusive"}
    assert (summary.exit_code, summary.partial) == (1, True)
    assert summary.limits_broken == ["--baseline: 2 rows got worse"]


@pytest.mark.parametrize(
    ("end", "options", "said"),
    [
        (
            None,
            {"max_seconds": 1e-9},
            "--max-seconds: 1 of 2 rows left out; every guarantee has a verdict",
        ),
        (KeyboardInterrupt(), {}, "Ctrl-C: 2 of 2 rows left out; no verdict on G1"),
        (
            Violated.one("lost", "x"),
            {"fail_fast": True},
            "--fail-fast: 1 of 2 rows left out; every guarantee has a verdict",
        ),
    ],
    ids=["limit", "ctrl-c", "fail-fast"],
)
def test_what_a_run_left_out_is_said(
    run: Run, end: Any, options: dict[str, Any], said: str
) -> None:
    """The run says how many rows of how many it left out, and why.

    It says which guarantees have no verdict thereby.
    """
    COMING["G1.first"] = [end]

    _, summary = run.judge(**options)

    assert run.gate.left_out() == said
    assert summary.partial
    judged = len(run.gate.choice.results)
    assert f"partial: {judged} of 2 rows were judged" in closing(summary, run.out).splitlines()


def test_a_red_card_is_printed_at_once(run: Run) -> None:
    """A card stands below its row's line, before the next row is judged.

    It names the design if there are several.
    """
    seen: list[str] = []
    COMING["G1.first"] = [Violated.one("lost", "one is missing")]
    COMING["G1.second"] = [lambda: seen.append(run.said.getvalue())]

    run.judge(known={"G1.second": ("odd", "link")})

    (before,) = seen
    assert f"[1/2] violated {FIRST} 0." in before
    assert f"VIOLATED  {FIRST}  fake\n" in before
    assert f"[2/2] upheld {SECOND} 0." in run.said.getvalue()
    assert " s  (known failure)\n" in run.said.getvalue()


def test_a_limit_of_memory_fails_the_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The peak of the whole process tree counts."""
    monkeypatch.setattr("upheld.runner.account.Memory.stop", lambda _: 300)

    verdicts, summary = run.judge(max_memory_mb=200)

    assert len(verdicts) == 2
    assert (summary.exit_code, summary.limits_broken) == (1, ["300 MiB of at most 200 MiB"])


def in_a_call_of_the_client() -> None:
    """Raise what Python makes of Ctrl-C in a call of the client."""
    raise SystemError(
        "<built-in method> returned a result with an exception set"
    ) from KeyboardInterrupt()


@pytest.mark.parametrize("end", [KeyboardInterrupt(), in_a_call_of_the_client])
def test_an_interrupt_leaves_a_report_that_says_partial(run: Run, end: Any) -> None:
    """Judged rows stay, the summary says partial, and the code is the shell's.

    The client hides no interrupt.
    """
    COMING["G1.second"] = [end]

    verdicts, summary = run.judge()

    assert verdicts == {FIRST: "upheld"}
    assert (summary.exit_code, summary.partial, run.gate.interrupted) == (130, True, True)


def test_an_interrupt_while_it_is_cleaned_up_finds_the_summary_written(run: Run) -> None:
    """A user who presses Ctrl-C twice loses no judged row."""
    COMING["G1.second"] = [KeyboardInterrupt()]
    deleted: list[object] = []

    def delete(topics: object) -> None:
        deleted.append(topics)
        if len(deleted) == 2:
            raise KeyboardInterrupt

    run.delete = delete

    with pytest.raises(KeyboardInterrupt):
        run.judge()

    rows, summary = read(run.out / "report.jsonl")
    assert len(deleted) == 2
    assert ([row.id for row in rows], summary.exit_code, summary.partial) == ([FIRST], 130, True)


class InterruptsTheEnd:
    """A user who presses Ctrl-C when pytest has begun to end."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Press Ctrl-C before any file of the end is written."""
        os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_at_the_end_of_all_finds_both_files_written(run: Run) -> None:
    """The summary and junit.xml are whole; the interrupt comes after them."""
    run.plugins = [InterruptsTheEnd()]

    with heard(), pytest.raises(KeyboardInterrupt):
        run.judge()

    rows, summary = read(run.out / "report.jsonl")
    assert [row.id for row in rows] == [FIRST, SECOND]
    assert not summary.partial
    assert len(list(ElementTree.parse(run.out / "junit.xml").iter("testcase"))) == 2


@pytest.mark.parametrize(
    "end", [Violated.one("stuck", "it exited with 1"), OSError(errno.ENOSPC, "No space left")]
)
def test_a_full_disk_blames_no_design(
    run: Run, monkeypatch: pytest.MonkeyPatch, end: BaseException
) -> None:
    """A design that dies because its log cannot be written has violated nothing.

    The run ends with exit 3 and one sentence.
    """
    COMING["G1.first"] = [end]
    if isinstance(end, Violated):
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100))

    verdicts, summary = run.judge()

    assert verdicts == {FIRST: "harness-error"}
    assert (summary.exit_code, summary.partial) == (3, True)
    assert run.gate.problem is not None
    assert run.gate.problem.endswith("; make room there.")


def test_a_broker_that_ended_blames_no_design(run: Run) -> None:
    """No design processes anything without a broker.

    Rows that were judged before it ended stay.
    """

    def end() -> None:
        run.broker_ends = True
        raise Violated.one("stuck", "it processes no more")

    COMING["G1.second"] = [end]

    verdicts, summary = run.judge()

    assert verdicts == {FIRST: "upheld", SECOND: "harness-error"}
    assert summary.exit_code == 3
    assert "The broker ended by itself" in (run.gate.problem or "")


def test_a_file_of_the_user_that_fails_ends_the_run(run: Run) -> None:
    """A model that raises ends the run with exit 4, and what was judged stays."""
    COMING["G1.second"] = [UsageProblem("The model orders.py:ORDERS raises KeyError: 'n'.")]

    verdicts, summary = run.judge()

    assert verdicts == {FIRST: "upheld", SECOND: "harness-error"}
    assert summary.exit_code == 4
    assert run.gate.problem == "The model orders.py:ORDERS raises KeyError: 'n'."
    assert isinstance(run.gate.refused, UsageProblem)


def test_a_report_that_cannot_be_written_keeps_what_was(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk is full at the second row, the first row stays.

    No traceback is printed.
    """
    written: list[str] = []

    def write(self: Any, line: Any) -> None:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(line.model_dump_json())
        (run.out / "report.jsonl").write_text(written[0] + "\n")

    monkeypatch.setattr("upheld.report.Writer.write", write)

    with pytest.raises(OSError, match="No space left"):
        run.judge()

    assert json.loads((run.out / "report.jsonl").read_text())["id"] == FIRST
    assert (
        run.gate.problem
        == f"The output folder {run.out} cannot be written (No space left on device)."
    )
    assert run.gate.summary is not None
    assert run.gate.summary.exit_code == 3


def test_a_fault_of_ours_is_told_in_a_sentence_and_its_traceback_kept(
    run: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A harness that fails says so and exits 3.

    The traceback is kept beside the logs instead of on the screen.
    """
    monkeypatch.setattr(Plugin, "report", lambda *_: 1 / 0)

    rows, summary = run.judge()

    assert (rows, summary.exit_code, summary.partial) == ({}, 3, True)
    (trace,) = (run.out / "logs").glob("harness-failed-*.txt")
    assert run.gate.problem == (
        f"the harness failed (ZeroDivisionError: division by zero); {to_report(trace)}"
    )
    assert f"please report this fault of upheld {upheld.__version__} at " in run.gate.problem
    assert str(trace) in run.gate.problem
    assert "Traceback" in trace.read_text()
    assert "Traceback" not in "".join(capfd.readouterr())


def test_an_exception_of_ours_in_a_row_says_where_to_report_it(run: Run) -> None:
    """The row's reason has the place, and its traceback lies beside the logs."""
    COMING["G1.first"] = [KeyError("ours")]

    _, summary = run.judge()

    rows, _ = read(run.out / "report.jsonl")
    (trace,) = (run.out / "logs").glob("harness-failed-*.txt")
    reason = next(row.reason for row in rows if row.id == FIRST)
    assert reason == f"the harness failed (KeyError: 'ours'); {to_report(trace)}"
    assert "KeyError" in trace.read_text()
    assert summary.exit_code == 3


@pytest.mark.parametrize(
    ("peak_mb", "code", "says"),
    [
        (0, 2, "limits not measured, so not kept: memory of at most 100 MiB"),
        (99, 0, "peak memory 99 MiB"),
        (101, 1, "limits broken: 101 MiB of at most 100 MiB"),
    ],
)
def test_a_limit_that_was_not_measured_is_not_kept(
    run: Run, monkeypatch: pytest.MonkeyPatch, peak_mb: int, code: int, says: str
) -> None:
    """Memory that could not be read proves nothing: the run is inconclusive."""
    monkeypatch.setattr("upheld.supervisor.host.Memory.stop", lambda _: peak_mb)

    _, summary = run.judge(max_memory_mb=100)

    assert summary.exit_code == code
    assert says in closing(summary, run.out)


def test_nobody_who_reads_ends_the_run_and_keeps_its_red(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`| head` of a red run exits 1, and of another one 3: not all rows were judged."""
    monkeypatch.setattr("upheld.ui.progress.Progress.is_unread", True)

    for coming, code in ((Violated.one("lost", "one is missing"), 1), (None, 3)):
        COMING["G1.first"] = [coming]
        rows, summary = run.judge()

        assert (len(rows), summary.exit_code, run.gate.problem) == (1, code, UNREAD)


def test_each_repetition_keeps_its_history(run: Run) -> None:
    """The one that is red may not be the last."""
    COMING["G1.first"] = [None, Violated.one("lost", "one is missing"), None]

    _, summary = run.judge(repeat=3)

    rows, _ = read(run.out / "report.jsonl")
    told = [read_history(run.out / row.history) for row in rows]
    assert [next(reversed(history.events)).verdict for history in told] == [
        row.verdict for row in rows
    ]
    assert [row.verdict for row in rows].count(Verdict.VIOLATED) == 1
    assert (summary.promised, summary.chosen, summary.exit_code) == ({"fake": 2}, {"fake": 6}, 1)


def test_a_red_row_ends_with_the_command_that_shows_it_again(run: Run) -> None:
    """Row, anomaly, and how to see it once more."""
    COMING["G1.first"] = [Violated.one("lost", "one is missing")]

    run.judge(again="upheld run --broker embedded", specs={"fake": "path/to/fake"})

    assert "  anomaly   lost: one is missing\n" in run.said.getvalue()
    assert (
        "  again     upheld run --broker embedded --design path/to/fake --only '@G1.first' --seed "
        "7\n" in run.said.getvalue()
    )


@pytest.mark.parametrize("end", [Violated.one, None], ids=["violated", "the-harness-failed"])
@pytest.mark.parametrize("text", [text for text in HOSTILE.values() if len(text) < 1000], ids=ascii)
def test_text_of_others_in_every_file(
    end: Callable[[str, str], BaseException] | None, text: str, run: Run
) -> None:
    """The report, junit and what is printed are plain, whoever raised with the text."""
    COMING["G1.first"] = [end("stuck", text) if end else RuntimeError(text)]

    verdicts, _ = run.judge()

    root = ElementTree.parse(run.out / "junit.xml").getroot()
    failed = [*root.iter("failure"), *root.iter("error")]
    assert verdicts[FIRST] == ("violated" if end else "harness-error")
    assert failed
    assert all(is_plain((each.text or "") + each.attrib["message"]) for each in failed)
    assert is_plain((run.out / "report.jsonl").read_text(encoding="utf-8"))
    assert is_plain(run.said.getvalue())
