"""A message that says too little is refused."""

import pytest
from pydantic import ValidationError

from upheld.protocol.messages import REPLY, Notice


@pytest.mark.parametrize(
    "said",
    [
        {"type": "failed", "kind": "denied", "message": "no"},
        {"type": "failed", "kind": "refused", "message": "no"},
        {"type": "notice", "kind": "offset-reset", "topic": "t", "partition": 0, "to": 1},
        {"type": "notice", "kind": "recovered", "begin": 1},
    ],
)
def test_what_says_too_little(said: dict[str, object]) -> None:
    """`denied` names the right, `refused` the output, and a reset both its positions."""
    with pytest.raises(ValidationError):
        REPLY.validate_python(said)


def test_a_notice_of_recovery_needs_no_place() -> None:
    """An engine that began again inside its process may not know its positions."""
    said = REPLY.validate_python({"type": "notice", "kind": "recovered"})

    assert isinstance(said, Notice)
    assert (said.kind, said.topic, said.begin) == ("recovered", None, None)
