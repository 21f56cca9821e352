"""Pauses that the broker does not wait for."""

from upheld.history.marks import Happening
from upheld.nemesis.moments import fate_of, pause_at, transaction_open
from upheld.trial.application import Application
from upheld.trial.trial import Trial
from upheld.verdicts import MarkMissed


def sleep_through_abort(trial: Trial, application: Application) -> None:
    """Pause instance a until the broker has aborted its open transaction.

    Raises:
        MarkMissed: The transaction was still open long after its timeout, or a commit that was on
            its way has ended it.
    """
    evidence = pause_at(trial, application, transaction_open(trial, application))
    began_ms = trial.now_ms
    patience_s = trial.waits.decided_s(application)
    if not trial.recorder.wait(patience_s, lambda: trial.probes.all_decided(application)):
        raise MarkMissed("the broker did not abort the transaction of the paused instance")
    if fate_of(trial, application, evidence) != "abort":
        raise MarkMissed("the transaction was committed while its instance was paused")
    trial.mark(Happening.SLEPT_THROUGH_ABORT, after_ms=trial.now_ms - began_ms)
    trial.instances.resume(application)
