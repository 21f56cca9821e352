"""The processes of an instance are followed to their ends."""

import signal
import subprocess

import pytest

from upheld.supervisor import session
from upheld.supervisor.session import INSTANCE_TAG, Session
from upheld.verdicts import HarnessError

SLEEP = ["sleep", "5"]


def test_a_process_that_ends_without_an_environment_stays_a_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kill waits for a worker whose tag cannot be read any more, since it is ending."""
    tag = "of-this-test"
    with subprocess.Popen(
        SLEEP, start_new_session=True, env={INSTANCE_TAG: tag, "PATH": "/bin:/usr/bin"}
    ) as worker:
        environments = iter([True])
        read = session._environment
        monkeypatch.setattr(
            session,
            "_environment",
            lambda pid: read(pid) if pid != worker.pid or next(environments, False) else [],
        )
        sent: list[int] = []
        monkeypatch.setattr(session, "_send", lambda pid, _: sent.append(pid))
        monkeypatch.setattr(session, "_DEADLINE_S", 0.05)

        with pytest.raises(HarnessError, match=f"{worker.pid}.* did not obey SIGKILL"):
            Session(leader=1 << 22, tag=tag)._signal(signal.SIGKILL, settled="ZX")
        worker.kill()

    assert worker.pid in sent
