"""A store that is locked, slow or down for a while."""

from upheld.history import events
from upheld.history.marks import Happening
from upheld.trial.application import Application
from upheld.trial.trial import Trial
from upheld.verdicts import MarkMissed

# A slow store takes nothing for so long, and everything for so long, by turns.
HELD_MS = 1_000
FREE_MS = 300
DISTURBED = {
    "locked": Happening.STORE_LOCKED,
    "slow": Happening.STORE_SLOW,
    "down": Happening.STORE_DOWN,
}


def disturb(trial: Trial, application: Application, how: str, length_ms: int) -> None:
    """Have the store locked, slow or down for a while, and mark that.

    A slow store is locked most of the time, and accepts in between what waits. The committed
    offsets and the rows of the store are recorded at the end.

    Args:
        trial: The attempt.
        application: The application that keeps its state in the store.
        how: `locked`, `slow` or `down`.
        length_ms: How long that lasts.

    Raises:
        MarkMissed: No output came meanwhile that is to be stored, or nothing was written to a slow
            store.
    """
    store = application.store
    assert store
    trial.probes.observe(application)
    known = trial.probes.outputs_seen(application)
    version = store.version()
    until_ms = trial.now_ms + length_ms
    trial.probes.weigh(application)
    while how == "slow" and trial.now_ms + HELD_MS + FREE_MS < until_ms:
        with store.held():
            trial.waits.watch(application, trial.now_ms + HELD_MS)
        trial.waits.watch(application, trial.now_ms + FREE_MS)
    if how == "slow" and store.version() == version:
        raise MarkMissed(f"{trial.manifest.name} wrote nothing to its store while it was slow")
    with store.down() if how == "down" else store.held():
        trial.waits.watch(application, trial.now_ms + (HELD_MS if how == "slow" else length_ms))
        offsets = trial.probes.committed(application)
        trial.history.add(
            events.Committed(
                at_ms=trial.now_ms,
                application=application.name,
                offsets=offsets,
                stable_ms=0,
                down=False,
            )
        )
        trial.probes.weigh(application)
        trial.probes.look_at_store(application)
    if not (new := trial.probes.outputs_seen(application) - known):
        raise MarkMissed(
            f"{trial.manifest.name} sent nothing while its store took nothing, so it had nothing "
            "to store"
        )
    trial.mark(DISTURBED[how], outputs_meanwhile=new, committed=offsets)
