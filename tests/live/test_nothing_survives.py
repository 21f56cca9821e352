import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import docker
import pytest

from upheld.brokers.container import kafka_image
from upheld.brokers.engine import NoContainerError
from upheld.supervisor.reaper import RUN_LABEL, members

DEADLINE_S = 120.0
HARNESS = """
import signal, sys
from pathlib import Path
from upheld.brokers import Asked, open_broker
from upheld.supervisor.reaper import RunScope

run = RunScope()
broker = open_broker(Asked(sys.argv[1]), run=run, log_dir=Path(sys.argv[2]))
print(run.run_id, run._reaper.pid, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("kind", ["embedded", "container"])
def test_a_killed_harness_leaves_no_broker_and_no_folder(kind: str, tmp_path: Path) -> None:
    """SIGKILL takes the harness with no chance to clean up.

    Its processes end all the same, and its logs stay.
    """
    if kind == "container":
        skip_without_an_image()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS, kind, str(tmp_path / "logs")],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    ) as harness:
        assert harness.stdout is not None
        run_id, reaper = harness.stdout.readline().split()
        reaper_end = os.pidfd_open(int(reaper))
        assert (members(run_id, []) if kind == "embedded" else containers_of(run_id)) != []

        os.killpg(harness.pid, signal.SIGKILL)

    assert select.select([reaper_end], [], [], DEADLINE_S)[0]
    os.close(reaper_end)
    assert members(run_id, []) == []
    assert kind == "embedded" or containers_of(run_id) == []
    assert list(temporary.iterdir()) == []
    assert "Kafka Server started" in (tmp_path / "logs" / "broker.log").read_text()


def skip_without_an_image() -> None:
    """Skip the test where no engine answers: there is no container to leave behind."""
    try:
        kafka_image(None)
    except NoContainerError as reason:
        pytest.skip(str(reason))


def containers_of(run_id: str) -> list[Any]:
    """Return the containers of a run that the engine still has, running or not."""
    return list(
        docker.from_env().containers.list(all=True, filters={"label": f"{RUN_LABEL}={run_id}"})
    )
