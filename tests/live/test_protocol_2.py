"""Designs on real brokers say the words that protocol 2 has added.

A broker refuses an output, a design lacks a right, and an engine recovers inside its process. Each
word stands in the history.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from upheld import report
from upheld.brokers import embedded
from upheld.brokers.embedded import open_embedded
from upheld.brokers.java import Java
from upheld.brokers.security import Security, secure_listener
from upheld.history import History, events
from upheld.history.reading import read
from upheld.report import RowResult
from upheld.supervisor.reaper import RunScope

UPHELD: Final = str(Path(sys.executable).with_name("upheld"))
DEADLINE_S: Final = 240.0
ANSWER_S: Final = 10.0
RELAY: Final = "G40.aborted-upstream[relay-{mode}]"
REFUSED: Final = "G69.orderly-failure[ledger-exactly_once]"

MANIFEST: Final = """
name = "{name}"
version = "1"
command = ["{{python}}", "design.py"]
extends = "plain"
programs = ["relay"]
"""

# Its outputs are out, and their input is not committed: after that it reads from the last commit.
RECOVERS: Final = """
from upheld.adapter import serve
from upheld.impl.plain import Plain

class EngineFailed(Exception):
    pass

class Recovers(Plain):
    hello = Plain.hello | {{"name": "{name}", "programs": ["relay"]}}

    def open(self, start):
        self.is_to_fail = True
        return super().open(start)

    def commit(self):
        if self.dirty and self.is_to_fail:
            self.is_to_fail = False
            self.producer.flush(10)
            raise EngineFailed
        super().commit()

    def run(self, stopping):
        try:
            super().run(stopping)
        except EngineFailed:
            self.chunk = []
            self.dirty = False
            self.consumer.close()
            {says}
            self.take_up_work()
            super().run(stopping)

serve(Recovers())
"""
SAYS: Final = {"says_it": 'self.notice("recovered")', "says_nothing": "pass"}

# It has credentials of its own, whose owner may write nothing.
STRANGER: Final = """
from upheld.adapter import serve
from upheld.impl.plain import Plain

class Stranger(Plain):
    hello = Plain.hello | {{"name": "stranger", "programs": ["relay"]}}

    def open(self, start):
        own = {{"sasl.username": "{user}", "sasl.password": "{password}"}}
        return super().open(start | {{"client": start["client"] | own}})

serve(Stranger())
"""
USER: Final = "stranger"
PASSWORD: Final = "not-a-secret-of-anybody"


class Judged(NamedTuple):
    """A row that was judged, and its history."""

    row: RowResult
    history: History


def designed(folder: Path, name: str, program: str) -> str:
    """Write a miniature design, and return the path of its manifest."""
    folder.mkdir()
    (folder / "design.py").write_text(program)
    (folder / "design.toml").write_text(MANIFEST.format(name=name))
    return str(folder / "design.toml")


def ran(folder: Path, rows: dict[str, str], *options: str) -> dict[str, Judged]:
    """Judge a row of each design, and return the outcomes by the designs' names.

    Args:
        folder: The folder of the run.
        rows: The row of each design, which is a path or a shipped name.
        options: More options of the run.
    """
    out = folder / "out"
    given = [argument for design in rows for argument in ("--design", design)]
    lines = folder / "rows"
    names = {design: Path(design).parent.name if "/" in design else design for design in rows}
    lines.write_text("".join(f"{names[design]} {row}\n" for design, row in rows.items()))
    command = [UPHELD, "run", "--seed", "1", "--out", str(out), "--rows", str(lines)]
    subprocess.run(
        [*command, *given, *options],
        cwd=folder,
        env=os.environ,
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    judged = report.read(out / "report.jsonl")[0]
    return {row.design: Judged(row, read(out / row.history)) for row in judged}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judged]:
    """Judge plain where the broker refuses its outputs, and two designs that recover."""
    folder = tmp_path_factory.mktemp("open")
    recovering = {
        designed(folder / name, name, RECOVERS.format(name=name, says=says)): RELAY.format(
            mode="at_least_once"
        )
        for name, says in SAYS.items()
    }
    return ran(folder, {"plain": REFUSED, **recovering}, "--broker", "embedded")


def failures(history: History) -> list[events.Failure]:
    """Return what a history's loud stops say in fields."""
    lives = history.of(events.Instance)
    return [life.failure for life in lives if life.event == "failed" and life.failure]


def test_an_output_that_the_broker_takes_at_no_try_is_refused(judged: dict[str, Judged]) -> None:
    """The broker says MESSAGE_TOO_LARGE, and the design names its output topic."""
    row, history = judged["plain"]

    (said,) = failures(history)
    topics = history.application("ledger").topics
    assert (row.verdict, said.kind, said.output) == ("upheld", "refused", topics["balances"])


def test_an_engine_that_says_that_it_recovered_may_step_back_once(
    judged: dict[str, Judged],
) -> None:
    """Its outputs are repeated from the last commit, and it has started once."""
    row, history = judged["says_it"]

    (said,) = history.of(events.Notice)
    assert (row.verdict, said.code) == ("upheld", "recovered"), row.anomalies
    lives = [life.event for life in history.of(events.Instance)]
    assert lives.count("started") == 1


def test_the_same_without_a_word_is_reordered(judged: dict[str, Judged]) -> None:
    """So the notice is what excuses the step back, and the outputs really step back."""
    row, history = judged["says_nothing"]

    assert list(history.of(events.Notice)) == []
    assert row.verdict == "violated"
    assert {anomaly.name for anomaly in row.anomalies} == {"reordered"}


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yield the options for a broker where the stranger may only read topics."""

    def with_rights(folder: Path, java: Java) -> Security:
        made = secure_listener(folder, java)
        jaas = "listener.name.client.plain.sasl.jaas.config"
        rights = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:upheld",  # the broker itself, and the harness
            "allow.everyone.if.no.acl.found": "true",  # groups and transactional ids
            jaas: made.broker[jaas].replace(";", f' user_{USER}="{PASSWORD}";'),
        }
        return replace(made, broker=made.broker | rights)

    monkeypatch.setattr(embedded, "secure_listener", with_rights)
    with RunScope() as run:
        broker = open_embedded(run, tmp_path, why="a test", secured=True)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **broker.client})
        granted = AclBinding(
            ResourceType.TOPIC,
            "*",
            ResourcePatternType.LITERAL,
            f"User:{USER}",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        for made in admin.create_acls([granted]).values():
            made.result(ANSWER_S)
        properties = tmp_path / "client.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in broker.client.items()))
        yield ["--bootstrap", broker.bootstrap, "--client-properties", str(properties)]
        broker.close()


@pytest.mark.parametrize("mode", ["at_least_once", "exactly_once"])
def test_a_design_that_may_not_write_is_denied(
    tmp_path: Path, guarded: list[str], mode: str
) -> None:
    """The broker says TOPIC_AUTHORIZATION_FAILED, and the design names the right."""
    design = designed(tmp_path / USER, USER, STRANGER.format(user=USER, password=PASSWORD))
    row, history = ran(tmp_path, {design: RELAY.format(mode=mode)}, *guarded)[USER]

    (said,) = failures(history)
    assert said.kind == "denied", row.anomalies
    assert said.right
    assert "WRITE of an output" in said.right
    assert (row.verdict, [anomaly.name for anomaly in row.anomalies]) == ("violated", ["stuck"])
    assert "denied" in row.anomalies[0].text
