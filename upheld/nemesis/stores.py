"""A store that is locked, slow, down or full for a while."""

from upheld.history import events
from upheld.history.marks import Happening
from upheld.stores import Store
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
    """Have the store locked, slow, down or full for a while, and mark that.

    A slow store is locked most of the time, and accepts in between what waits. The committed
    offsets and the rows of the store are recorded at the end.

    Args:
        trial: The attempt.
        application: The application that keeps its state in the store.
        how: `locked`, `slow`, `down` or `full`.
        length_ms: How long that lasts.

    Raises:
        MarkMissed: No output came meanwhile that is to be stored, or nothing was written to a slow
            store.
    """
    store = application.store
    assert store
    if how == "full":
        run_full(trial, application, store, length_ms)
        return
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
        offsets = _look(trial, application)
        trial.probes.weigh(application)
    if not (new := trial.probes.outputs_seen(application) - known):
        raise MarkMissed(
            f"{trial.manifest.name} sent nothing while its store took nothing, so it had nothing "
            "to store"
        )
    trial.mark(DISTURBED[how], outputs_meanwhile=new, committed=offsets)


def run_full(trial: Trial, application: Application, store: Store, length_ms: int) -> None:
    """Let the store answer every write with an error for a while, and mark that.

    Instance a may wait for room, or stop loudly.

    Raises:
        MarkMissed: It did neither stop nor send an output meanwhile that is to be stored.
        Violated: It ended without a word.
    """
    instance = application.running["a"]
    trial.probes.observe(application)
    known = trial.probes.outputs_seen(application)
    until_ms = trial.now_ms + length_ms
    with store.full():
        while trial.now_ms < until_ms and not instance.is_over:
            trial.probes.observe(application)
        if not instance.failed:
            trial.monitor.tick(application)
        trial.probes.observe(application)
        offsets = _look(trial, application)
    new = trial.probes.outputs_seen(application) - known
    if not (instance.failed or new):
        raise MarkMissed(
            f"{trial.manifest.name} sent nothing while its store was full, so it had nothing to "
            "store"
        )
    message = instance.failed.message if instance.failed else ""
    trial.mark(Happening.STORE_FULL, outputs_meanwhile=new, committed=offsets, said=message)


def _look(trial: Trial, application: Application) -> events.Offsets | None:
    """Record the committed offsets and the rows of the store; return the offsets."""
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
    trial.probes.look_at_store(application)
    return offsets
