"""The page on the protocol has each message, and a recorded conversation."""

import shutil
from pathlib import Path

import conversation
import messages

from upheld.protocol.messages import REPLIES_TO, REPLY, REQUEST, Failed, Message, Notice


def test_the_page_is_up_to_date() -> None:
    """`python tools/messages.py` writes both parts anew."""
    assert list(messages.out_of_date()) == []


def test_a_part_that_is_not_up_to_date_is_named(tmp_path: Path) -> None:
    """A page on which somebody changed an example is mended."""
    page = tmp_path / "protocol.md"
    shutil.copy(messages.PAGE, page)
    page.write_text(page.read_text().replace('"type": "measured"', '"type": "measure"'))

    assert len(list(messages.out_of_date(page))) == 2
    assert messages.main(["--check"], page) == 1
    assert messages.main([], page) == 0
    assert page.read_text() == messages.PAGE.read_text()


def test_every_message_has_an_example() -> None:
    """Requests, replies and what comes unasked are complete."""
    replies = {reply for replies in REPLIES_TO.values() for reply in replies}

    assert set(messages.examples()) == {*REPLIES_TO, *replies, Failed, Notice}


def test_the_recorded_conversation_obeys_the_protocol() -> None:
    """Each request is answered as it may be, and the last word is a loud stop."""
    asked: type[Message] | None = None
    for said in messages.spoken():
        if said.by == conversation.HARNESS:
            assert asked is None
            asked = type(REQUEST.validate_python(said.says))
            continue
        reply = REPLY.validate_python(said.says)
        assert isinstance(reply, Failed) or (asked and type(reply) in REPLIES_TO[asked])
        asked = None
    assert isinstance(reply, Failed)


def test_the_recorded_conversation_names_no_machine() -> None:
    """Ports and folders are those of no machine."""
    starts = [said.says for said in messages.spoken() if said.says["type"] == "start"]

    assert {start["bootstrap"] for start in starts} == {conversation.SHOWN_BROKER}
    assert {start["state_dir"] for start in starts} == {f"{conversation.SHOWN_FOLDER}/state"}
