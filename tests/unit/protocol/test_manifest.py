"""A design.toml that cannot be used is refused in one sentence.

The sentence names the file and the field.
"""

import sys
from pathlib import Path

import pytest

from upheld.errors import UsageProblem
from upheld.protocol.manifest import load

GOOD = """
name = "mine"
version = "0.1"
command = ["{python}", "mine.py", "--home", "{dir}", "--json", '{"a": {}}']
programs = ["relay"]
modes = ["at_least_once", "exactly_once"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a good manifest."""
    (tmp_path / "design.toml").write_text(GOOD)
    (tmp_path / "mine.py").touch()
    return tmp_path


def refusal(spec: Path | str) -> str:
    """Return the sentence by which a manifest is refused."""
    with pytest.raises(UsageProblem) as problem:
        load(str(spec))
    return str(problem.value)


def test_a_folder_and_its_file_are_the_same_design(folder: Path) -> None:
    """A design is named by its folder or by its manifest.

    Placeholders are filled in, and other braces stay.
    """
    manifest = load(str(folder))

    assert manifest == load(str(folder / "design.toml"))
    assert manifest.command == (
        sys.executable,
        "mine.py",
        "--home",
        str(folder),
        "--json",
        '{"a": {}}',
    )
    assert (manifest.atomic, manifest.local_state, manifest.sin) == ("batch", True, None)


def test_prepare(folder: Path) -> None:
    """The command that runs once before a run has the same placeholders.

    It is refused as early if it cannot be run.
    """
    (folder / "design.toml").write_text(GOOD + 'prepare = ["{python}", "-c", "{dir}"]\n')
    assert load(str(folder)).prepare == (sys.executable, "-c", str(folder))

    (folder / "design.toml").write_text(GOOD + 'prepare = ["./build"]\n')
    assert "`prepare` starts with ./build, which cannot be run here." in refusal(folder)


def test_extends(folder: Path) -> None:
    """A field that a design leaves out is that of the design which it extends.

    Name, version, command and sin are not taken from there.
    """
    (folder / "design.toml").write_text(
        'name = "mine"\nversion = "2"\ncommand = ["{python}"]\nextends = "plain"\n'
        'modes = ["exactly_once"]\n'
    )
    manifest = load(str(folder))
    plain = load("plain")

    assert (manifest.name, manifest.version, manifest.modes) == ("mine", "2", ("exactly_once",))
    assert (manifest.programs, manifest.capabilities) == (plain.programs, plain.capabilities)
    (folder / "design.toml").write_text('extends = "nobody"\n')
    assert "none shipped as 'nobody'" in refusal(folder)


def test_relative_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is read from where the user stands."""
    monkeypatch.chdir(folder.parent)

    assert load(folder.name).folder == folder


@pytest.mark.parametrize("key", ["sin", "mutant"])
def test_sin_and_known_failures(folder: Path, key: str) -> None:
    """A design's own mistake is read under both names of its table.

    A known failure is read with reason and link. A reason may hold commas.
    """
    (folder / "known").write_text("# known\n\nG22.crash, slow, and old, https://example.org/1\n")
    extra = f'\nknown_failures = "known"\n[{key}]\nscenarios = ["G22.crash"]\nanomaly = "lost"\n'
    (folder / "design.toml").write_text(GOOD + extra)

    manifest = load(str(folder))

    assert manifest.known_failures == {"G22.crash": ("slow, and old", "https://example.org/1")}
    assert manifest.sin
    assert (manifest.sin.scenarios, manifest.sin.anomaly, manifest.sin.control) == (
        ("G22.crash",),
        "lost",
        None,
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('version = "0.1"', "", "the field `version` is missing."),
        ("modes", "mdoes", "the field `modes` is missing."),
        (
            "\n",
            "\nlanguage = 'C'\n",
            "`language` is not a field of a design; known are name, version, command",
        ),
        (
            "\n",
            "\nmutant.scenarios = ['G22.crash']\nmutant.anomaly = 'lost'\nmutant.x = 1\n",
            "`mutant.x` is not a field of a design; known are scenarios, core, anomaly, control",
        ),
        (
            '"exactly_once"',
            '"once"',
            "`modes.1` is 'once': input should be 'at_least_once' or 'exactly_once'.",
        ),
        ('["relay"]', "[]", "`programs` is []: list should have at least 1 item"),
        ('["relay"]', '"relay"', "`programs` is 'relay': input should be a valid list."),
        (
            "{python}",
            "no-such-program",
            "`command` starts with no-such-program, which cannot be run here.",
        ),
        ("{python}", "./mine.py", "`command` starts with ./mine.py, which cannot be run here."),
        ("mine.py", "yours.py", "`command` runs yours.py, which does not exist in its folder."),
        ('name = "mine"', 'name = "mine', "is not TOML: "),
        (
            "\n",
            '\nknown_failures = "gone"\n',
            "`known_failures` names FOLDER/gone, which cannot be read: No such file or directory.",
        ),
        (
            "\n",
            "\nknown_failures = 3\n",
            "`known_failures` is the name of a file of lines “id, reason, link”.",
        ),
        ("\n", '\nfolder = "/"\n', "`folder` is not a field of a design; remove it."),
    ],
)
def test_refused(folder: Path, old: str, new: str, says: str) -> None:
    """Each mistake has its sentence."""
    (folder / "design.toml").write_text(GOOD.replace(old, new, 1))

    sentence = refusal(folder)

    assert sentence.startswith(str(folder / "design.toml"))
    assert says.replace("FOLDER", str(folder)) in sentence


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            "G22.crash, no link\n",
            "line 1: expected “id, reason, link”, this is 'G22.crash, no link'.",
        ),
        ("a, b, c\na, b, c\n", "line 2: a is listed twice."),
    ],
)
def test_known_failures_refused(folder: Path, lines: str, says: str) -> None:
    """A known failure without a reason and a link is no excuse."""
    (folder / "known").write_text(lines)
    (folder / "design.toml").write_text(GOOD + 'known_failures = "known"')

    assert refusal(folder) == f"{folder / 'known'}, {says}"


def test_nothing_there(tmp_path: Path) -> None:
    """A path that leads nowhere lists the shipped designs.

    A folder without a manifest says how to get one.
    """
    assert refusal("no-such-design").startswith(
        f"There is no design at {Path.cwd() / 'no-such-design'}, and none"
    )
    assert (
        refusal(tmp_path)
        == f"{tmp_path} holds no design.toml; `upheld new DIR` writes a complete design."
    )
