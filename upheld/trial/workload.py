"""The input of applications: written wave by wave, and read back from the log."""

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from upheld.checks.prefix import reached
from upheld.checks.view import view_of
from upheld.generators.ledger import facts
from upheld.history import events
from upheld.history.marks import Happening
from upheld.kafka.consumers import ReadMessage
from upheld.kafka.reader import recorded
from upheld.protocol.manifest import Manifest
from upheld.threads import Heard
from upheld.trial.application import Application, Count, Wave
from upheld.trial.oracle import Oracle
from upheld.trial.queried import note_keys
from upheld.trial.recorder import Recorder
from upheld.trial.rig import Rig
from upheld.verdicts import HarnessError, MarkMissed


@dataclass(frozen=True)
class Workload:
    """The harness's producers and readers on the inputs of one attempt."""

    recorder: Recorder
    rig: Rig
    manifest: Manifest
    oracle: Oracle

    def feed(self, application: Application, wave: Wave, count: Count = facts) -> None:
        """Write the next wave of a workload, and record it as the log has it."""
        application.input.wave = wave
        application.input.count = count
        self.feed_more(application)

    def feed_more(self, application: Application) -> None:
        """Write one more wave of the last workload, and record it as the log has it.

        It is read back when none of its transactions is open any more.

        Raises:
            HarnessError: A transaction of the harness's own stays open.
        """
        self._write(application)
        if not self.recorder.wait(self.rig.progress_s, partial(self.is_decided, application)):
            raise HarnessError(
                f"a transaction that ends in the input of {application.name} is still open on the "
                "broker"
            )
        self.look_at_input(application)

    @contextlib.contextmanager
    def feeding(self, application: Application, apart_s: float = 0) -> Iterator[None]:
        """Write waves of the last workload while the body runs, and record them after it.

        Args:
            application: The application whose input is written to.
            apart_s: The seconds between one wave and the next.
        """
        over = threading.Event()

        def write() -> None:
            while not over.wait(apart_s):
                self._write(application)

        thread = Heard(write, name="feeding")
        thread.start()
        application.input.is_fed = True
        application.sight.observed_ms = self.recorder.now_ms
        try:
            yield
        finally:
            over.set()
            thread.join()
            application.input.is_fed = False
        self.look_at_input(application)

    def look_at_input(self, application: Application) -> None:
        """Record the input as it stands in the log, aborted records too.

        A record of the harness's own is there since its wave was.
        """
        with ThreadPoolExecutor() as pool:  # each read waits for the broker, and none for another
            reads = {
                (topic, committed): pool.submit(self._new, application, topic, committed=committed)
                for topic in application.inputs
                for committed in (True, False)
            }
        state = application.input
        for topic in application.inputs:
            committed = reads[topic, True].result()
            visible = {(message.partition(), message.offset()) for message in committed}
            log = reads[topic, False].result()
            since = state.appended_ms(topic, self.recorder.now_ms)
            self.recorder.history.add_all(recorded(log, since, visible, state.incarnations[topic]))
            last = {message.partition(): message.offset() for message in committed}
            for partition, offset in last.items():
                place = f"{topic}-{partition}"
                state.ends[place] = max(state.ends.get(place, 0), offset + 1)
            partitions = Counter(message.partition() for message in log)
            state.read.update({f"{topic}-{name}": count for name, count in partitions.items()})
        self.recorder.history.add(
            events.Fed(
                at_ms=self.recorder.now_ms, application=application.name, records=dict(state.read)
            )
        )
        self.oracle.ask(application)

    def mark_unread(self, application: Application) -> None:
        """Mark how many offsets of the input the last stop left for later.

        If no committed offsets say that, what is visible does.

        Raises:
            MarkMissed: The input had been drained before the stop.
        """
        committed = [
            event.offsets
            for event in self.recorder.history.of(events.Committed)
            if event.application == application.name
        ]
        offsets = committed[-1]
        if offsets is None:
            offsets = reached(view_of(self.recorder.history, application.name))
        left = sum(
            max(0, end - offsets.get(place, 0)) for place, end in application.input.ends.items()
        )
        if not left:
            raise MarkMissed(f"{self.manifest.name} had drained its input before it was stopped")
        self.recorder.mark(Happening.INPUT_LEFT, offsets_left=left)

    def is_decided(self, application: Application) -> bool:
        """Return whether no transaction is open on the inputs."""
        ends = (
            self.rig.reading.ends(topic, partitions)
            for topic, partitions in application.inputs.items()
        )
        return all(stable == end for stable, end in ends)

    def _write(self, application: Application) -> None:
        state = application.input
        assert state.wave
        role = application.program.reads
        topics = application.event.topics
        sends = tuple(state.wave(wave=state.waves))
        ends = self.rig.feed.write(topics, role, sends)
        state.fed_ms = self.recorder.now_ms
        for place, end in ends.items():
            state.appended.setdefault(place, []).append((end, state.fed_ms))
        state.topics = {topics[send.role or role] for send in sends}
        state.waves += 1
        if application.program.merged:
            note_keys(application, (send.key for send in sends if not send.aborted))
        for name, count in state.count(sends).items():
            state.totals[name] = state.totals.get(name, 0) + count

    def _new(self, application: Application, topic: str, *, committed: bool) -> list[ReadMessage]:
        position = application.position(topic, committed=committed)
        return self.rig.reading.records(topic, position, committed=committed)
