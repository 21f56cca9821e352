"""Answers of an application by HTTP are compared with its visible outputs."""

import json
from typing import Any

import pytest
from histories import EPOCH_MS, begun

from upheld.checks import CHECKS
from upheld.history import History
from upheld.history.events import (
    Answer,
    Answered,
    Application,
    Contract,
    FurtherOutput,
    Instance,
    Notice,
    Record,
)
from upheld.programs.itself import digest_of
from upheld.verdicts import Anomaly, Inconclusive, NotOffered

CONTRACT = Contract(
    name="orders",
    reads="orders",
    writes="totals",
    format="json",
    ignore=("$.at",),
    shape="fold",
    asked={},
)


class Story:
    """A history of orders of one cent for ada, and of the total after each of them."""

    def __init__(
        self, orders: int = 3, *, contract: Contract = CONTRACT, mode: Any = "exactly_once"
    ) -> None:
        self.history = History([begun(design="orders", local_state=False, seed=0)])
        self.history.add(
            Application(
                name="app",
                application_id="app",
                program="pulse",
                mode=mode,
                topics={"orders": "in", "totals": "out", "alerts": "alerts"},
                parameters={"commit_interval_ms": 100},
                transaction_timeout_ms=3000,
                contract=contract,
            )
        )
        self.inputs = [record("in", offset, "1") for offset in range(orders)]
        self.history.add_all(self.inputs)
        for number, role in enumerate(contract.roles):
            topic = f"asked-{number}"
            self.history.add_all(record(topic, n, total(n + 1)) for n in range(orders))
            self.history.add(
                Answered(
                    at_ms=0,
                    application="app",
                    inputs=digest_of(self.inputs),
                    outputs=topic,
                    output=role if contract.further else "",
                    topics=(topic,),
                    unstable=("$.id",),
                )
            )
        self.end = 0
        self.happens("started")

    def happens(self, event: Any, name: str = "a") -> None:
        """Tell an event in the life of an instance."""
        self.history.add(Instance(at_ms=0, application="app", name=name, event=event))

    def says(self, *totals: int | None, topic: str = "out") -> None:
        """Let outputs become visible."""
        values = (None if each is None else total(each) for each in totals)
        for value in values:
            self.history.add(record(topic, self.end, value))
            self.end += 1

    def answers(self, said: str | None, *, key: str = "ada", ready: bool = True) -> None:
        """Let instance a answer for a key."""
        self.history.add(
            Answer(
                at_ms=7,
                application="app",
                name="a",
                key=key.encode(),
                ready=ready,
                value=said,
                stable={"out-0": self.end},
            )
        )

    def judged(self, check: str = "answers") -> list[Anomaly]:
        """Return the anomalies that a check finds."""
        return CHECKS[check](self.history, "app")

    def found(self, check: str = "answers") -> list[str]:
        """Return the names of the anomalies that a check finds."""
        return [each.name for each in self.judged(check)]


def record(topic: str, offset: int, value: str | None) -> Record:
    """Return a record of ada's."""
    return Record(topic, 0, offset, EPOCH_MS, b"ada", None if value is None else value.encode())


def total(cents: int) -> str:
    """Return an output, with a clock and an id that no other one has."""
    return json.dumps({"cents": cents, "at": cents, "id": f"output {cents}"})


def answer(cents: int) -> str:
    """Return an answer, which has neither clock nor id."""
    return json.dumps({"cents": cents})


def restarted(**more: Any) -> Story:
    """Tell two totals, a kill and a start after them."""
    story = Story(**more)
    story.says(1, 2)
    story.happens("killed")
    story.happens("started")
    return story


def test_an_answer_is_an_output_without_what_is_not_compared() -> None:
    """Fields to ignore, and those that differ by themselves, need not be in an answer."""
    story = restarted()
    story.answers(None, ready=False)
    story.answers(answer(2))

    assert story.found() == []


@pytest.mark.parametrize(
    ("said", "name", "text"),
    [
        (None, "behind-commit", "nothing at 7 ms, which is none of its outputs; output 2 was"),
        ("null", "behind-commit", "which is none of its outputs; output 2 was visible when"),
        (answer(1), "behind-commit", "which is output 1 of its key; output 2 was visible when it"),
        (answer(3), "uncommitted-visible", "which no reader of committed data saw then"),
        ("<html>", "uncommitted-visible", "a answered ada with <html> at 7 ms, which no reader"),
    ],
)
def test_an_answer_after_a_crash_is_the_last_output(said: str | None, name: str, text: str) -> None:
    """An empty table, an older total and one that is not there yet are told apart."""
    story = restarted()
    story.answers(said)
    (found,) = story.judged()

    assert found.name == name
    assert text in found.text


def test_a_total_is_served_before_readers_have_it() -> None:
    """The output comes later, and the answer was too early all the same."""
    story = Story()
    story.says(1)
    story.answers(answer(1))
    story.answers(answer(2))
    story.says(2)
    story.answers(answer(2))

    assert story.found("committed-answers") == ["uncommitted-visible"]


def test_it_goes_back() -> None:
    """An instance may say less than before if it has begun anew, and not otherwise."""
    story = restarted()
    story.says(3)
    for cents in (2, 3, 2):
        story.answers(answer(cents))
    assert story.found() == ["reordered"]

    again = restarted()
    again.says(3)
    again.answers(answer(3))
    again.history.add(Notice(at_ms=0, application="app", name="a", code="recovered"))
    again.answers(answer(2))
    assert again.found() == ["behind-commit"]


def test_outputs_that_come_again_excuse_older_answers() -> None:
    """An at_least_once application was where the first of them is said."""
    for mode, expected in (("at_least_once", []), ("exactly_once", ["behind-commit"])):
        story = restarted(mode=mode)
        story.answers(answer(1))
        story.says(2, 3)
        found = [name for name in story.found() if name != "duplicated"]
        assert found == expected

    lost = restarted(mode="at_least_once")
    lost.answers(None)
    lost.says(2, 3)
    assert lost.found() == ["behind-commit"]


def test_a_tombstone_is_no_value() -> None:
    """A key that was deleted has no value, and an older value is behind."""
    story = restarted()
    story.says(None)
    story.answers(None)
    story.answers(answer(2))

    assert [name for name in story.found() if name != "phantom"] == ["reordered"]


def test_the_last_answer_is_the_last_output() -> None:
    """Each key that was visible has to be asked for."""
    story = Story()
    story.says(1, 2)
    with pytest.raises(NotOffered):
        story.found("answered")
    story.answers(answer(1), key="bob")
    with pytest.raises(Inconclusive, match="nobody was asked for ada"):
        story.found("answered")
    story = Story()
    story.says(1, 2)
    story.answers(answer(1))
    assert story.found("answered") == ["behind-commit"]
    story.answers(answer(2))
    assert story.found("answered") == []


def test_places_of_an_answer_are_compared_alone() -> None:
    """Its total is in another field; what else it says is not compared."""
    story = restarted(contract=CONTRACT.model_copy(update={"asked": {"$.total": "$.cents"}}))
    story.answers(json.dumps({"total": 2, "cents": 9}))
    assert story.found() == []
    story.answers(json.dumps({"cents": 2}))
    assert story.found() == ["uncommitted-visible"]

    whole = restarted(contract=CONTRACT.model_copy(update={"asked": {"$": "$.cents"}}))
    whole.answers("2")
    assert whole.found() == []

    nothing = restarted(contract=CONTRACT.model_copy(update={"asked": {"$.id": "$.id"}}))
    nothing.answers(answer(2))
    with pytest.raises(NotOffered, match="each of them differs by itself"):
        nothing.found()


def test_bytes_are_compared_as_they_are() -> None:
    """No field of them can be left out."""
    story = restarted(contract=CONTRACT.model_copy(update={"format": "bytes", "ignore": ()}))
    story.answers(total(2))
    assert story.found() == []
    story.answers(answer(2))
    assert story.found() == ["uncommitted-visible"]


def test_another_output_has_no_table() -> None:
    """Answers are compared with the outputs of their query, and with no others."""
    further = (FurtherOutput(writes="totals", format="json", ignore=("$.at",), asked={}),)
    contract = CONTRACT.model_copy(update={"writes": "alerts", "asked": None, "further": further})
    story = restarted(contract=contract)
    story.answers(answer(2))
    assert story.found() == []
    story.answers(answer(1))
    (found,) = story.judged()
    assert (found.name, found.text.partition(":")[0]) == ("behind-commit", "output totals")
    assert contract.table == "totals"
    assert CONTRACT.table == "totals"
    assert CONTRACT.model_copy(update={"asked": None}).table == ""


def test_nobody_knows_which_answer_is_older() -> None:
    """Outputs that may come again, and may be others then, have no order."""
    for mode in ("at_least_once", "exactly_once"):
        story = restarted(mode=mode)
        answered = next(iter(story.history.of(Answered)))
        story.history.add(answered.model_copy(update={"is_by_last_value": True}))
        story.answers(answer(2))
        if mode == "exactly_once":
            assert story.found() == []
            continue
        with pytest.raises(NotOffered, match="nobody can say which answers are older"):
            story.found()
        assert story.found("answered") == []
