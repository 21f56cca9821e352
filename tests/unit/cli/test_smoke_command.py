"""The exit codes of `upheld smoke` are those of the table. No Kafka is started."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from upheld import cli
from upheld.cli import designs
from upheld.runner.smoke import Check, Conversation

MANIFEST = """
name = "mine"
version = "1"
command = ["true"]
programs = ["relay", "ledger"]
modes = ["exactly_once"]
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the conversations that are held; the one on the ledger fails."""
    held: list[str] = []

    def smoke(_: object, __: object, ___: object, found: Sequence[Conversation]) -> list[Check]:
        held.extend(map(str, found))
        return [Check(str(each), each.program != "ledger", "seen", ("\x1b[2J",)) for each in found]

    class Broker:
        @staticmethod
        def close() -> None:
            """Have nothing to close."""

    (tmp_path / "design.toml").write_text(MANIFEST)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(designs, "opened_broker", lambda *_: Broker)
    monkeypatch.setattr(designs, "smoke", smoke)
    return held


@pytest.mark.parametrize(
    ("options", "code", "conversations"),
    [
        ([], 3, ["relay-exactly_once", "ledger-exactly_once"]),
        (["--program", "relay"], 0, ["relay-exactly_once"]),
        (["--program", "ledger", "--mode", "exactly_once"], 3, ["ledger-exactly_once"]),
        (["--mode", "at_least_once"], 5, []),
        (["--program", "relax"], 4, []),
        (["--mode", "twice"], 4, []),
    ],
)
def test_the_exit_code(
    asked: list[str], options: list[str], code: int, conversations: list[str]
) -> None:
    """A check that fails is a failure of the adapter, and no violation."""
    assert cli.main(["smoke", "--design", ".", *options]) == code
    assert asked == conversations


def test_the_logs_go_where_they_are_asked_for(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder is the one of --out, and JSON has the log's last lines as plain text."""
    assert cli.main(["smoke", "--design", ".", "--out", "mine", "--json"]) == 3

    assert asked
    assert Path("mine").is_dir()
    assert not Path("upheld-out").exists()
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert [each["log"] for each in found] == [["\\x1b[2J"]] * 2
