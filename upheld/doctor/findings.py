"""The findings of the doctor: sentences, each of a trouble with a way out.

A finding is `fine`, `note` or `wrong`. Something that is wrong makes verdicts wrong, or keeps the
application from being judged at all. A note is worth a look: mostly it is what the features will
find.
"""

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from upheld.commands import BY_SIGNAL
from upheld.doctor.completed import NOT_NAMED, Addition, as_declared, own_topics
from upheld.doctor.seen import Group, Outputs, Seen, Visit
from upheld.doctor.visit import SESSION_MS, TRANSACTION_MS
from upheld.errors import UsageProblem
from upheld.programs.modelled import contract_of, first_difference
from upheld.protocol.manifest import Manifest
from upheld.protocol.subject import FIXED, ITSELF, Subject
from upheld.supervisor.deployed import OK
from upheld.verdicts import Inconclusive

Mark = Literal["fine", "note", "wrong"]
# A field that design.toml lacks -> the trouble that it mends.
MENDS: Final = {"internal_topics": "internal-topics", "format": "format"}
MARKS: Final[dict[Mark, str]] = {"fine": "✓", "note": "!", "wrong": "✗"}


# A shell and a JVM end with this and the number of the signal, once its handlers have run.


class Finding(NamedTuple):
    """One thing that was seen.

    Attributes:
        code: Its name, which stays the same; a subject may have several codes.
        mark: How good it is.
        text: A sentence that says what was seen.
        way_out: The next step of the reader; empty where all is fine.
    """

    code: str
    mark: Mark
    text: str
    way_out: str = ""


class Case(NamedTuple):
    """An application, and a visit to it."""

    manifest: Manifest
    visit: Visit

    @property
    def subject(self) -> Subject:
        """The tables of its design.toml."""
        assert self.manifest.application
        return self.manifest.application

    @property
    def seen(self) -> Seen:
        """The record of the visit."""
        return self.visit.seen

    @property
    def given_inputs(self) -> dict[str, str]:
        """The topics that it was to read, by the names of its inputs."""
        return {role: self.seen.topics.given[role] for role in self.subject.input}

    @property
    def is_reading(self) -> bool:
        """Whether it reads each of its inputs."""
        return set(self.given_inputs.values()) <= set(self.seen.topics.read)

    @property
    def given_outputs(self) -> dict[str, str]:
        """The topics that it was to write, by the names of its outputs."""
        return {role: self.seen.topics.given[role] for role in self.subject.output}

    def written(self, role: str) -> Outputs:
        """Return what it wrote to an output."""
        return self.seen.outputs.get(role, Outputs())

    @property
    def group_name(self) -> str | None:
        """The group that it was to join; None if it need not join any."""
        if self.subject.group is None:
            return None
        return self.subject.group.replace("{application_id}", self.seen.application_id)

    @property
    def has_offsets(self) -> bool:
        """Whether committed offsets say anything of how far it is."""
        return self.manifest.progress != "none"

    @property
    def done(self) -> str:
        """How far it is, for a sentence."""
        if self.has_offsets:
            return f"{self.seen.commits.done} of {self.seen.commits.due} records are committed"
        count = self.seen.output_count
        return f"{count} outputs of {self.seen.commits.due} records are visible"


Judge = Callable[[Case], Iterator[Finding]]


def findings(case: Case) -> list[Finding]:
    """Return all that is to be said, in the order in which to read it."""
    return [finding for judge in JUDGES for finding in judge(case)]


def mended(found: Sequence[Finding], added: Sequence[Addition]) -> list[Finding]:
    """Return what was found as it is now that these lines were added to the file.

    A trouble that a line mends is fine, if there is a line for each trouble of its kind.
    """
    lines = Counter(MENDS[each.name] for each in added if each.name in MENDS)
    wrong = Counter(each.code for each in found if each.mark == "wrong")
    whole = {code for code, count in lines.items() if wrong[code] == count}
    return [
        each._replace(mark="fine", text=f"{each.text}; the file says so now", way_out="")
        if each.mark == "wrong" and each.code in whole
        else each
        for each in found
    ]


def is_judgeable(found: list[Finding]) -> bool:
    """Return whether nothing is wrong."""
    return all(each.mark != "wrong" for each in found)


def _start(case: Case) -> Iterator[Finding]:
    seen = case.seen
    last = f"; its log ends with: {seen.log[-1]}" if seen.log else "; its log is empty"
    if seen.ended_early is not None and seen.ready_s is None:
        yield Finding(
            "exits",
            "wrong",
            f"it ended with exit code {seen.ended_early} after {seen.ran_s:.1f} s, before it was "
            f"ready{last}",
            "start the command by hand in its folder, with the environment that design.toml gives "
            "it",
        )
    elif seen.ready_s is None:
        yield Finding(
            "never-ready",
            "wrong",
            f"it was not ready by {seen.ready_by} in {seen.ran_s:.1f} s{last}",
            "see the findings below; if it is right as it is, say in [signals] by what it is ready "
            "(`ready`) and how long it takes (`start_s`)",
        )
    else:
        yield Finding("ready", "fine", f"it was ready by {seen.ready_by} in {seen.ready_s:.1f} s")


def _speech(case: Case) -> Iterator[Finding]:
    if breach := case.seen.breach:
        yield Finding(
            "no-kafka",
            "wrong",
            f"{breach}, which no broker with security = {case.manifest.security!r} takes",
            "say in design.toml how it reaches its broker: security = "
            '"ssl", "sasl_plaintext" or "sasl_ssl", and tell it {ca_file}, {username} and '
            "{password}; or let its environment set security.protocol to PLAINTEXT for the run",
        )


def _input(case: Case) -> Iterator[Finding]:
    for role, topic in case.given_inputs.items():
        yield from _input_of(case, role, topic)


def _input_of(case: Case, role: str, topic: str) -> Iterator[Finding]:
    topics = case.seen.topics
    others = [name for name in topics.read if name not in {*topics.given.values(), *topics.created}]
    if topic in topics.read:
        yield Finding("input", "fine", f"it reads {topic}")
    elif topics.unknown or others:
        named = ", ".join([*topics.unknown, *others])
        yield Finding(
            "topic",
            "wrong",
            f"it asks for the topic {named}, and never reads the one that it was given, {topic}",
            f"let its environment or command name its input: {{input.{role}}}"
            f"{_as_deployed(case, f'input.{role}', [*topics.unknown, *others])}",
        )
    elif case.seen.ended_early is None:
        yield Finding(
            "topic",
            "wrong",
            f"it never reads the topic that it was given, {topic}"
            if topics.read
            else f"it reads no topic, and was given {topic}",
            "see whether it reaches the broker at {bootstrap}",
        )


def _as_deployed(case: Case, table: str, seen: list[str]) -> str:
    """Return the lines of design.toml by which an application keeps its own topics."""
    names = "" if case.subject.names == FIXED else f'names = "{FIXED}" and '
    return f'; or judge it as it is deployed: {names}[{table}] topic = "{seen[0]}"'


def _output(case: Case) -> Iterator[Finding]:
    for role, topic in case.given_outputs.items():
        yield from _output_of(case, role, topic)


def _output_of(case: Case, role: str, topic: str) -> Iterator[Finding]:
    topics = case.seen.topics
    known = {*topics.given.values(), *topics.created}
    others = [name for name in (*topics.written, *topics.unknown) if name not in known]
    is_reading = case.is_reading
    if others and is_reading and topic not in topics.written:
        yield Finding(
            "output-topic",
            "wrong",
            f"it asks for {', '.join(others)}, and never writes to the topic that it was given, "
            f"{topic}",
            f"let its environment or command name its output: {{output.{role}}}"
            f"{_as_deployed(case, f'output.{role}', others)}",
        )
    elif count := case.written(role).count:
        yield Finding("output", "fine", f"it wrote {count} records to {topic}")
        yield from _increasing(case, role)
    elif case.seen.commits.done or (is_reading and not case.has_offsets):
        # An output of few records may have none in a short visit, beside another one.
        is_alone = case.seen.output_count == 0
        yield Finding(
            "no-output",
            "wrong" if is_alone else "note",
            f"{_read(case)}, and none is to be seen in {topic}",
            "give it samples of which something comes, or see why its transactions do not commit",
        )


def _shape(case: Case) -> Iterator[Finding]:
    """Say that outputs of a map look like states of its keys."""
    if case.subject.shape != "map" or case.subject.oracle != ITSELF:
        return
    due = case.seen.commits.due
    for role, table in case.subject.output.items():
        written = case.written(role)
        is_known = written.is_of_single_records(due) or bool(table.identity)
        if written.increasing and not is_known:
            yield Finding(
                "shape",
                "note",
                f"it wrote {written.count} outputs of {due} records, and of each key "
                f"{' and '.join(written.increasing)} grew from one to the next, as if they hung "
                "on several records: outputs of a map are compared one by one",
                'if they do, design.toml: shape = "fold"',
            )
            return


def _increasing(case: Case, role: str) -> Iterator[Finding]:
    """Say by which number the states of a fold can be told apart, if it skips some."""
    table = case.subject.output[role]
    written = case.written(role)
    is_told = bool(table.identity or table.increasing or case.manifest.emits)
    is_fold = case.subject.shape == "fold" and case.subject.oracle == ITSELF
    due = case.seen.commits.due
    if is_fold and not is_told and written.increasing and written.count < due:
        yield Finding(
            "increasing",
            "note",
            f"it skips states, with {written.count} outputs of {due} records, and of each key "
            f"{' and '.join(written.increasing)} grew from one to the next",
            f"if one of these grows with each state, say increasing = "
            f'"{written.increasing[0]}" in [output.{role}]: what comes twice or too late is found '
            "then",
        )


def _own_topics(case: Case) -> Iterator[Finding]:
    """Say which topics it makes for itself: rows call each one that is not declared leaked."""
    made = own_topics(case.seen)
    if not made or case.subject.names == FIXED:
        return
    own_id = case.seen.application_id
    declared = {name.replace("{application_id}", own_id) for name in case.subject.internal_topics}
    if shared := [name for name in made if own_id not in name]:
        yield Finding(
            "internal-topics",
            "wrong",
            f"it makes the topic {', '.join(shared)} whatever it is told: rows would share it",
            "put {application_id} into its name; or judge it as it is deployed: "
            f'names = "{FIXED}"',
        )
    elif set(made) <= declared:
        yield Finding("internal-topics", "fine", f"it makes {', '.join(made)} for itself")
    else:
        yield Finding(
            "internal-topics",
            "wrong",
            f"it makes {', '.join(made)} for itself, and design.toml does not declare that: rows "
            "would call it leaked",
            f"design.toml: internal_topics = {json.dumps(as_declared(case.seen))}",
        )


def _read(case: Case) -> str:
    """Return what it has read, for a sentence."""
    if case.has_offsets:
        return f"it read {case.seen.commits.done} records"
    return f"it was given {case.seen.commits.due} records, and reads its input"


def _outside(case: Case) -> Iterator[Finding]:
    """Look for outputs that no transaction holds, beside outputs that one does."""
    topics = case.seen.topics
    given = case.given_outputs.values()
    outside = [topic for topic in given if topic in topics.outside]
    if case.seen.transactions and outside:
        yield Finding(
            "outside-transaction",
            "note",
            f"it writes to {', '.join(outside)} outside of its transactions: readers have these "
            "records whatever becomes of their input",
            "write all outputs by the producer that commits the offsets",
        )


def _group(case: Case) -> Iterator[Finding]:
    seen = case.seen
    wanted = case.group_name
    if wanted is None:
        if case.is_reading:
            yield Finding(
                "group",
                "fine",
                'its progress is in no group (progress = "none"): its outputs are waited for',
            )
    elif group := seen.groups.get(wanted):
        yield from _membership(case, wanted, group)
    elif wanted == NOT_NAMED and len(seen.groups) == 1:
        ((name, group),) = seen.groups.items()
        yield from _membership(case, name, group)
    elif seen.groups:
        name = next(iter(seen.groups))
        if seen.application_id in name:
            pattern = name.replace(seen.application_id, "{application_id}")
            way_out = f'design.toml: group = "{pattern}"'
        elif case.subject.names == FIXED:
            way_out = f'design.toml: group = "{name}"'
        else:
            way_out = (
                "let its environment or command name the group, with {application_id} in it; or "
                f'judge it as it is deployed: names = "{FIXED}" and group = "{name}"'
            )
        yield Finding("group", "wrong", f"it joined the group {name}, not {wanted}", way_out)
    elif case.is_reading:
        yield Finding(
            "no-group",
            "wrong",
            "it reads its input without a group, so nobody can see how far it is",
            'if it keeps its progress elsewhere, such as in a checkpoint: progress = "none" in '
            "design.toml, and no `group`; else subscribe to the topic in a group",
        )


def _membership(case: Case, name: str, group: Group) -> Iterator[Finding]:
    kind = f"static ({', '.join(group.static)})" if group.static else "dynamic"
    session_ms = group.session_timeout_ms
    if group.protocol == "classic" and session_ms is not None and session_ms > SESSION_MS:
        yield Finding(
            "session",
            "note",
            f"{kind} member of {name} with a session of {session_ms / 1000:g} s: after a kill its "
            "partitions wait for that long",
            "let its environment take {session_timeout_ms}, and rows are quicker; else the proxy "
            f"shortens it to {case.subject.shortest_session_ms} ms",
        )
    else:
        session = f", session {session_ms / 1000:g} s" if session_ms is not None else ""
        yield Finding(
            "group", "fine", f"{kind} member of {name}, {group.protocol} protocol{session}"
        )


def _transactions(case: Case) -> Iterator[Finding]:
    seen = case.seen
    if not seen.transactions:
        if "exactly_once" in case.manifest.modes and seen.topics.written:
            yield Finding(
                "mode",
                "note",
                "design.toml promises exactly_once, and it has no transactional id",
                'promise what it does, modes = ["at_least_once"], or write in transactions',
            )
        return
    is_fixed = case.subject.names == FIXED
    fixed = [name for name in seen.transactions if not is_fixed and seen.application_id not in name]
    named = ", ".join(f"{name} ({ms / 1000:g} s)" for name, ms in seen.transactions.items())
    if fixed:
        yield Finding(
            "transactional-id",
            "wrong",
            f"its transactional id is {', '.join(fixed)} whatever it is told: a second instance or "
            "row would fence it",
            "put {application_id} and {instance} into it; or judge it as it is deployed: "
            f'names = "{FIXED}"',
        )
    elif max(seen.transactions.values()) > TRANSACTION_MS:
        yield Finding(
            "transaction-timeout",
            "note",
            f"transactional ids with their timeouts: {named}; after a kill readers wait for that",
            "let its environment take {transaction_timeout_ms}; else the proxy shortens it",
        )
    else:
        yield Finding("transactions", "fine", f"transactional ids with their timeouts: {named}")


def _isolation(case: Case) -> Iterator[Finding]:
    seen = case.seen
    if aborted := sum(each.aborted for each in seen.outputs.values()):
        yield Finding(
            "read-uncommitted",
            "wrong",
            f"it reads uncommitted records: {aborted} outputs come of aborted ones",
            'set isolation.level to "read_committed"',
        )
    elif "read_uncommitted" in seen.isolation:
        yield Finding(
            "read-uncommitted",
            "note",
            "it fetches its input as read_uncommitted, with records of aborted transactions",
            'set isolation.level to "read_committed"',
        )
    elif seen.isolation:
        yield Finding("isolation", "fine", "it fetches its input as read_committed")


def _reset(case: Case) -> Iterator[Finding]:
    who = "its first start" if case.group_name is None else "its new group"
    how = "" if case.group_name is None else " (earliest)"
    if case.seen.reset == "latest":
        yield Finding(
            "reset-latest",
            "wrong",
            f"{who} began at the end of the input: what was written before is never read",
            'set auto.offset.reset to "earliest"'
            if case.group_name
            else "begin at the first record where there is no checkpoint, as startingOffsets does "
            'by "earliest"',
        )
    elif case.seen.reset:
        yield Finding("reset", "fine", f"{who} began at the first record{how}")


def _commits(case: Case) -> Iterator[Finding]:
    commits = case.seen.commits
    if case.manifest.progress != "group":
        if commits.count:
            yield Finding(
                "commits",
                "fine",
                f"it commits {commits.count} times, and these offsets do not say that outputs are "
                f'done (progress = "{case.manifest.progress}")',
            )
        return
    outside = bool(case.seen.transactions) and "offset_commit" in commits.by
    if commits.ahead or outside:
        seen = (
            "it commits offsets outside of its transactions"
            if outside
            else "it committed offsets while the outputs of these records were not yet acknowledged"
        )
        yield Finding(
            "auto-commit",
            "note",
            f"{seen}: a crash in between loses or repeats records",
            "set enable.auto.commit to false; commit after a flush, or in the transaction by "
            "send_offsets_to_transaction",
        )
    elif commits.count:
        by = "in its transactions" if commits.by == ("txn_offset_commit",) else "by OffsetCommit"
        often = f", about every {commits.usual_gap_ms} ms" if commits.usual_gap_ms else ""
        after = ", after its outputs" if commits.ahead is False else ""
        yield Finding("commits", "fine", f"it commits {by}{after}: {commits.count} times{often}")


def _progress(case: Case) -> Iterator[Finding]:
    seen = case.seen
    done = case.done
    last = f"; its log ends with: {seen.log[-1]}" if seen.log else ""
    if seen.ready_s is None:
        return
    if seen.ended_early is not None:
        yield Finding(
            "dies",
            "wrong",
            f"it ended with exit code {seen.ended_early} after {seen.ran_s:.1f} s, and nobody had "
            f"told it to; {done}{last}",
            "see its log; if a supervisor starts it anew in production, that is to be no part of "
            "a run without a fault",
        )
    elif seen.is_stalled and (seen.groups if case.has_offsets else seen.output_count):
        # Else nobody knows how far it is, or `no-output` says it.
        yield Finding(
            "stalled",
            "wrong",
            f"its process runs, and does nothing any more: {done}{last}",
            "let the process end with an exit code other than 0 if a thread of it fails, so that "
            "its supervisor sees it; if it is only slow, see its commits",
        )


def _format(case: Case) -> Iterator[Finding]:
    for role, outputs in case.seen.outputs.items():
        if not outputs.unreadable:
            continue
        whose = f"outputs of {role}" if len(case.subject.output) > 1 else "outputs"
        yield Finding(
            "format",
            "wrong",
            f"{outputs.unreadable} of {outputs.count} {whose} are no JSON; the first one is "
            f"{outputs.first_unreadable}",
            f'design.toml: [output.{role}] format = "bytes", or write JSON',
        )


def _model(case: Case) -> Iterator[Finding]:
    """Compare with the model, if the application has read its whole input as it should."""
    model = case.manifest.model
    if model is None or not _is_whole(case.seen):
        return
    contract = contract_of(case.manifest)
    assert contract
    try:
        differing = first_difference(
            contract, model, case.visit.inputs, case.visit.outputs, case.visit.topics
        )
    except Inconclusive as bound:
        yield Finding("model", "fine", f"its model {model.place} was not compared: {bound}")
        return
    except UsageProblem as problem:
        yield Finding(
            "model",
            "wrong",
            str(problem),
            f"upheld contract {case.manifest.folder} shows what it answers to samples",
        )
        return
    if differing:
        yield Finding(
            "model",
            "wrong",
            f"it differs from its model {model.place}, though nothing struck it: {differing}",
            f"see which of the two is right; upheld contract {case.manifest.folder} shows what the "
            "model answers to samples",
        )
    else:
        count = case.seen.output_count
        yield Finding("model", "fine", f"its {count} outputs are those of its model {model.place}")


def _is_whole(seen: Seen) -> bool:
    """Return whether all of the input has come out, and nothing that was aborted."""
    return (
        seen.ready_s is not None
        and seen.ended_early is None
        and not seen.is_stalled
        and seen.reset == "earliest"
        and seen.output_count > 0
        and not any(each.unreadable or each.aborted for each in seen.outputs.values())
    )


def _query(case: Case) -> Iterator[Finding]:
    """Say whether it answers for the key of its last output with that output."""
    query = case.seen.query
    if query is None:
        return
    if query.fits:
        yield Finding("query", "fine", f"it answers for {query.key} with its last output")
    elif query.status in OK:
        yield Finding(
            "query",
            "wrong",
            f"it answers for {query.key} with {query.said}, and its last output is {query.last}",
            "name in `ignore` of the output what differs by itself; or in `fields` of "
            f"[query.{query.output}] the places that have to be alike, such as "
            'fields = { "$.balance" = "$.total" }',
        )
    else:
        said = f"with status {query.status}" if query.status else "nothing"
        yield Finding(
            "query",
            "wrong",
            f"it has said something of {query.key}, and {query.address} answers {said}",
            f"see `http` of [query.{query.output}]; a status from 200 to 299 has the value, 404 is "
            "that there is none, and 503 that it is not ready",
        )


def _end(case: Case) -> Iterator[Finding]:
    end = case.seen.end
    if end is None:
        return
    if end.code is None:
        yield Finding(
            "ignores-stop",
            "wrong",
            f"it did not end in {end.seconds:.1f} s after {end.signal}, and was killed",
            "handle the signal: stop polling, finish the batch, close the consumer; or name "
            "another one in [signals] `stop`",
        )
    elif end.code not in {0, BY_SIGNAL + signal.Signals[end.signal]}:
        how = f"by signal {-end.code}" if end.code < 0 else f"with exit code {end.code}"
        yield Finding(
            "stop",
            "note",
            f"it ended {how} in {end.seconds:.1f} s after {end.signal}",
            "end with 0 after closing the consumer: its partitions are free at once then",
        )
    else:
        as_a_jvm = ", as a JVM does" if end.code else ""
        text = f"it ended with {end.code} in {end.seconds:.1f} s after {end.signal}{as_a_jvm}"
        if end.members:
            yield Finding(
                "stop",
                "note",
                f"{text}, and left {end.members} of the members of its group: their partitions "
                "wait until the session is over",
                "close the consumer before the end; Kafka Streams leaves its group if it is closed "
                "with GroupMembershipOperation.LEAVE_GROUP",
            )
        else:
            yield Finding("stop", "fine", text)


def _peers(case: Case) -> Iterator[Finding]:
    if peers := case.seen.peers:
        listed = ", ".join(f'"{peer}"' for peer in peers)
        yield Finding(
            "peer",
            "wrong",
            f"its processes are connected to {', '.join(peers)}, which is neither the broker nor "
            "declared: what it keeps there, no row restores",
            f"start without it, or declare it: peers = [{listed}]",
        )


def _refused(case: Case) -> Iterator[Finding]:
    if refused := case.seen.refused:
        listed = ", ".join(f'"{each}"' if ":" in each else f'"{each}:PORT"' for each in refused)
        yield Finding(
            "refused",
            "wrong",
            f"it asks for {', '.join(refused)}, which its fence keeps it from",
            f"start without it; or declare it: peers = [{listed}]; or, if it is the broker of its "
            f"deployment: hosts = [{listed}]",
        )


def _clients(case: Case) -> Iterator[Finding]:
    if clients := case.seen.clients:
        used = ", ".join(
            f"{api} {version}"
            for api, version in case.seen.versions.items()
            if api in {"fetch", "produce", "join_group", "consumer_group_heartbeat"}
        )
        yield Finding("clients", "fine", f"its clients: {', '.join(clients)} ({used})")


JUDGES: Final[tuple[Judge, ...]] = (
    _start,
    _speech,
    _input,
    _output,
    _own_topics,
    _format,
    _shape,
    _group,
    _transactions,
    _outside,
    _isolation,
    _reset,
    _commits,
    _progress,
    _model,
    _query,
    _end,
    _peers,
    _refused,
    _clients,
)
