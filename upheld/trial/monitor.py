"""The supervision of an application while it runs."""

from dataclasses import dataclass

from upheld.checks.view import view_of
from upheld.trial.application import Application
from upheld.trial.instances import Instances
from upheld.trial.probes import Probes
from upheld.trial.recorder import Recorder


@dataclass(frozen=True)
class Monitor:
    """The supervision of the instances of one attempt, and the probes that fall due."""

    recorder: Recorder
    probes: Probes
    instances: Instances

    def tick(self, application: Application) -> None:
        """Look for dead instances, then ask the others what is due.

        Each tick asks for the next key of the table, if the application has one. It asks for the
        lag only as often as that is due.

        Raises:
            Violated: An instance gave up or vanished by itself.
        """
        self.instances.demand_alive(application)
        if application.keys:
            key = application.keys[application.asked % len(application.keys)]
            self.probes.query(application, key)
        if application.lag_due_ms is not None and self.recorder.now_ms >= application.lag_due_ms:
            self.probes.ask_lag(application)

    def is_drained(self, application: Application, *, outputs_too: bool = True) -> bool:
        """Return whether the committed input is the whole visible input.

        If no group says how far the outputs are, or records that were read may wait, the outputs
        have to say it. Then every key has to show the model's last state.

        Args:
            application: The application whose input is looked at.
            outputs_too: No transaction may be open on outputs or offsets.
        """
        if application.progress_group is None or application.program.holds_back:
            self.probes.observe(application)
            if not view_of(self.recorder.history, application.name).is_settled:
                return False
        if application.group is not None and application.progress != "none":
            committed = self.probes.offsets(application, stable=outputs_too)
            ends = application.input.ends
            if committed is None or any(
                offset < ends.get(place, 0) for place, offset in committed.items()
            ):
                return False
        return not outputs_too or self.probes.all_decided(application)
