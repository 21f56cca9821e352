"""An application whose addresses stand in its code is judged inside of a fence."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from namespaces import namespaces

from upheld.errors import UsageProblem
from upheld.protocol.manifest import load
from upheld.report import read
from upheld.supervisor.namespace import demand_possible
from upheld.verdicts import Verdict

UPHELD = str(Path(sys.executable).with_name("upheld"))
UNTOUCHED = Path(__file__).parents[2] / "examples" / "untouched"
ROW = "G22.dies-with-a-transaction-open[relay-exactly_once]"
BURNT = '"kafka.shop.example:9092"'
# It asks for a service that nobody has declared, and goes on without it.
CACHED = """\
    import socket
    for address in (("redis.shop.example", 6379), ("10.1.2.3", 6379)):
        try:
            socket.create_connection(address, 1)
        except OSError as error:
            print(error, flush=True)
"""


@pytest.fixture
def design(tmp_path: Path) -> Path:
    """Return a fee service that is told neither its broker nor its names."""
    folder = tmp_path / "design"
    shutil.copytree(UNTOUCHED, folder)
    for name, old, new in (
        ("app.py", 'kafka["brokers"]', BURNT),
        ("app.py", "    kafka = settings", f"{CACHED}    kafka = settings"),
        ("fees.ini.tmpl", "brokers = {bootstrap}\n", ""),
        (
            "design.toml",
            'group = "fees"',
            f'group = "fees"\nfence = "namespace"\nhosts = [{BURNT}]',
        ),
    ):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))
    try:
        demand_possible([load(str(folder))])
    except UsageProblem as problem:
        pytest.skip(str(problem))
    return folder


def test_an_address_in_its_code_leads_to_the_broker_of_the_row(
    design: Path, tmp_path: Path
) -> None:
    """Its log says what it asked for beside, and no namespace is left."""
    out = tmp_path / "out"
    rows = tmp_path / "rows"
    rows.write_text(f"fees {ROW}\n")
    before = namespaces()

    arguments = ["run", "--design", str(design), "--rows", str(rows), "--out", str(out)]
    arguments += ["--keep", "all", "--quiet"]
    subprocess.run([UPHELD, *arguments], check=False, capture_output=True, timeout=400)
    (found,) = read(out / "report.jsonl")[0]
    logs = "".join(each.read_text() for each in (out / "logs").glob("fees-*.stderr"))

    assert found.verdict is Verdict.UPHELD, found.reason
    assert found.kills == 1
    assert "the fence keeps it from redis.shop.example" in logs
    assert "the fence keeps it from 10.1.2.3:6379" in logs
    assert namespaces() <= before


def test_the_doctor_names_what_the_fence_keeps_it_from(design: Path, tmp_path: Path) -> None:
    """Nothing else is wrong with it."""
    command = [UPHELD, "doctor", str(design), "--out", str(tmp_path / "out")]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    wrong = [line for line in ended.stdout.splitlines() if line.startswith("✗")]

    assert ended.returncode == 1
    assert [line.split()[1] for line in wrong] == ["refused"]
    assert "it asks for redis.shop.example, 10.1.2.3:6379, which" in wrong[0]
