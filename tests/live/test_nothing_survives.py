import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from streamgate.designs.reaper import members

DEADLINE_S = 120.0
HARNESS = """
import signal, sys
from pathlib import Path
from streamgate.brokers import open_broker
from streamgate.designs.reaper import RunScope

run = RunScope()
broker = open_broker("embedded", run=run, log_dir=Path(sys.argv[1]))
print(run.run_id, run._reaper.pid, broker.process.pid, flush=True)
signal.pause()
"""


def test_a_killed_harness_leaves_no_broker_and_no_folder(tmp_path: Path) -> None:
    """SIGKILL takes the harness with no chance to clean: what it started ends all the same, its logs stay."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(tmp_path / "logs")],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    ) as harness:
        assert harness.stdout is not None
        run_id, reaper, broker = harness.stdout.readline().split()
        reaper_end, broker_end = os.pidfd_open(int(reaper)), os.pidfd_open(int(broker))
        assert int(broker) in members(run_id, [])

        os.killpg(harness.pid, signal.SIGKILL)

    for end in (broker_end, reaper_end):
        assert select.select([end], [], [], DEADLINE_S)[0]
        os.close(end)
    assert members(run_id, []) == []
    assert list(temporary.iterdir()) == []
    assert "Kafka Server started" in (tmp_path / "logs" / "broker.log").read_text()
