"""A run of an application with nothing to strike it.

It is given a copy of its visible input, on topics of its own, and is ended when it has drained
them. Committed offsets say when that is; if they do not, outputs that are still do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from upheld.generators.ledger import Send
from upheld.history import events
from upheld.kafka.reader import recorded
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Ready, Start, Stopped
from upheld.supervisor.folders import Folder
from upheld.trial.application import Application
from upheld.trial.recorder import Recorder
from upheld.trial.rig import Given, Rig
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
class Unstruck:
    """Runs an application without a fault, where no other run has its names."""

    recorder: Recorder
    rig: Rig
    manifest: Manifest

    def run(
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
