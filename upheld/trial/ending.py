"""A closer look at an attempt that ended because a design did not go on."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import KafkaException

from upheld.checks.unfinished import behind, passed_over, stuck_at, worse
from upheld.errors import MachineProblem
from upheld.history.events import Offsets
from upheld.trial.application import Application
from upheld.trial.probes import Probes
from upheld.trial.recorder import Recorder
from upheld.trial.workload import Workload
from upheld.verdicts import Anomaly, Outcome, Violated, worst_first


@dataclass(frozen=True)
class Ending:
    """The last look at the applications of one attempt."""

    recorder: Recorder
    probes: Probes
    workload: Workload

    def judged(self, ended: Violated, applications: Iterable[Application]) -> Violated:
        """Return a violation as the log shows it.

        A fault that is already in the log comes first. If there is none, the anomaly names the key
        that waits, or says that only a committed offset is wrong. The violation stands as it was if
        the log cannot be read any more.
        """
        if ended.is_judged:
            return ended
        faults = list[Anomaly]()
        named = list[Anomaly]()
        for application in applications:
            with suppress(KafkaException, MachineProblem, OSError, Outcome):
                committed = self._done_to(application)
                if self._is_whole(application):
                    faults += worse(self.recorder.history, application.name, committed)
                    named += self._named(ended.anomalies[0], application)
        return Violated([*worst_first(faults), *(named[:1] or ended.anomalies)])

    def _is_whole(self, application: Application) -> bool:
        """Return whether the history has all of the input, and all visible outputs."""
        if application.input.is_fed or not self.workload.is_decided(application):
            return False
        self.workload.look_at_input(application)
        self.probes.observe(application)
        return True

    def _done_to(self, application: Application) -> Offsets | None:
        """Return the committed offsets, if all outputs of the input below them are visible."""
        if application.progress_group is None:
            return None
        committed = self.probes.offsets(application)
        return committed if self.probes.all_decided(application) else None

    def _named(self, anomaly: Anomaly, application: Application) -> list[Anomaly]:
        """Return an anomaly with what the application has still to do; none if that is nothing."""
        history = self.recorder.history
        if application.progress_group is None and (lost := passed_over(history, application.name)):
            return lost
        if due := stuck_at(history, application.name, anomaly.text):
            return [due] if anomaly.name == "stuck" else []
        if application.progress_group is None:
            return []
        committed = self.probes.offsets(application, stable=False)
        places = behind(committed or {}, application.input.ends)
        if not places:
            return []
        said = f"{anomaly.text}; every last state is visible, and only committed offsets are behind"
        return [anomaly.model_copy(update={"text": f"{said}: {places}"})]
