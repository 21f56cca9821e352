"""An application in containers is judged as one that runs on the machine."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import docker
import images
import pytest

from upheld.brokers import Broker
from upheld.report import RowResult, read
from upheld.supervisor.containers import INSTANCE_LABEL
from upheld.verdicts import Verdict

UPHELD: Final = str(Path(sys.executable).with_name("upheld"))
ORDERS: Final = Path(__file__).parents[2] / "examples" / "orders"
IMAGE: Final = "upheld/orders:test"
KILLED: Final = "G22.dies-with-a-transaction-open[relay-exactly_once]"
PAUSED: Final = "G24.zombie[ledger-exactly_once]"
NAIVE: Final = "G47.commits-what-came-out[relay-at_least_once]"
COMMAND: Final = 'command = ["{python}", "app.py"]'
JUDGED_S: Final = 300.0
SEEN_S: Final = 120.0
GONE_S: Final = 60.0


@pytest.fixture(scope="module")
def engine() -> docker.DockerClient:
    """Return the engine, which has an image with both order services."""
    client = images.engine()
    images.make(client, IMAGE, {"app.py": ORDERS / "app.py", "naive.py": ORDERS / "naive/app.py"})
    return client


def in_containers(folder: Path, service: Path, command: str) -> Path:
    """Copy a service as a container with that command, and return where it is."""
    shutil.copytree(service, folder)
    shutil.copy(ORDERS / "orders.jsonl", folder)
    (folder / "app.py").unlink()  # the one of the image is run
    file = folder / "design.toml"
    text = file.read_text().replace("../orders.jsonl", "orders.jsonl")
    assert COMMAND in text
    file.write_text(text.replace(COMMAND, f'image = "{IMAGE}"\ncommand = ["{command}"]'))
    return folder


def arguments(broker: Broker, out: Path, design: Path, rows: Sequence[str]) -> list[str]:
    """Return the command that judges rows of a design."""
    name = next(
        line.partition('"')[2].rstrip('"')
        for line in (design / "design.toml").read_text().splitlines()
        if line.startswith("name =")
    )
    file = out.with_suffix(".rows")
    file.write_text("".join(f"{name} {row}\n" for row in rows))
    own = ["run", "--design", str(design), "--rows", str(file), "--out", str(out)]
    return [UPHELD, *own, "--bootstrap", broker.bootstrap, "--quiet"]


def judged(broker: Broker, out: Path, design: Path, *rows: str) -> list[RowResult]:
    """Judge rows of a design, and return their results."""
    command = arguments(broker, out, design, rows)
    ended = subprocess.run(command, check=False, capture_output=True, timeout=JUDGED_S)
    assert (out / "report.jsonl").exists(), ended.stderr.decode()
    return list(read(out / "report.jsonl")[0])


def containers(engine: docker.DockerClient, **filters: str) -> list[Any]:
    """Return the containers of instances that the engine has."""
    return list(engine.api.containers(all=True, filters={"label": INSTANCE_LABEL, **filters}))


def test_a_safe_service_is_upheld(
    engine: docker.DockerClient, broker: Broker, tmp_path: Path
) -> None:
    """It is killed with a transaction open, and paused beside its successor."""
    design = in_containers(tmp_path / "design", ORDERS, "/app.py")
    found = judged(broker, tmp_path / "out", design, KILLED, PAUSED)

    assert {row.id: row.verdict for row in found} == {
        KILLED: Verdict.UPHELD,
        PAUSED: Verdict.UPHELD,
    }, [row.reason for row in found]
    assert [row.kills for row in found if row.id == KILLED] == [1]
    assert containers(engine) == []


@pytest.mark.usefixtures("engine")
def test_a_naive_service_loses_what_it_has_committed(broker: Broker, tmp_path: Path) -> None:
    """Its offsets are committed on a timer, ahead of its results."""
    design = in_containers(tmp_path / "design", ORDERS / "naive", "/naive.py")
    (found,) = judged(broker, tmp_path / "out", design, NAIVE)

    assert found.verdict is Verdict.VIOLATED, found.reason
    assert set(found.totals) == {"behind-commit"}


def test_no_container_outlives_a_harness_that_is_killed(
    engine: docker.DockerClient, broker: Broker, tmp_path: Path
) -> None:
    """The reaper asks the engine for those of its run."""
    design = in_containers(tmp_path / "design", ORDERS, "/app.py")
    with subprocess.Popen(
        arguments(broker, tmp_path / "out", design, [KILLED]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as harness:
        assert _becomes(lambda: bool(containers(engine, status="running")), SEEN_S)
        harness.send_signal(signal.SIGKILL)

    assert _becomes(lambda: containers(engine) == [], GONE_S)


def _becomes(true: Callable[[], bool], within_s: float) -> bool:
    """Wait for something, and return whether it came to be in time."""
    until = time.monotonic() + within_s
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True
