"""The needs of a row are known from its sentences, before anything boots for it."""

import sys
from itertools import chain
from pathlib import Path

import pytest

from upheld.judging.prerequisites import (
    KILLS_THE_BROKER,
    OF_GROUPS,
    OFFERS,
    PROTOCOL,
    SETS_THE_CLOCK,
    STORE,
    STORES,
    TAKEN,
    WITHOUT_A_MODEL,
    demand,
    fits,
    lacking,
    limited,
)
from upheld.protocol.capabilities import Capability
from upheld.protocol.limits import Limit
from upheld.protocol.manifest import Manifest, load
from upheld.spec import catalogue
from upheld.spec.gherkin import ON_A_CLUSTER, THROUGH_PROXY, Row
from upheld.spec.selection import is_offered
from upheld.verdicts import MachineLacks, NotOffered, Reason

FOUND = catalogue.load()
ROWS = {row.id: row for scenario in FOUND.scenarios for row in scenario.rows}
PLAIN = load("plain")


def offering(*capabilities: str) -> Manifest:
    """Return a design with these capabilities alone."""
    return PLAIN.model_copy(update={"name": "mine", "capabilities": capabilities})


def demanded(row_id: str, design: Manifest, *, ours: bool = True, secured: bool = False) -> None:
    """Demand what a row needs."""
    demand(ROWS[row_id], design, broker_is_ours=ours, is_secured=secured)


def saying(sentence: str) -> Row:
    """Return a row that says a sentence."""
    return next(r for r in ROWS.values() if any(step.text == sentence for step in r.steps))


def test_each_template_is_said() -> None:
    """A sentence that is worded anew would leave its need unknown."""
    sentences = {step.text for row in ROWS.values() for step in row.steps}
    templates = chain(
        chain.from_iterable(each.templates for each in (*OFFERS, *TAKEN)),
        chain.from_iterable(WITHOUT_A_MODEL.values()),
        OF_GROUPS,
    )

    assert [t for t in templates if not any(fits(t, said) for said in sentences)] == []
    assert {KILLS_THE_BROKER, SETS_THE_CLOCK} <= sentences
    settings = {cells[0] for r in ROWS.values() for s in r.steps for cells in s.table if cells}
    assert {STORE, PROTOCOL} <= settings


def test_each_capability_of_a_row_is_known_before() -> None:
    """Only what no row needs, or what an answer to `start` says, is not among them."""
    known = {offer.capability for offer in OFFERS} | {*STORES, Capability.GROUP_PROTOCOL}

    assert set(Capability) - known == {Capability.REUSABLE, Capability.STAGES_AT_ONCE}


@pytest.mark.parametrize(
    ("row_id", "capability", "says"),
    [
        ("G53.committed-only[pulse-exactly_once]", "query", "mine answers for no key"),
        ("G32.answers-from-what-is-left[pulse-exactly_once]", "query", "mine answers for no key"),
        ("G38.forgotten[holdings-exactly_once]", "measure", "mine does not say how much state"),
        ("G65.lag-is-true[ledger-exactly_once]", "lag", "mine does not say how far"),
        ("G28.loses-a-worker[ledger-at_least_once]", "workers", "mine shares its work"),
        (
            "G28.assigned-by-the-broker[ledger-exactly_once]",
            "group-protocol",
            "mine cannot be told to join its group by the protocol consumer",
        ),
        ("G31.only-the-active[ledger-at_least_once]", "standby", "mine takes over from no"),
        ("G64.more-than-once[ledger-exactly_once]", "effects", "mine tells nothing"),
        ("G46.set-aside[relay-at_least_once]", "dead-letters", "mine sets nothing aside"),
    ],
)
def test_a_capability(row_id: str, capability: str, says: str) -> None:
    """Without it the row is unsupported, and the reason names it."""
    others = [each for each in Capability if each != capability]

    with pytest.raises(NotOffered, match=rf"^{says}.*\(capability {capability}\)$"):
        demanded(row_id, offering(*others))
    demanded(row_id, offering(*Capability))


def test_a_store_is_a_capability() -> None:
    """Its kind stands in the configuration of the row."""
    row = next(
        r for r in ROWS.values() if any(STORE in cells for s in r.steps for cells in s.table)
    )
    (kind,) = {cells[1] for s in row.steps for cells in s.table if cells[0] == STORE}

    assert list(lacking(row, offering())) == [f"mine keeps no state in {kind} (capability {kind})"]


@pytest.mark.parametrize(
    ("said", "module", "extra"),
    [
        ("redis", "redis", "redis"),
        ("cassandra", "cassandra", "cassandra"),
        (SETS_THE_CLOCK, "lief", "clock"),
    ],
)
def test_what_is_not_installed_is_known_before(
    said: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing boots for a row that needs an extra, and the machine is to blame."""
    row = next(
        r
        for r in ROWS.values()
        for s in r.steps
        if said == s.text or any(said in cells for cells in s.table)
    )
    demanded(row.id, offering(*Capability))
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MachineLacks, match=rf"^the Python module {module} .*upheld\[{extra}\]"):
        demanded(row.id, offering(*Capability))


def test_a_broker_of_somebody_else() -> None:
    """It is not killed, and on a secured one no request can be met."""
    on_a_cluster = next(r.id for r in ROWS.values() if ON_A_CLUSTER in r.tags)
    wire = next(
        r.id for r in ROWS.values() if THROUGH_PROXY in r.tags and not list(lacking(r, PLAIN))
    )

    for row_id in (on_a_cluster, saying(KILLS_THE_BROKER).id):
        demanded(row_id, offering(*Capability))
        with pytest.raises(MachineLacks) as lacks:
            demanded(row_id, offering(*Capability), ours=False)
        assert lacks.value.code is Reason.MACHINE_LACKS
    demanded(wire, PLAIN, ours=False)
    with pytest.raises(MachineLacks, match="secured"):
        demanded(wire, PLAIN, ours=False, secured=True)


@pytest.mark.parametrize("limit", Limit, ids=str)
def test_a_limit_takes_rows_of_its_guarantees_alone(limit: Limit) -> None:
    """They are the ones that it names, and each reason has a code and a link."""
    design = PLAIN.model_copy(
        update={"name": "mine", "cannot": (limit,), "capabilities": tuple(Capability)}
    )
    taken = {row_id for row_id, row in ROWS.items() if list(limited(row, design))}

    assert {row_id.partition(".")[0] for row_id in taken} == set(limit.guarantees)
    for row_id in taken:
        with pytest.raises(NotOffered, match=rf"^mine cannot .* \({limit}, see https://") as ended:
            demanded(row_id, design)
        assert ended.value.code is Reason.CANNOT
        demanded(row_id, offering(*Capability))


def test_a_transactional_id_shows_what_no_static_member_does() -> None:
    """So the limit counts without transactions alone."""
    design = PLAIN.model_copy(update={"cannot": (Limit.STATIC_MEMBERSHIP,)})

    assert list(limited(ROWS["G55.noticed[ledger-at_least_once]"], design))
    assert not list(limited(ROWS["G55.deployed-twice[ledger-exactly_once]"], design))


def test_an_application_without_an_adapter_is_judged_on_what_is_said_of_any() -> None:
    """Rows that hang on a program are not promised; an untold setting rules a row out."""
    orders = load(str(Path(__file__).parents[3] / "examples" / "orders"))
    reasons = {
        row.id: list(lacking(row, orders)) for row in ROWS.values() if is_offered(row, orders)
    }

    judged = [name for name, said in reasons.items() if not said]
    assert len({name.partition(".")[0] for name in judged}) >= 15
    assert len(judged) >= 30
    assert "G11.envelope-survives[relay-exactly_once]" not in reasons
    assert reasons["G43.made-anew[relay-exactly_once]"] == [
        "orders is judged as it is: no run without a fault answers for such an input"
    ]
    assert reasons["G69.orderly-failure[relay-exactly_once]"] == [
        "orders is not told its commit interval: design.toml has no {commit_interval_ms}",
        "orders is started again at once when it ends (restart), so what it leaves behind is not "
        "seen",
    ]
    assert orders.application
    left = orders.application.model_copy(update={"restart": "never"})
    alone = orders.model_copy(update={"application": left})
    assert len(list(lacking(ROWS["G69.orderly-failure[relay-exactly_once]"], alone))) == 1


def test_the_clock_of_a_container_is_that_of_the_machine() -> None:
    """Variables of the harness do not reach it, so its clock cannot be set."""
    orders = load(str(Path(__file__).parents[3] / "examples" / "orders"))
    assert orders.application
    process = orders.application.process["app"].model_copy(update={"image": "shop/orders:4"})
    table = orders.application.model_copy(update={"process": {"app": process}})
    design = orders.model_copy(update={"application": table})
    reason = "orders runs in containers, which have the clock of this machine"

    assert reason in lacking(saying(SETS_THE_CLOCK), design)
    assert reason not in lacking(saying(SETS_THE_CLOCK), orders)


@pytest.mark.parametrize(
    ("row", "placeholder"),
    [
        ("G89.another-guarantee[relay-exactly_once]", "mode"),
        ("G89.another-commit-interval[relay-exactly_once]", "commit_interval_ms"),
    ],
)
def test_a_planned_change_has_to_reach_the_application(row: str, placeholder: str) -> None:
    """A start with another setting is nothing to an application that is not told it."""
    orders = load(str(Path(__file__).parents[3] / "examples" / "orders"))
    assert orders.application
    process = orders.application.process["app"]
    environment = process.environment | {"CHANGED": f"{{{placeholder}}}"}
    told = orders.application.model_copy(
        update={"process": {"app": process.model_copy(update={"environment": environment})}}
    )
    design = orders.model_copy(update={"application": told})

    assert any(f"{{{placeholder}}}" in reason for reason in lacking(ROWS[row], orders))
    assert not any(f"{{{placeholder}}}" in reason for reason in lacking(ROWS[row], design))


def test_a_row_needs_each_mode_that_it_starts_in() -> None:
    """A design with one guarantee has not promised to change it."""
    row = ROWS["G89.another-guarantee[relay-exactly_once]"]

    assert row.needs == {("relay", "exactly_once"), ("relay", "at_least_once")}


@pytest.mark.parametrize(
    ("row_id", "words"),
    [
        ("G41.ends-in-markers[relay-at_least_once]", {"none"}),
        ("G47.commits-what-came-out[relay-at_least_once]", {"none", "group-leads"}),
        ("G1.replayed-after-a-crash[ledger-at_least_once]", set()),
    ],
)
def test_what_only_committed_offsets_show_is_not_judged_without_them(
    row_id: str, words: set[str]
) -> None:
    """The reason says what the offsets of the application mean."""
    orders = load(str(Path(__file__).parents[3] / "examples" / "orders" / "naive"))
    row = ROWS[row_id]
    for progress in ("group", "group-leads", "none"):
        design = orders.model_copy(update={"progress": progress})
        said = [why for why in lacking(row, design) if "do not say how far" in why]

        assert len(said) == (progress in words)
        assert all(f'(progress = "{progress}")' in why for why in said)


def test_the_proxy_brings_a_transaction_timeout_about() -> None:
    """A row that sets one needs readable requests, and the leave to shorten."""
    orders = load(str(Path(__file__).parents[3] / "examples" / "orders"))
    assert orders.application
    process = orders.application.process["app"]
    told = {k: v for k, v in process.environment.items() if "TIMEOUT" not in k}
    mute = orders.application.model_copy(
        update={"process": {"app": process.model_copy(update={"environment": told})}}
    )
    design = orders.model_copy(update={"application": mute})
    row = ROWS["G39.dead-for-good[ledger-exactly_once]"]

    assert not list(lacking(row, design))
    assert list(lacking(row, design.as_deployed()))
    assert list(limited(row, design.as_deployed()))
    demand(row, design, broker_is_ours=True, is_secured=False)
    with pytest.raises(MachineLacks):
        demand(row, design, broker_is_ours=True, is_secured=True)


def test_a_design_is_compared_with_itself_by_its_outputs_alone() -> None:
    """Another program, a store and an answer to a query rule a row out."""
    plain = PLAIN.model_copy(update={"compared_with": "itself"})

    assert list(lacking(ROWS["G22.dies-after-a-commit[relay-exactly_once]"], plain)) == []
    hangs = "the promise hangs on relay as it is specified"
    said = {
        "G11.envelope-survives[relay-exactly_once]": hangs,
        "G49.one-partition-is-idle[ledger-exactly_once]": "its records are those of its samples",
        "G16.never-wrong[pulse-exactly_once]": "nothing but its outputs is compared",
        "G5.locked-store[ledger-at_least_once-redis]": "nothing but its outputs is compared",
    }
    for row, reason in said.items():
        assert f"plain is compared with itself: {reason}" in list(lacking(ROWS[row], plain))
        assert list(lacking(ROWS[row], PLAIN)) == []
    assert list(lacking(ROWS["G22.dies-after-a-commit[ledger-exactly_once]"], plain)) == []
    (pulse, _) = lacking(ROWS["G16.never-wrong[pulse-exactly_once]"], plain)
    assert "pulse has more than one input or output" in pulse


def test_another_instance_answers_if_the_application_says_so() -> None:
    """Otherwise the keys of a dead instance wait until another one has them."""
    support = Path(__file__).parents[2] / "support" / "applications"
    served = load(str(support / "served"))
    assert served.application
    table = served.application.query["totals"].model_copy(update={"everywhere": True})
    told = served.application.model_copy(update={"query": {"totals": table}})
    row = ROWS["G16.stays-online[pulse-at_least_once]"]

    reasons = [
        [*lacking(row, served.model_copy(update={"application": each, "capabilities": offered}))]
        for each in (served.application, told)
        for offered in (("scale", "query"),)
    ]

    said = (
        "served does not say that each instance answers for every key ([query.totals] everywhere)"
    )
    assert reasons == [[said], []]
    assert not list(lacking(ROWS["G16.never-wrong[pulse-exactly_once]"], served))
