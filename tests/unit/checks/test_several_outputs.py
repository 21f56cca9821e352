"""An application with two outputs is judged on each of them."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from histories import EPOCH_MS, begun

from upheld.checks import CHECKS
from upheld.checks.outside import outside
from upheld.checks.strength import Strength, strength_of
from upheld.checks.unfinished import stuck_at, worse
from upheld.history import History
from upheld.history.events import (
    Answered,
    Application,
    Batch,
    Claim,
    Committed,
    Contract,
    Event,
    FurtherOutput,
    Record,
)
from upheld.history.outputs import by_output
from upheld.programs.itself import digest_of
from upheld.verdicts import Anomaly, NotOffered

# An order of each letter; a capital one is large, and makes an alert too.
ORDERS = "aAbBa"
CONTRACT = Contract(
    name="orders",
    reads="orders",
    writes="costs",
    format="json",
    ignore=("$.at",),
    further=(FurtherOutput(writes="alerts", format="bytes"),),
)


def costs(topic: str, orders: str) -> list[Record]:
    """Return a cost of each order, with a clock."""
    return [
        record(topic, offset, order, json.dumps({"of": order, "at": f"{topic}{offset}"}))
        for offset, order in enumerate(orders)
    ]


def alerts(topic: str, orders: str) -> list[Record]:
    """Return an alert of each large order."""
    large = filter(str.isupper, orders)
    return [record(topic, offset, order, f"large: {order}") for offset, order in enumerate(large)]


def record(topic: str, offset: int, order: str, value: str) -> Record:
    """Return a record of the key that an order has."""
    return Record(topic, 0, offset, EPOCH_MS, order.lower().encode(), value.encode())


def told(
    shown: Iterable[Record],
    *more: Event,
    orders: str = ORDERS,
    mode: Any = "exactly_once",
    asked: Iterable[str] = (ORDERS,),
) -> History:
    """Return a history of orders, with the answers to them, and of what was shown."""
    history = History([begun(design="orders", local_state=False, seed=0)])
    history.add(
        Application(
            name="app",
            application_id="app",
            program="relay",
            mode=mode,
            topics={"orders": "in", "costs": "costs", "alerts": "alerts"},
            parameters={"commit_interval_ms": 100},
            transaction_timeout_ms=3000,
            contract=CONTRACT,
        )
    )
    inputs = [record("in", offset, order, order) for offset, order in enumerate(orders)]
    history.add_all(inputs)
    for number, answered in enumerate(asked):
        for role, made in (("costs", costs), ("alerts", alerts)):
            topic = f"asked-{number}-{role}"
            history.add_all(made(topic, answered))
            history.add(
                Answered(
                    at_ms=0,
                    application="app",
                    inputs=digest_of(inputs[: len(answered)]),
                    outputs=topic,
                    output=role,
                    topics=(topic,),
                )
            )
    history.add_all(shown)
    for event in more:
        history.add(event)  # type: ignore[arg-type]
    return history


def judged(check: str, history: History) -> list[Anomaly]:
    """Return the anomalies that a check finds."""
    return CHECKS[check](history, "app")


def found(check: str, history: History) -> list[str]:
    """Return the name and the output of each anomaly."""
    return sorted({f"{each.name} {each.text.partition(':')[0]}" for each in judged(check, history)})


def cut(committed: int) -> Committed:
    """Return a look at the committed offset with the application down."""
    offsets = {"in-0": committed}
    return Committed(at_ms=1, application="app", offsets=offsets, stable_ms=0, down=True)


@pytest.mark.parametrize(
    ("costs_of", "alerts_of", "anomalies"),
    [
        (ORDERS, ORDERS, []),
        ("aAbB", ORDERS, ["lost output costs"]),
        (ORDERS, "aAba", ["lost output alerts"]),
        (ORDERS, "aAbBaA", ["duplicated output alerts"]),
        ("aAbBaa", ORDERS, ["duplicated output costs"]),
        ("aAbB", "", ["lost output alerts", "lost output costs"]),
    ],
)
def test_each_output_is_compared_with_its_own_answer(
    costs_of: str, alerts_of: str, anomalies: list[str]
) -> None:
    """An anomaly names its output; the other output is right or wrong by itself."""
    shown = [*costs("costs", costs_of), *alerts("alerts", alerts_of)]

    assert found("relation", told(shown)) == anomalies


def test_an_anomaly_names_the_input_that_an_output_shows() -> None:
    """Nobody knows which order an alert is of, so that none is blamed."""
    (cost,) = judged("relation", told([*costs("costs", "aAbBaa"), *alerts("alerts", ORDERS)]))
    (alert,) = judged("relation", told([*costs("costs", ORDERS), *alerts("alerts", "aAbBaA")]))

    assert (cost.source, cost.got) == ("in-0@4", '{"at": "…", "of": "a"} at costs-0@5')
    assert (alert.source, alert.got) == (None, "large: A at alerts-0@2")


@pytest.mark.parametrize(
    ("costs_of", "alerts_of", "anomalies"),
    [
        ("aAb", "aAb", []),
        ("aAb", "aAbB", ["ahead-of-commit output alerts"]),
        ("aAb", "a", ["behind-commit output alerts"]),
        ("aAbB", "aAb", ["ahead-of-commit output costs"]),
        ("aA", "aAb", ["behind-commit output costs"]),
    ],
)
def test_all_outputs_are_those_of_one_committed_input(
    costs_of: str, alerts_of: str, anomalies: list[str]
) -> None:
    """Outputs of one transaction on two topics are visible together, or not at all."""
    shown = [*costs("costs", costs_of), *alerts("alerts", alerts_of)]
    history = told(shown, cut(3), asked=(ORDERS, ORDERS[:3]))

    assert found("fold", history) == anomalies


def test_an_output_that_cannot_be_judged_is_named() -> None:
    """Nobody asked what comes of the committed input, and alerts do not show theirs."""
    history = told([*costs("costs", "aAb"), *alerts("alerts", "aAb")], cut(3))

    with pytest.raises(NotOffered, match=r"^of the output alerts: its keys have more or fewer"):
        judged("fold", history)


def test_an_anomaly_of_one_output_counts_though_another_cannot_be_judged() -> None:
    """Otherwise a sparse output would hide what is wrong with the others."""
    history = told([*costs("costs", "aAbB"), *alerts("alerts", "aAb")], cut(3))

    assert found("fold", history) == ["ahead-of-commit output costs"]


def test_a_partition_has_one_owner_by_the_outputs_that_show_it() -> None:
    """Alerts do not show their input, and costs are enough."""
    shown = [*costs("costs", ORDERS), *alerts("alerts", ORDERS)]
    writers = {"costs": [1, 1, 2, 1, 2], "alerts": [1, 2]}
    batches = [
        Batch(
            topic=topic,
            partition=0,
            base_offset=offset,
            last_offset=offset,
            producer_id=producer,
            producer_epoch=0,
            transactional=True,
        )
        for topic, producers in writers.items()
        for offset, producer in enumerate(producers)
    ]

    assert found("owners", told(shown, *batches)) == ["fenced-but-emitting output costs"]


def test_what_every_output_shows_is_said_once() -> None:
    """It is one of the application, and of no output."""
    early = Committed(
        at_ms=1,
        application="app",
        offsets={"in-0": 4},
        stable_ms=0,
        down=False,
        high_watermark={"in-0": 6},
    )
    shown = [*costs("costs", ORDERS), *alerts("alerts", ORDERS)]
    (anomaly,) = judged("caught-up", told(shown, early))

    assert (anomaly.name, anomaly.text.startswith("output")) == ("stuck", False)


def test_an_output_outside_of_any_transaction_is_named() -> None:
    """It may be any of them; at least once there need be no transaction."""

    def batches(*, transactional: bool) -> Iterable[Batch]:
        for topic in ("costs", "alerts"):
            yield Batch(
                topic=topic,
                partition=0,
                base_offset=0,
                last_offset=1,
                producer_id=1,
                producer_epoch=0,
                transactional=transactional or topic == "costs",
            )

    shown = [*costs("costs", ORDERS), *alerts("alerts", ORDERS)]
    (anomaly,) = outside(told(shown, *batches(transactional=False)), "app")

    assert (anomaly.name, anomaly.got) == ("uncommitted-visible", "alerts-0@0")
    assert outside(told(shown, *batches(transactional=True)), "app") == []


def test_a_key_waits_on_any_output() -> None:
    """The attempt ends as stuck, with the key of the output that is not there."""
    history = told([*costs("costs", ORDERS), *alerts("alerts", "aAb")])
    stuck = stuck_at(history, "app", "it does not go on")

    assert stuck
    assert stuck.key == "b"
    assert stuck.text.endswith("b shows nothing, and large: B is due")
    assert worse(history, "app", None) == []


def test_what_is_wrong_already_may_be_on_any_output() -> None:
    """It comes before what is only late."""
    wrong = record("alerts", 9, "a", "large: what")
    history = told([*costs("costs", "aA"), wrong])

    assert [each.name for each in worse(history, "app", {"in-0": 2})] == ["phantom"]


def test_a_verdict_rests_on_the_weakest_output() -> None:
    """The prefix rule needs an answer to the committed input, for alerts alone."""
    claims = [
        Claim(check=check, application="app", sentence=check) for check in ("relation", "fold")
    ]
    known = told([], cut(3), *claims, asked=(ORDERS, ORDERS[:3]))
    unknown = told([], cut(3), *claims)

    assert strength_of(known) == Strength("itself", ("relation", "order", "prefix"))
    assert strength_of(unknown) == Strength("itself", ("relation", "order"), ("prefix",))


def test_a_history_that_grows_is_narrowed_further() -> None:
    """The histories of outputs hold what came since they were asked for."""
    history = told(costs("costs", ORDERS))
    assert found("relation", history) == ["lost output alerts"]

    first = by_output(history, "app")
    history.add_all(alerts("alerts", ORDERS))

    assert by_output(history, "app") == first
    assert found("relation", history) == []


def test_an_application_with_one_output_has_its_own_history() -> None:
    """Nothing is narrowed, so that older histories are judged as before."""
    history = told([])
    one = History(
        [
            event.model_copy(update={"contract": CONTRACT.outputs[0]})
            if isinstance(event, Application)
            else event
            for event in history.events
        ]
    )

    assert by_output(one, "app") == (one,)
    assert len(by_output(history, "app")) == 2
