"""The oracle of an application without a model: the application itself.

It is run on a copy of its visible input, on topics of its own, with nothing to strike it. It is
ended when it has drained them. An input that was asked in this run before is not asked again. The
first input is asked twice, the second time behind a record in each partition that is deleted before
the application starts. Then what hangs on offsets differs too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from upheld.generators.ledger import Send
from upheld.history import events
from upheld.kafka.reader import recorded
from upheld.programs import PROGRAMS
from upheld.programs.itself import (
    Difference,
    below,
    by_key,
    difference,
    digest_of,
    is_in_one_partition,
    is_traced,
    oracles_of,
    unique_of,
)
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Ready, Start, Stopped
from upheld.supervisor.folders import Folder
from upheld.trial.application import Application
from upheld.trial.recorder import Recorder
from upheld.trial.rig import Given, Question, Rig
from upheld.trial.stillness import Stillness
from upheld.verdicts import AdapterBreach

STOP_MS: Final = 10_000
RESTS: Final = 3  # the time for a run without a group, in times after which an input is stuck


@dataclass(frozen=True)
class Fresh:
    """A run without a fault.

    Attributes:
        name: A part of the names that no other run has.
        shifted: Whether each partition of the input begins at its second offset.
        due: How many outputs there have to be, as far as that is known; else 0.
    """

    name: str
    shifted: bool = False
    due: int = 0


@dataclass(frozen=True)
class Oracle:
    """Asks an application of one attempt what comes of its input without a fault."""

    recorder: Recorder
    rig: Rig
    manifest: Manifest

    def ask(self, application: Application) -> None:
        """Record what comes of the visible input so far.

        Nothing is asked if the application is judged by a program.
        """
        contract = application.event.contract
        if contract and not contract.model:
            self._answering()._ask(application, contract, self._visible(application))

    def ask_below_the_commit(self, application: Application) -> None:
        """Record what comes of the input below the offsets that were committed last.

        Nothing is asked if the outputs show themselves which input each is of. If they may lead,
        and only last values are known, a number has to say which of two is later.
        """
        contract = application.event.contract
        history = self.recorder.history
        if contract is None or contract.model:
            return
        looks = [e for e in history.of(events.Committed) if e.application == application.name]
        oracles = list(oracles_of(history, application.event))
        if not looks or not looks[-1].offsets or not any(oracles[0].answers()):
            return
        if all(oracle.is_traced for oracle in oracles):
            return
        may_lead = application.mode != "exactly_once"
        if may_lead and any(
            each.is_last_alone and not each.contract.increasing for each in oracles
        ):
            return
        inputs = below(looks[-1].offsets, self._visible(application))
        self._answering()._ask(application, contract, inputs)

    def _answering(self) -> "Oracle":
        """Return the oracle of the release that says what is right."""
        return replace(self, manifest=self.manifest.answering)

    def _ask(
        self, application: Application, contract: events.Contract, inputs: list[events.Record]
    ) -> None:
        if not inputs:
            return
        question = Question(
            self.manifest.name,
            contract.name,
            application.mode,
            tuple(application.commits.values()),
            digest_of(inputs, tuple(application.commits)),
        )
        if question not in self.rig.answers:
            self.rig.answers[question] = self._given(application, contract, inputs)
        for given in self.rig.answers[question]:
            self._record(application, question, given)

    def _record(self, application: Application, question: Question, given: Given) -> None:
        """Record what came of an input on one output."""
        known = {answer.outputs for answer in self.recorder.history.of(events.Answered)}
        if given.topic not in known:
            self.recorder.history.add_all(given.outputs)
        self.recorder.history.add(
            events.Answered(
                at_ms=self.recorder.now_ms,
                application=application.name,
                inputs=question.inputs,
                outputs=given.topic,
                output=given.output,
                topics=self._topics(application, given),
                unstable=given.unstable,
                is_ordered=given.is_ordered,
                is_by_last_value=given.is_by_last_value,
                types=given.types,
            )
        )

    def _visible(self, application: Application) -> list[events.Record]:
        topics = application.commits
        records = self.recorder.history.of(events.Record)
        return [record for record in records if record.topic in topics and record.visible]

    def _topics(self, application: Application, given: Given) -> tuple[str, ...]:
        writes = given.output or application.program.writes
        of_the_run = given.topic.removesuffix(writes)
        return given.topic, *(f"{of_the_run}{role}" for role in application.program.inputs)

    def _given(
        self, application: Application, contract: events.Contract, inputs: list[events.Record]
    ) -> tuple[Given, ...]:
        """Return what comes of an input on each output."""
        known = next(
            (given for q, given in self.rig.answers.items() if self._is_alike(q, application)), None
        )
        due = len(inputs) if known and known[0].has_one_each else 0
        first = self._run(application, inputs, Fresh("once", due=due))
        if known:
            found = [
                Difference(g.unstable, g.is_ordered, g.is_by_last_value, g.types) for g in known
            ]
        else:
            due = len(first[0].outputs) if contract.shape == "map" else 0
            second = self._run(application, inputs, Fresh("twice", shifted=True, due=due))
            found = [
                difference(
                    own,
                    by_key(own, one.outputs),
                    by_key(own, other.outputs),
                    may_skip=self._skips_states(own, application, inputs, one),
                )
                for own, one, other in zip(contract.outputs, first, second, strict=True)
            ]
        return tuple(
            self._compared(own, application, inputs, given, each)
            for own, given, each in zip(contract.outputs, first, found, strict=True)
        )

    def _compared(
        self,
        contract: events.Contract,
        application: Application,
        inputs: list[events.Record],
        first: Given,
        found: Difference,
    ) -> Given:
        """Return what came on one output, with what of it can be compared."""
        has_traces = is_traced(contract, unique_of(application.event), inputs, first.outputs)
        skips_states = self._skips_states(contract, application, inputs, first)
        has_last_values = (found.is_ordered or found.is_by_last_value) and is_in_one_partition(
            contract, first.outputs
        )
        return first._replace(
            unstable=found.unstable,
            is_ordered=found.is_ordered,
            is_by_last_value=has_last_values and (found.is_by_last_value or skips_states),
            types=found.types,
            has_one_each=has_traces and len(first.outputs) == len(inputs),
        )

    def _skips_states(
        self,
        contract: events.Contract,
        application: Application,
        inputs: list[events.Record],
        given: Given,
    ) -> bool:
        """Return whether outputs may skip states.

        The program that an adapter runs says so. A fold without an adapter may, if its keys have
        more or fewer outputs than inputs. A design may declare that it skips none.
        """
        if self.manifest.emits == "every-state" and not contract.also_reads:
            return False
        program = None if self.manifest.application else PROGRAMS[contract.name]
        if program and program.conflates:
            return True
        unique = unique_of(application.event)
        return contract.shape == "fold" and not is_traced(contract, unique, inputs, given.outputs)

    def _is_alike(self, question: Question, application: Application) -> bool:
        asked = (question.design, question.contract, question.mode)
        return asked == (self.manifest.name, application.program.name, application.mode)

    def _run(
        self, application: Application, inputs: list[events.Record], fresh: Fresh
    ) -> tuple[Given, ...]:
        """Run the application on a copy of its input, where no other run has its names."""
        rig = self.rig.of_a_row(self.manifest)
        try:
            return replace(self, rig=rig)._run_there(application, inputs, fresh)
        finally:
            if rig is not self.rig:
                rig.end_row()

    def _run_there(
        self, application: Application, inputs: list[events.Record], fresh: Fresh
    ) -> tuple[Given, ...]:
        """Run the application on a copy of its input, and return what came on each output.

        Raises:
            AdapterBreach: It does not start, drain or end, though nothing strikes it.
        """
        event = application.event
        identity = f"{event.application_id}-{fresh.name}{len(self.rig.answers)}"
        program = application.program
        topics = self.manifest.topics(identity, program.topics)
        partitions = {role: application.inputs[event.topics[role]] for role in program.inputs}
        reading = self.rig.reading
        roles = program.results
        reading.create(
            {topics[role]: count for role, count in partitions.items()}
            | {topics[role]: application.partitions for role in roles}
        )
        if fresh.shifted:
            self._shift(topics, partitions)
        role_of = {event.topics[role]: role for role in program.inputs}
        self.rig.feed.write(topics, program.reads, _copies(inputs, role_of))
        disks = Folder(application.directory.parent, f"{application.directory.name}-{fresh.name}")
        for each in ("state", "durable"):
            (disks / each).make()
        instance = self.rig.take(self.manifest)
        security = self.rig.security_of(self.manifest)
        bootstrap = self.rig.broker.bootstrap
        if security:
            bootstrap = self.rig.open_proxy().door(identity, security)
        try:
            request = Start(
                program=program.name,
                application_id=identity,
                instance="a",
                mode=application.mode,
                bootstrap=bootstrap,
                client=self.rig.client_of(self.manifest),
                topics=topics,
                parameters=event.parameters,
                session_timeout_ms=self.rig.session_timeout_ms,
                transaction_timeout_ms=event.transaction_timeout_ms,
                state_dir=str((disks / "state").path),
                durable_dir=str((disks / "durable").path),
            )
            ready = instance.start(request)
            if not isinstance(ready, Ready):
                raise AdapterBreach(
                    f"{self.manifest.name} does not start on its own input, with nothing to strike "
                    f"it: {getattr(ready, 'message', ready)}"
                )
            self._await_outputs(application, ready.consumer_group, topics, fresh)
            stopped = instance.stop(STOP_MS)
            if not isinstance(stopped, Stopped):
                raise AdapterBreach(
                    f"{self.manifest.name} was told to stop, with nothing to strike it, and "
                    f"answered {stopped.type}"
                )
        finally:
            self.rig.pool(self.manifest).give_back(instance)
            disks.remove()
            if security:
                self.rig.open_proxy().shut(identity)
        given = []
        for role in roles:
            position = dict.fromkeys(range(application.partitions), 0)
            written = reading.records(topics[role], position, committed=True)
            # Where names are fixed, the row has a topic of the same name.
            outputs_of = f"{identity}-{role}"
            records = recorded(written, lambda _partition, _offset: 0)
            outputs = tuple(record._replace(topic=outputs_of) for record in records)
            output = role if program.further else ""
            given.append(Given(outputs_of, outputs, (), is_ordered=True, output=output))
        reading.delete([*topics.values(), *ready.internal_topics])
        return tuple(given)

    def _shift(self, topics: dict[str, str], partitions: dict[str, int]) -> None:
        """Let each partition of the inputs begin at its second offset.

        Nobody reads what was before, in whichever isolation.
        """
        for role, count in partitions.items():
            gone = [Send(b"gone", b"", (), 0, partition) for partition in range(count)]
            self.rig.feed.write(topics, role, gone)
            self.rig.reading.truncate({f"{topics[role]}-{each}": 1 for each in range(count)})

    def _await_outputs(
        self, application: Application, group: str | None, topics: dict[str, str], fresh: Fresh
    ) -> None:
        """Wait until the outputs of the copy are all there.

        The committed offsets of its group say so; if they do not, outputs that are still do.

        Raises:
            AdapterBreach: It does not get there.
        """
        leads = application.progress != "group" or group is None
        if group is not None and application.progress != "none":
            self._drain(application, group, topics, begin=int(fresh.shifted))
        if leads:
            results = [topics[role] for role in application.program.results]
            self._rest(application, results, fresh.due)

    def _drain(
        self, application: Application, group: str, topics: dict[str, str], *, begin: int
    ) -> None:
        """Wait until its group has committed all of the copy, and nothing is open.

        The copy begins at an offset which is the same in each partition.

        Raises:
            AdapterBreach: It does not get there.
        """
        program = application.program
        writes = [topics[role] for role in program.results]
        reading = self.rig.reading
        reads = {
            topics[role]: application.inputs[application.event.topics[role]]
            for role in program.inputs
        }
        ends: dict[str, int] = {}
        for topic, count in reads.items():
            position = dict.fromkeys(range(count), begin)
            for message in reading.records(topic, position, committed=True):
                place = f"{topic}-{message.partition()}"
                ends[place] = max(ends.get(place, begin), message.offset() + 1)

        def is_drained() -> bool:
            committed = reading.groups.committed(group, reads, stable=True)
            if committed is None:
                return False
            done = all(committed.get(place, 0) >= end for place, end in ends.items())
            ends_of_outputs = (reading.ends(topic, application.partitions) for topic in writes)
            return done and all(stable == end for stable, end in ends_of_outputs)

        if not self.recorder.wait(self.rig.progress_s, is_drained):
            raise AdapterBreach(
                f"{self.manifest.name} does not drain its own input in {self.rig.progress_s:g} s, "
                "with nothing to strike it"
            )

    def _rest(self, application: Application, topics: Sequence[str], due: int) -> None:
        """Wait until outputs that no offsets tell of have been still for long enough.

        That is the time in which an output is visible. If fewer came than are due, or none, it is
        the time after which an input that moves no further is stuck.

        Args:
            application: The application whose run this is.
            topics: The topics of the outputs of this run.
            due: How many records the first one has to have, as far as that is known.

        Raises:
            AdapterBreach: Nothing came, or it does not come to an end.
        """
        reading = self.rig.reading
        position = dict.fromkeys(range(application.partitions), 0)
        stillness = Stillness(lambda: self.recorder.now_ms)
        count = 0

        def is_still() -> bool:
            nonlocal count
            count += len(reading.records(topics[0], position, committed=True))
            ends = [reading.ends(topic, application.partitions) for topic in topics]
            still_ms = stillness.look((count, ends)) / self.rig.time_scale
            if any(stable != end for stable, end in ends):
                return False
            is_whole = count >= max(due, 1)
            return still_ms >= (application.visible_ms if is_whole else 1000 * self.rig.progress_s)

        longest_s = RESTS * self.rig.progress_s
        is_over = self.recorder.wait(longest_s, is_still)
        if count and is_over:
            return
        said = f"still writes after {longest_s:g} s"
        if not count:
            said = f"writes nothing in {self.rig.progress_s:g} s"
        raise AdapterBreach(
            f"{self.manifest.name} {said} on its own input, with nothing to strike it, and no "
            "group says how far it is"
        )


def _copies(inputs: list[events.Record], role_of: Mapping[str, str]) -> list[Send]:
    """Return the records of a copy; each goes to the topic of its role."""
    return [
        Send(r.key, r.value, _headers(r), r.timestamp_ms, r.partition, role=role_of[r.topic])
        for r in sorted(inputs, key=lambda each: (each.topic, each.partition, each.offset))
    ]


def _headers(record: events.Record) -> tuple[tuple[str, bytes], ...]:
    """Return the headers of a record that a generator made: none of them is null."""
    return tuple((name, value or b"") for name, value in record.headers)
