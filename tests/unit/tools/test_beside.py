import subprocess
import sys
from pathlib import Path

WAITS = """
import sys
import time
from pathlib import Path

while not Path(sys.argv[1]).exists():
    time.sleep(0.01)
print("the first")
"""
MAKES = """
import sys
from pathlib import Path

Path(sys.argv[1]).touch()
print("the second")
sys.exit(3)
"""


def test_commands_beside_each_other(tmp_path: Path) -> None:
    """The first command ends only if the second runs meanwhile.

    Their outputs stay apart, and one failure makes all fail.
    """
    for name, script in (("waits", WAITS), ("makes", MAKES)):
        (tmp_path / name).write_text(script)
    commands = [
        f"{sys.executable} {tmp_path / name} {tmp_path / 'made'}" for name in ("waits", "makes")
    ]

    done = subprocess.run(
        [sys.executable, Path(__file__).parents[3] / "tools" / "beside.py", *commands],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 3
    assert done.stdout.split("== ")[0].strip() == "the first"
    assert done.stdout.strip().endswith("the second")
