"""`messages.ndjson`: a report as Cucumber Messages, an envelope a line.

A row is a pickle and its test case. A report says what a row came to, and not at which of its
sentences. So a hook carries the verdict:

| verdict | the hook | the sentences |
|---|---|---|
| upheld | PASSED, after them | PASSED |
| violated | FAILED with the card, after them | UNKNOWN |
| inconclusive, harness-error | PENDING with verdict and reason, after them | UNKNOWN |
| unsupported | SKIPPED with the reason, before them | SKIPPED |
| a known failure | SKIPPED with its link, before them | SKIPPED |
| a known failure that is upheld | FAILED, after them | PASSED |

A report does not say when a row began. So each row begins with the run, and takes its own seconds.
"""

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from gherkin.pickles.compiler import Pickle
from gherkin.stream.id_generator import IdGenerator

from upheld.errors import ExitCode
from upheld.report.baseline import excuse
from upheld.report.card import card
from upheld.report.model import RowResult, Summary
from upheld.spec.gherkin import Feature, ReadFeature, parsed
from upheld.text import visible
from upheld.verdicts import Verdict

PROTOCOL: Final = "34.2.1"  # the version of @cucumber/messages, which publishes the schema
UNKNOWN_ROWS: Final = "unknown.feature"  # for rows of a newer or older version
GHERKIN: Final = "text/x.cucumber.gherkin+plain"
TEXT: Final = "text/plain"
LOG: Final = "text/x.cucumber.log+plain"
BEFORE: Final = "BEFORE_TEST_CASE"
AFTER: Final = "AFTER_TEST_CASE"
_NANOS: Final = 1_000_000_000
_MOST_SECONDS: Final = 1e11

Envelope = Mapping[str, object]
Drawing = Callable[[RowResult], bytes]


class Result(NamedTuple):
    """The result of a row in Cucumber's words.

    Attributes:
        status: The status of the hook that carries the verdict.
        message: What the hook says; empty if it says nothing.
        sentences: The status of each sentence.
    """

    status: str
    message: str
    sentences: str

    @property
    def hook(self) -> str:
        """The type of the hook: one that skips the sentences stands before them."""
        return BEFORE if self.status == "SKIPPED" else AFTER


class _Judged(NamedTuple):
    """A feature, and the rows of it that were judged."""

    read: ReadFeature
    rows: list[tuple[RowResult, Pickle]]


class _Step(NamedTuple):
    """A step of a test case; it has the id of a sentence or of a hook."""

    id: str
    of: Envelope
    status: str
    message: str
    seconds: float


class _Case(NamedTuple):
    """A row as a test case that was started once."""

    row: RowResult
    pickle: Pickle
    id: str
    started: str
    verdict: str  # the id of the step that carries the verdict
    steps: list[_Step]


def ndjson(
    rows: Iterable[RowResult], summary: Summary, features: Iterable[Feature], drawing: Drawing
) -> str:
    """Return a report as Cucumber Messages, an envelope a line.

    Args:
        rows: The rows of one report.
        summary: Its end.
        features: The features of this version.
        drawing: Returns the picture of a row as SVG; empty if there is none.
    """
    envelopes = messages(rows, summary, features, drawing)
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in envelopes)


def messages(
    rows: Iterable[RowResult], summary: Summary, features: Iterable[Feature], drawing: Drawing
) -> Iterator[Envelope]:
    """Go through the envelopes of a report, in the order in which Cucumber sends them.

    The arguments are those of `ndjson`.
    """
    ids = IdGenerator()
    hooks = {name: ids.get_next_id() for name in (BEFORE, AFTER)}
    yield {"meta": _meta(summary)}
    cases = list[_Case]()
    for prefix, own in _by_folder(rows, summary).items():
        for feature in _features(own, features, prefix, ids):
            head = feature.read.feature
            yield {"source": {"uri": head.file, "data": head.text, "mediaType": GHERKIN}}
            yield {"gherkinDocument": feature.read.document}
            yield from ({"pickle": pickle} for _, pickle in feature.rows)
            cases += [_case(row, pickle, hooks, ids) for row, pickle in feature.rows]
    for name, hook in hooks.items():
        yield {"hook": {"id": hook, "name": "verdict", "type": name, "sourceReference": {}}}
    yield from _run(cases, summary, ids.get_next_id(), drawing)


def result(row: RowResult) -> Result:
    """Return the result of a row in Cucumber's words."""
    if row.excused or row.verdict is Verdict.UNSUPPORTED:
        said = excuse(row) if row.excused else row.reason
        return Result("SKIPPED", visible(said), "SKIPPED")
    if row.verdict is Verdict.VIOLATED:
        if row.known is None:
            return Result("FAILED", card(row, row.again), "UNKNOWN")
        return Result("SKIPPED", visible(f"known failure: {row.known}"), "SKIPPED")
    if row.verdict is Verdict.UPHELD:
        if row.known is None:
            return Result("PASSED", "", "PASSED")
        said = f"the known failure {row.known} is upheld: take it off the list"
        return Result("FAILED", visible(said), "PASSED")
    return Result("PENDING", visible(f"{row.verdict}: {row.reason}"), "UNKNOWN")


def _meta(summary: Summary) -> Envelope:
    """Return what ran the rows; a report names no processor."""
    return {
        "protocolVersion": PROTOCOL,
        "implementation": {"name": "upheld", "version": visible(summary.upheld)},
        "runtime": {"name": "python", "version": visible(summary.versions.get("python", ""))},
        "os": {"name": "linux"},
        "cpu": {"name": "unknown"},
    }


def _by_folder(rows: Iterable[RowResult], summary: Summary) -> Mapping[str, list[RowResult]]:
    """Return the rows by the folder of their features.

    A reader shows one test case of each row of Examples. So each design has features of its own if
    there are several, and so has each repetition.
    """
    found = defaultdict[str, list[RowResult]](list)
    for row in rows:
        folders = [visible(row.design)] if len(summary.chosen) > 1 else []
        if summary.repeat > 1:
            folders.append(f"repetition {row.repetition + 1}")
        found["/".join([*folders, "features", ""])].append(row)
    return found


def _features(
    rows: Sequence[RowResult], features: Iterable[Feature], prefix: str, ids: IdGenerator
) -> Iterator[_Judged]:
    """Go through the features of rows.

    The last one is made for the rows that are in no feature of this version.
    """
    tags = {f"@{row.scenario}" for row in rows}
    found = set[str]()
    for feature in features:
        if any(tag in feature.text for tag in tags):
            read = parsed(feature.text, prefix + feature.file, Path(feature.file), ids)
            pickles = {row.id: pickle for row, pickle in zip(read.rows, read.pickles, strict=True)}
            cases = [(row, pickles[row.id]) for row in rows if row.id in pickles]
            found |= {row.id for row, _ in cases}
            if cases:
                yield _Judged(read, cases)
    if unknown := [row for row in rows if row.id not in found]:
        lines = [f"  Scenario: {visible(f'{row.id}: {row.name}')}" for row in unknown]
        text = "\n".join(["Feature: Rows that no feature of this version has", *lines, ""])
        read = parsed(text, prefix + UNKNOWN_ROWS, Path(UNKNOWN_ROWS), ids)
        yield _Judged(read, list(zip(unknown, read.pickles, strict=True)))


def _case(row: RowResult, pickle: Pickle, hooks: Mapping[str, str], ids: IdGenerator) -> _Case:
    """Return the test case of a row."""
    said = result(row)
    verdict = _Step(
        ids.get_next_id(), {"hookId": hooks[said.hook]}, said.status, said.message, row.seconds
    )
    steps = [
        _Step(ids.get_next_id(), {"pickleStepId": each["id"]}, said.sentences, "", 0.0)
        for each in pickle["steps"]
    ]
    steps.insert(0 if said.hook == BEFORE else len(steps), verdict)
    return _Case(row, pickle, ids.get_next_id(), ids.get_next_id(), verdict.id, steps)


def _run(
    cases: Sequence[_Case], summary: Summary, run: str, drawing: Drawing
) -> Iterator[Envelope]:
    """Go through the messages of the run itself, from its start to its end."""
    ended_s = _seconds_of(summary.ended)
    began_s = max(0.0, ended_s - summary.seconds)
    yield {"testRunStarted": {"id": run, "timestamp": _time(began_s)}}
    about = {"mediaType": LOG, "body": _about(summary), "contentEncoding": "IDENTITY"}
    yield {"attachment": {**about, "testRunStartedId": run}}
    for case in cases:
        steps = [{"id": step.id, **step.of} for step in case.steps]
        yield {
            "testCase": {
                "id": case.id,
                "pickleId": case.pickle["id"],
                "testSteps": steps,
                "testRunStartedId": run,
            }
        }
    for case in cases:
        yield from _started(case, began_s, drawing(case.row))
    yield {
        "testRunFinished": {
            "testRunStartedId": run,
            "success": summary.exit_code == ExitCode.UPHELD,
            "timestamp": _time(max(ended_s, began_s)),
        }
    }


def _about(summary: Summary) -> str:
    """Return what the run judged, and on what."""
    versions = [f"{name} {version}" for name, version in summary.design_versions.items()]
    said = [*versions, f"depth {summary.depth}", summary.broker, f"seed {summary.seed}"]
    return ", ".join(map(visible, said))


def _started(case: _Case, now_s: float, picture: bytes) -> Iterator[Envelope]:
    """Go through the messages of one test case, from its start to its end."""
    of = {"testCaseStartedId": case.started}
    yield {
        "testCaseStarted": {
            "id": case.started,
            "testCaseId": case.id,
            "attempt": 0,
            "timestamp": _time(now_s),
        }
    }
    for step in case.steps:
        here = {**of, "testStepId": step.id}
        yield {"testStepStarted": {**here, "timestamp": _time(now_s)}}
        now_s += step.seconds
        if step.id == case.verdict:
            for attached in _attached(case.row, picture):
                yield {"attachment": {**here, **attached}}
        came_to = {"status": step.status, "duration": _time(step.seconds)}
        if step.message:
            came_to["message"] = step.message
        yield {"testStepFinished": {**here, "testStepResult": came_to, "timestamp": _time(now_s)}}
    yield {"testCaseFinished": {**of, "timestamp": _time(now_s), "willBeRetried": False}}


def _attached(row: RowResult, picture: bytes) -> Iterator[Envelope]:
    """Go through what is attached to a verdict: the card, its picture, and warnings."""
    for warning in row.warnings:
        yield {"mediaType": TEXT, "body": visible(warning), "contentEncoding": "IDENTITY"}
    if row.has_card:
        yield {
            "mediaType": TEXT,
            "fileName": "card.txt",
            "body": card(row, row.again),
            "contentEncoding": "IDENTITY",
        }
    if picture:
        yield {
            "mediaType": "image/svg+xml",
            "body": base64.b64encode(picture).decode(),
            "contentEncoding": "BASE64",
        }


def _seconds_of(date: str) -> float:
    """Return a date as seconds since 1970; 0 if a report has none, or what is none."""
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(date).timestamp()
    return 0.0


def _time(seconds: float) -> Envelope:
    """Return seconds as a timestamp or a duration; those of no clock are 0."""
    known = seconds if 0 <= seconds < _MOST_SECONDS else 0
    whole, nanos = divmod(round(known * _NANOS), _NANOS)
    return {"seconds": whole, "nanos": nanos}
