"""Failures by the broker's own answer, after which a design can end in order."""

from upheld.history.marks import Happening
from upheld.nemesis.moments import MOMENTS, fate_of, pause_at
from upheld.trial.application import Application
from upheld.trial.trial import Trial
from upheld.verdicts import MarkMissed

# A transaction marker is a batch of 78 bytes, an output one of more than 150. Below a marker's size
# the broker could not write the abort itself, and on 4.3.1 the transaction then stays open for ever
# (measured).
MARKER_FITS_BYTES = 100


def refuse_outputs(trial: Trial, application: Application) -> None:
    """Make the broker refuse every further output of an open transaction as too large.

    The design is held with a transaction open while max.message.bytes of the output topic is
    lowered. It goes on until it gives up. How long its transaction outlived it is recorded.

    Raises:
        MarkMissed: The design did not end; or its transaction was whole already, and committed.
    """
    topic = application.writes
    evidence = pause_at(trial, application, MOMENTS["with a transaction open"](trial, application))
    trial.reading.limit(topic, MARKER_FITS_BYTES)
    instance = application.running["a"]
    trial.instances.resume(application)
    ended = trial.recorder.wait(trial.rig.progress_s, lambda: instance.is_over)
    trial.reading.limit(topic, None)
    if not ended:
        raise MarkMissed(
            f"{trial.manifest.name} did not end, though the broker refused its outputs"
        )
    ended_ms = trial.now_ms
    end = (
        f"{instance.failed.kind}: {instance.failed.message}"
        if instance.failed
        else f"exit {instance.exit_code}"
    )
    if instance.failed:
        trial.instances.gave_up(application, "a")
    else:
        trial.instances.let_go(application, "a")
        trial.recorder.happened(application, "a", "failed", end)
    trial.waits.settle(application, since_ms=ended_ms)
    if fate_of(trial, application, evidence) != "abort":
        raise MarkMissed(
            f"{trial.manifest.name} had sent the whole of its open transaction when outputs were "
            "refused"
        )
    trial.mark(Happening.OUTPUTS_REFUSED, said=end)
