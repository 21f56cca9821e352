"""Faults at a request: the proxy meets the next one of an API that an instance sends, before the
broker has it or after.

What is held is lost when the instance is killed, as it would be had the instance died just then; or
it arrives late.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kio.schema.errors import ErrorCode

from upheld.history.marks import Happening
from upheld.injectors.proxy.errors import Moment
from upheld.injectors.proxy.rules import Exchange, Fault, Rule
from upheld.nemesis.moments import WAVES
from upheld.trial.application import Application
from upheld.trial.trial import Trial
from upheld.verdicts import AdapterBreach, MarkMissed, NotOffered, Violated

BEFORE: dict[Fault, Happening] = {
    "close": Happening.REQUEST_LOST,
    "silence": Happening.REQUEST_LOST,
    "hold": Happening.REQUEST_HELD,
    "refuse": Happening.REQUEST_REFUSED,
}
AFTER: dict[Fault, Happening] = {
    "close": Happening.ANSWER_LOST,
    "silence": Happening.ANSWER_LOST,
    "hold": Happening.ANSWER_HELD,
    "refuse": Happening.APPLIED_AND_REFUSED,
}
LOOK_S = 0.05
ARRIVED_S = 5.0  # what was held is answered by then
SILENT_S = 90.0  # half as much again as the longest request timeout that clients come with


def meet(  # noqa: PLR0913, PLR0917 (what the sentence says)
    trial: Trial,
    application: Application,
    fault: Fault,
    moment: Moment,
    request: str,
    error: ErrorCode = ErrorCode.none,
) -> Rule:
    """Strike the next such request of instance a, and mark it; one that has drained its input is
    given another wave, a few times.

    A request has Kafka's name for it, such as EndTxn. NotOffered where its clients never send one,
    MarkMissed where no more came.
    """
    rule = Rule(
        application.door(),
        re.sub(r"(?<!^)(?=[A-Z])", "_", request).lower(),
        fault,
        moment,
        error=error,
    )
    trial.rig.open_proxy().arm(rule)
    trial.rig.pool(trial.manifest).prepare()  # somebody may have to take over
    waves, until = 0, time.monotonic() + trial.rig.progress_s * trial.rig.time_scale
    while not rule.struck.wait(LOOK_S):
        trial.monitor.tick(application)
        trial.rig.open_proxy()  # which says what it could not read
        if time.monotonic() > until:
            raise MarkMissed(
                f"{trial.manifest.name} sent no {request} in {trial.rig.progress_s:g} s"
            )
        if not application.input.is_fed and trial.monitor.is_drained(
            application, outputs_too=False
        ):
            if waves == WAVES:
                _never(trial, rule, request)
            waves += 1
            trial.workload.feed_more(application)
    assert rule.exchange
    if fault == "refuse":
        rule.exchange.is_over.wait(ARRIVED_S * trial.rig.time_scale)
        if rule.exchange.told is None:
            raise MarkMissed(
                f"{trial.manifest.name} left before it was told that its {request} is refused"
            )
    happening = (BEFORE if moment == "before" else AFTER)[fault]
    said = happening.text.format(request=request)
    trial.mark(happening, said, **evidence_of(rule.exchange))
    return rule


def arrive(trial: Trial, rule: Rule) -> None:
    """Let what is held arrive, and mark what the broker answers; MarkMissed where it says
    nothing.
    """
    assert rule.exchange
    trial.rig.open_proxy().release(rule)
    if (
        not rule.exchange.is_over.wait(ARRIVED_S * trial.rig.time_scale)
        or rule.exchange.answered_s is None
    ):
        raise MarkMissed(f"the broker did not answer the {rule.api} that arrived late")
    trial.mark(
        Happening.ARRIVED_LATE,
        **evidence_of(rule.exchange),
        error=rule.exchange.error,
    )


def give_up(trial: Trial, application: Application, rule: Rule) -> None:
    """Wait until the client leaves the connection that fell silent, and mark how long it took;
    Violated where it never does.
    """
    began = time.monotonic()

    def is_given_up() -> bool:
        trial.monitor.tick(application)
        return rule.given_up.is_set()

    if not trial.recorder.wait(SILENT_S, is_given_up):
        raise Violated.one(
            "stuck",
            f"{trial.manifest.name} waits on a silent connection for more than {SILENT_S:g} s",
        )
    after_ms = round(1000 * (time.monotonic() - began))
    trial.mark(Happening.SILENCE_GIVEN_UP, after_ms=after_ms)


@contextmanager
def out_of_reach(trial: Trial, application: Application) -> Iterator[None]:
    """Meanwhile instance a has no connection to a broker, and gets none; weigh it before and at the
    end of that.
    """
    proxy, door = trial.rig.open_proxy(), application.door()
    trial.probes.weigh(application)
    if not (lost := proxy.bar(door)):
        raise AdapterBreach(
            f"{trial.manifest.name} never used the address that start gave it as bootstrap"
        )
    try:
        yield
        trial.probes.weigh(application)
    finally:
        turned_away = proxy.unbar(door)
    trial.mark(Happening.BROKER_OUT_OF_REACH, connections=lost, turned_away=turned_away)


def _never(trial: Trial, rule: Rule, request: str) -> None:
    seen = {
        exchange.api for exchange in trial.rig.open_proxy().exchanges if exchange.door == rule.door
    }
    if not seen:
        raise AdapterBreach(
            f"{trial.manifest.name} never used the address that start gave it as bootstrap"
        )
    if rule.api not in seen:
        raise NotOffered(f"the clients of {trial.manifest.name} send no {request}")
    raise MarkMissed(f"{trial.manifest.name} drained its input, and sent no further {request}")


def evidence_of(exchange: Exchange) -> dict[str, Any]:
    """What a mark says of a request that was struck; where it was done and is refused, that the
    broker knew of no error (0).
    """
    said: dict[str, Any] = {} if exchange.told is None else {"told": exchange.told.name}
    if exchange.refusal and exchange.api == "produce":
        said |= {"overtaken": exchange.overtaken.is_set()}
    elif exchange.told and not exchange.refusal:
        said |= {"broker_error": exchange.error}
    return {
        "befell": exchange.fault,
        "api": exchange.api,
        "version": exchange.version,
        "number": exchange.number,
        "client": exchange.client_id,
        "connection": exchange.connection,
        "answered": exchange.answered_s is not None,
        **said,
    }
