"""`upheld doctor` refuses what it cannot visit before it starts a broker."""

from pathlib import Path

import pytest

from upheld.cli import main
from upheld.cli.doctor import _print, _print_missing, _write
from upheld.doctor.completed import Addition
from upheld.doctor.findings import Finding
from upheld.protocol.manifest import SHIPPED

FOUND = [
    Finding("ready", "fine", "it was ready by group in 1.0 s"),
    Finding("topic", "wrong", "it asks for orders", "name its input"),
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "does not exist"),
        ("name = [", "is not TOML"),
        ('name = "a"\ncommand = ["true"]\n', "has no [process]"),
        ('name = "a"\n[process.app]\ncommand = ["true"]\n', "`input` is missing"),
    ],
)
def test_bad_input_is_one_sentence(
    text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It exits with 4, and writes no folder."""
    file = tmp_path / "design.toml"
    if text is not None:
        file.write_text(text)

    assert main(["doctor", str(tmp_path), "--out", str(tmp_path / "out")]) == 4
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_design_with_an_adapter_is_sent_to_smoke(capsys: pytest.CaptureFixture[str]) -> None:
    """That command asks the adapter, and needs no doctor."""
    assert main(["doctor", str(SHIPPED / "plain")]) == 4
    assert "upheld smoke" in capsys.readouterr().err


def test_each_finding_is_a_line_with_its_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    """The last line says whether the application can be judged."""
    _print(FOUND, quiet=False)

    assert capsys.readouterr().out.splitlines() == [
        "✓ ready  it was ready by group in 1.0 s.",
        "✗ topic  it asks for orders.",
        "       → name its input.",
        "1 of these would make verdicts wrong: mend them first.",
    ]


def test_quiet_leaves_out_what_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    """If all is fine, it prints nothing."""
    _print(FOUND[:1], quiet=True)

    assert capsys.readouterr().out == ""


def test_lines_are_written_into_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are shown as well, with their tables."""
    file = tmp_path / "design.toml"
    file.write_bytes(b'\xef\xbb\xbfname = "a"  # mine\r\n')
    added = [Addition((), "version", "1")]
    _write(file, added)
    _print_missing(file, [Addition(("output", "o"), "format", "bytes")], written=True)

    assert file.read_bytes() == b'\xef\xbb\xbfname = "a"  # mine\r\nversion = "1"\r\n'
    assert '  [output.o] format = "bytes"' in capsys.readouterr().out
