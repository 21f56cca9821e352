"""Faults at a request that an instance sends, by a rule of the proxy.

The proxy meets the next request of an API before the broker has it, or its answer after. A request
that is held is lost if the instance is killed, as if the instance had died just then. Or it arrives
late.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kio.schema.errors import ErrorCode

from upheld.history.marks import Happening
from upheld.injectors.proxy.errors import Moment
from upheld.injectors.proxy.proxy import Proxy
from upheld.injectors.proxy.rules import Exchange, Fault, Rule
from upheld.nemesis.moments import WAVES, demand_transactions
from upheld.trial.application import Application
from upheld.trial.trial import Trial
from upheld.verdicts import AdapterBreach, MarkMissed, Undeclared, Violated

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
# The requests that every transaction with offsets is made of.
OF_A_TRANSACTION = {"AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"}
LOOK_S = 0.05
ARRIVED_S = 5.0  # a request that was held is answered by then
_NEVER_USED = "{design} never used the address that start gave it as bootstrap"
SILENT_S = 90.0  # half as much again as the longest request timeout that clients come with


@dataclass(frozen=True)
class Strike:
    """A fault at the next request of an API."""

    fault: Fault
    moment: Moment
    request: str  # Kafka's name for it, such as EndTxn
    error: ErrorCode = ErrorCode.none  # that a refusal answers

    @property
    def api(self) -> str:
        """Return the name that the proxy has for the request, such as `end_txn`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.request).lower()

    @property
    def happening(self) -> Happening:
        """Return the code of its mark."""
        return (BEFORE if self.moment == "before" else AFTER)[self.fault]


def strike_at(trial: Trial, application: Application, strike: Strike) -> Rule:
    """Strike the next such request of instance a and mark it; return the proxy's rule.

    A design that has drained its input is given another wave, a few times.

    Raises:
        Undeclared: The clients of the design never send such a request.
        MarkMissed: No more of them came.
        AdapterBreach: The instance never went through the proxy.
    """
    rule = Rule(application.door(), strike.api, strike.fault, strike.moment, error=strike.error)
    trial.rig.open_proxy().arm(rule)
    trial.rig.pool(trial.manifest).prepare()  # another instance may have to take over
    _await_strike(trial, application, rule, strike.request)
    assert rule.exchange
    if strike.fault == "refuse":
        rule.exchange.is_over.wait(ARRIVED_S * trial.rig.time_scale)
        if rule.exchange.told is None:
            raise MarkMissed(
                f"{trial.manifest.name} left before it was told that its {strike.request} is "
                "refused"
            )
    text = strike.happening.text.format(request=strike.request)
    trial.mark(strike.happening, text, **evidence_of(rule.exchange))
    return rule


def _await_strike(trial: Trial, application: Application, rule: Rule, request: str) -> None:
    """Wait until the proxy has met a request, and feed the design if it has drained."""
    waves = 0
    _, end = trial.probes.ends(application)
    until = time.monotonic() + trial.rig.progress_s * trial.rig.time_scale
    while not rule.struck.wait(LOOK_S):
        trial.monitor.tick(application)
        trial.rig.open_proxy()  # which says what it could not read
        if time.monotonic() > until:
            if trial.probes.ends(application)[1] != end:
                _demand_request(trial, application, rule, request)
            raise MarkMissed(
                f"{trial.manifest.name} sent no {request} in {trial.rig.progress_s:g} s"
            )
        if not application.input.is_fed and trial.monitor.is_drained(
            application, outputs_too=False
        ):
            if waves == WAVES:
                _demand_request(trial, application, rule, request)
                if rule.passed_over:
                    raise MarkMissed(
                        f"a broker gives {rule.error.name.upper()} to none of the "
                        f"{rule.passed_over} {request} requests of {trial.manifest.name}"
                    )
                raise MarkMissed(
                    f"{trial.manifest.name} drained its input, and sent no further {request}"
                )
            waves += 1
            trial.workload.feed_more(application)


def arrive(trial: Trial, rule: Rule) -> None:
    """Let a request that is held arrive, and mark what the broker answers.

    Raises:
        MarkMissed: The broker does not answer.
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
    """Wait until the client leaves a silent connection, and mark how long that took.

    Raises:
        Violated: The client never leaves it.
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
    """Keep instance a from every broker while the body runs, and mark that.

    Its memory is recorded before that and at the end. An instance may have no connection at the
    moment, as between two batches, or before its first request.

    Raises:
        AdapterBreach: The instance never went through the proxy.
        MarkMissed: It had no connection, and asked for none meanwhile.
    """
    proxy = trial.rig.open_proxy()
    door = application.door()
    if not trial.recorder.wait(trial.rig.progress_s, lambda: bool(_asked(proxy, door))):
        raise AdapterBreach(_NEVER_USED.format(design=trial.manifest.name))
    trial.probes.weigh(application)
    lost = proxy.bar(door)
    application.is_struck = True
    try:
        yield
        trial.probes.weigh(application)
    finally:
        turned_away = proxy.unbar(door)
    if not lost + turned_away:
        raise MarkMissed(f"{trial.manifest.name} asked no broker while none was in its reach")
    trial.mark(Happening.BROKER_OUT_OF_REACH, connections=lost, turned_away=turned_away)


def _demand_request(trial: Trial, application: Application, rule: Rule, request: str) -> None:
    """Say why no such request came from a design that works, if its clients never send one.

    Raises:
        AdapterBreach: The instance never went through the proxy.
        Violated: The request is a transaction's, and outputs came outside of any.
        Undeclared: The clients of the design never send such a request.
    """
    seen = _asked(trial.rig.open_proxy(), rule.door)
    if not seen:
        raise AdapterBreach(_NEVER_USED.format(design=trial.manifest.name))
    if rule.api in seen:
        return
    if request in OF_A_TRANSACTION:
        demand_transactions(trial, application)
    raise Undeclared(f"the clients of {trial.manifest.name} send no {request}")


def _asked(proxy: Proxy, door: str) -> set[str]:
    """Return the requests that came through a door so far."""
    return {exchange.api for exchange in proxy.exchanges if exchange.door == door}


def evidence_of(exchange: Exchange) -> dict[str, Any]:
    """Return the evidence of a mark about a request that was struck.

    If the broker did what it asked and the client was told of a refusal, the evidence holds the
    broker's own error, which is 0.
    """
    refusal: dict[str, Any] = {} if exchange.told is None else {"told": exchange.told.name}
    if exchange.refusal and exchange.api == "produce":
        refusal |= {"overtaken": exchange.overtaken.is_set()}
    elif exchange.told and not exchange.refusal:
        refusal |= {"broker_error": exchange.error}
    return {
        "befell": exchange.fault,
        "api": exchange.api,
        "version": exchange.version,
        "number": exchange.number,
        "client": exchange.client_id,
        "connection": exchange.connection,
        "answered": exchange.answered_s is not None,
        **refusal,
    }
