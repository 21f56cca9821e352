"""The conversation on the page of the protocol is held as it was recorded."""

from collections.abc import Iterable
from pathlib import Path

import conversation
from conversation import Said, Talk

from upheld.brokers import Broker
from upheld.supervisor.reaper import RunScope


def shapes(lines: Iterable[Said]) -> list[tuple[object, ...]]:
    """Return who says which type of message with which fields; a note as it is."""
    return [(said.by, said.says["type"], *said.says) if said.by else (said.says,) for said in lines]


def test_the_recorded_conversation_is_held_again(
    tmp_path: Path, run_scope: RunScope, broker: Broker
) -> None:
    """Harness and design say the same messages, with the same fields, in order."""
    held = Talk(broker, run_scope, tmp_path).hold()

    assert shapes(held) == shapes(conversation.read())
