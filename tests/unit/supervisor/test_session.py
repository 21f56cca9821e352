"""The processes of an instance are followed to their ends."""

import signal

import pytest
from children import child, scope
from miniatures import until

from upheld.supervisor import session
from upheld.supervisor.session import INSTANCE_TAG, Session
from upheld.verdicts import HarnessError


def test_a_process_that_ends_without_an_environment_stays_a_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kill waits for a worker whose tag cannot be read any more, since it is ending."""
    tag = "of-this-test"
    odd = child(["sleep", "5"])
    odd.environment[INSTANCE_TAG] = tag
    worker = scope().spawn(odd)
    environments = iter([True])
    read = session._environment
    until(lambda: f"{INSTANCE_TAG}={tag}".encode() in read(worker.pid))  # its program has begun
    monkeypatch.setattr(
        session,
        "_environment",
        lambda pid: read(pid) if pid != worker.pid or next(environments, False) else [],
    )
    sent: list[int] = []
    monkeypatch.setattr(session, "_send", lambda pid, _: sent.append(pid))
    monkeypatch.setattr(session, "_DEADLINE_S", 0.05)
    monkeypatch.setattr(worker.family, "members", lambda *_: None)  # it has lost its guard
    monkeypatch.setattr(Session, "leader", 1 << 22)

    with pytest.raises(HarnessError, match=f"{worker.pid}.* did not obey SIGKILL"):
        Session(worker, tag)._signal(signal.SIGKILL, settled="ZX")

    assert worker.pid in sent
    worker.kill()
    worker.wait()
    worker.close()
