"""A mistake of a user is refused in one sentence, which names the option.

The exit code is 4.
"""

import os
import re
import socket
from pathlib import Path

import pytest

import upheld
from upheld.cli import main
from upheld.cli.options import LARGEST_SEED
from upheld.errors import NO_PAGE, harness_failed, kept, problem_of, to_report
from upheld.spec import catalogue

NAMES_OF_PATHS = [
    ("x" * 300, "is no name of a file: File name too long"),
    ("a/" * 3000, "is no name of a file: File name too long"),
    ("~nobody_here/x", "there is no such user on this machine"),
    ("", "the name of a file or a folder is not empty"),
    ("a\0b", "holds a character that no name has"),
    ("loop", "is no name of a file: Too many levels of symbolic links"),
]
OPTIONS_OF_PATHS = [
    ["run", "--out"],
    ["run", "--rows"],
    ["run", "--bootstrap", "b:1", "--client-properties"],
    ["sweep", "--out"],
    ["merge", "--out"],
    ["judge", "h.jsonl", "--picture"],
    ["judge"],
    ["merge"],
    ["report"],
    ["new"],
    ["sample"],
]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where two links lead to each other."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("pool")
    (tmp_path / "pool").symlink_to("loop")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Return the exit code and the one sentence of a command that is refused."""
    code = main([*arguments])
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if not line.endswith(" …")]
    assert len(lines) == 1, said.err
    assert said.out == ""
    assert not re.search(r"Traceback|harness failed|\[Errno", lines[0])
    assert len(lines[0]) < 2100
    return code, lines[0]


@pytest.mark.parametrize("command", OPTIONS_OF_PATHS, ids=" ".join)
def test_a_name_that_is_no_file_s(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: list[str]
) -> None:
    """Too long, of no user, empty, with a NUL or a loop of links: the option is named."""
    before = sorted(tmp_path.iterdir())
    for name, says in NAMES_OF_PATHS:
        code, sentence = refused(capsys, *command, name)

        assert (code, says in sentence) == (4, True), sentence
        assert f"argument {command[-1] if len(command) > 1 else ''}" in sentence
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "line",
    [
        *(
            f"run --{option} {value}"
            for option in ("time-scale", "max-seconds", "max-memory-mb", "repeat", "lanes")
            for value in ("nan", "inf", "-inf", "-1", "0", "1e400", "9" * 5000, "٣x", "0x10", "1e9")
        ),
        *(f"run --seed {value}" for value in ("nan", "1.5", "9" * 5000, str(LARGEST_SEED + 1))),
        *(f"run --shard {value} --seed 1" for value in ("0/0", "1/0", "2/1", "-1/2", "1/2/3", "/")),
        *(f"run --slice {value}" for value in ("0/0", "9/8", "1", "a/b", "1/" + "9" * 5000)),
        "run --only (",
        "run --only @",
        "run --only and",
        "run --broker embedded --bootstrap b:1",
        "run --bootstrap b:1 --client-properties /",
        "run --bootstrap b:1 --client-properties /dev/zero/x",
        "run --bootstrap ,,,",
        "run --bootstrap b:99999999999",
        "run --bootstrap [::1",
        "run --design loop",
        "run --design /",
        "sweep --design loop",
        "smoke --design pool",
    ],
)
def test_a_value_that_is_none(capsys: pytest.CaptureFixture[str], line: str) -> None:
    """Infinities, odd numbers, broken expressions and odd files are refused."""
    assert refused(capsys, *(word.strip("'") for word in line.split(" ")))[0] == 4


def test_an_expression_that_is_nested_deep(capsys: pytest.CaptureFixture[str]) -> None:
    """Ten thousand open brackets are no tag expression.

    A right expression of that depth may be refused, and is no fault of ours.
    """
    assert refused(capsys, "list", "--only", "(" * 10_000)[0] == 4
    assert main(["list", "--only", "(" * 10_000 + "@G1" + ")" * 10_000]) in {0, 4}


def test_a_design_that_is_a_socket_or_binary(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A socket, bytes and a folder in the place of a manifest are said as such."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert refused(capsys, "run", "--design", "socket")[0] == 4
    (tmp_path / "binary").write_bytes(os.urandom(1000) + b"\xff")
    assert refused(capsys, "run", "--design", "binary")[0] == 4
    (tmp_path / "folder" / "design.toml").mkdir(parents=True)
    assert refused(capsys, "run", "--design", "folder")[0] == 4


def test_the_variable_of_lanes_makes_no_lane(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who sets it would get exit 0, and nothing judged."""
    for value in ("", "1", "0123456789ab"):
        monkeypatch.setenv("UPHELD_LANE", value)

        code, sentence = refused(capsys, "run", "--design", "plain")

        assert (code, "UPHELD_LANE is set" in sentence) == (4, True)


def test_a_fault_of_ours_says_where_to_report_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence has the version, the place and the file of the traceback."""
    monkeypatch.setattr(catalogue, "load", lambda: {}["no such key"])

    assert main(["list"]) == 3

    sentence = capsys.readouterr().err
    found = re.search(r"with its traceback in (\S+)\.$", sentence.strip())
    assert found
    assert "no such key" in Path(found[1]).read_text()
    assert Path(found[1]).stat().st_mode & 0o077 == 0
    assert f"the harness failed (KeyError: 'no such key'); {to_report(Path(found[1]))}" in sentence
    assert f"upheld {upheld.__version__} at " in sentence
    Path(found[1]).unlink()


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), MemoryError(), PermissionError(13, "denied")]
)
def test_a_lack_of_the_machine_is_not_to_be_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A full disk, too little memory and a refused file keep their sentence."""

    def load() -> None:
        raise error

    monkeypatch.setattr(catalogue, "load", load)

    code, sentence = refused(capsys, "list")

    assert (code, "report" in sentence) == (3, False)


def test_the_page_is_the_one_that_the_package_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the package names none, the sentence says so in words."""
    named = [["Homepage, https://a.example", "Issues, https://b.example/issues"], None]

    class Metadata:
        def get_all(self, _: str) -> list[str] | None:
            return named.pop(0)

    monkeypatch.setattr("importlib.metadata.metadata", lambda _: Metadata())

    assert "at https://b.example/issues." in to_report(None)
    assert f"at {NO_PAGE}." in to_report(None)


def test_a_traceback_without_room_is_left_out(tmp_path: Path) -> None:
    """The sentence comes all the same."""
    (tmp_path / "file").touch()

    trace = kept(ValueError("x"), tmp_path / "file" / "logs")

    assert trace is None
    assert harness_failed(ValueError("x"), trace).endswith(f"{NO_PAGE}.")
    assert problem_of(ValueError("x")) is None
