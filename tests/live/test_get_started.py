"""The commands of "Get started" run in their order, and print what it shows."""

import os
import subprocess
import sys
from pathlib import Path

from documents import ROOT, fences, is_shown, lines_of

PAGE = ROOT / "docs" / "get-started.md"
DEADLINE_S = 240.0
LEFT_OUT = "not run: "


def test_a_reader_gets_from_nothing_to_a_red_card(tmp_path: Path) -> None:
    """Each command ends with the written exit code, and prints the block below it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "80"}
    printed = ""
    shown = 0
    for fence in fences(PAGE.read_text(encoding="utf-8")):
        if fence.note == "shows":
            assert is_shown(fence.text, printed), printed
            shown += 1
        if fence.language != "sh" or fence.note.startswith(LEFT_OUT):
            continue
        for line in lines_of(fence):
            ended = subprocess.run(
                ["bash", "-c", line.text],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
            printed = ended.stdout
            assert ended.returncode == line.exit_code, f"{line.text}\n{printed}"

    assert shown == 3
    assert (tmp_path / "red" / "index.html").is_file()
