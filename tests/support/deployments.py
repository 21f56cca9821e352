"""Applications without an adapter, varied in their text and judged on one row."""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from upheld.brokers import Broker
from upheld.report import RowResult, read

APPLICATIONS = Path(__file__).with_name("applications")
ORDERS = Path(__file__).parents[2] / "examples" / "orders"
_UPHELD = str(Path(sys.executable).with_name("upheld"))
_ROW_S = 240


def varied(folder: Path, design: Path, changes: Mapping[str, str]) -> Path:
    """Copy an application with other texts in its program, and return where it is."""
    shutil.copytree(folder, design)
    shutil.copy(ORDERS / "orders.jsonl", design)
    moved = {"../../../../examples/orders/": ""}
    for file, texts in (("app.py", changes), ("design.toml", moved)):
        text = (design / file).read_text()
        for before, after in texts.items():
            assert before in text
            text = text.replace(before, after)
        (design / file).write_text(text)
    return design


def judged(broker: Broker, out: Path, design: Path, row: str, *, name: str = "orders") -> RowResult:
    """Judge a row of a design of that name, and return its result."""
    return judged_by(broker, out, ["--design", str(design)], f"{name} {row}")


def judged_by(broker: Broker, out: Path, options: Sequence[str], row: str) -> RowResult:
    """Judge a row, named with its design, by options that say what is judged."""
    file = out.with_suffix(".rows")
    file.write_text(f"{row}\n")
    command = [_UPHELD, "run", *options, "--rows", str(file), "--out", str(out)]
    command += ["--bootstrap", broker.bootstrap, "--quiet"]
    subprocess.run(command, check=False, capture_output=True, timeout=_ROW_S)
    (found,) = read(out / "report.jsonl")[0]
    return found
