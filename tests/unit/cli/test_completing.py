"""The script of `upheld completion` completes what a user begins to type."""

import subprocess
from pathlib import Path

import pytest

from upheld.cli import COMMANDS, main

TRY = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(( $# - 1 ))
_shtab_upheld
printf '%s\\n' "${COMPREPLY[@]}"
"""


def script(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    """Return the script of a shell."""
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        (["upheld", "expl"], "explain"),
        (["upheld", "run", "--dept"], "--depth"),
        (["upheld", "run", "--depth", "c"], "core"),
        (["upheld", "run", "--design", "pla"], "plain"),
        (["upheld", "run", "--design", "mine.t"], "mine.toml"),
        (["upheld", "smoke", "--program", "le"], "ledger"),
        (["upheld", "list", "--guarantee", "G22"], "G22"),
        (["upheld", "explain", "duplic"], "duplicated"),
        (["upheld", "report", "mine"], "mine.toml"),
        (["upheld", "completion", "z"], "zsh"),
    ],
)
def test_bash_completes(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: list[str],
    completed: str,
) -> None:
    """Commands, options, words, names and files are completed in a real bash."""
    (tmp_path / "script").write_text(script(capsys, "bash"))
    (tmp_path / "mine.toml").touch()

    end = subprocess.run(
        ["bash", "-c", TRY, "bash", str(tmp_path / "script"), *line],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert end.stdout.split() == [completed], end.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh", "fish"])
def test_every_shell_gets_every_command(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    """No command and no design is left out; the wrong designs are nobody's to type."""
    text = script(capsys, shell)

    assert {name for name in COMMANDS if name not in text} == set()
    assert "stale-overwrite" in text
    assert "broken/" not in text


def test_another_shell_is_refused_with_a_guess(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 4."""
    assert main(["completion", "bahs"]) == 4
    assert "Did you mean bash?" in capsys.readouterr().err
