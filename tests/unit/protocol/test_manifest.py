"""A design.toml that cannot be used is refused in one sentence.

The sentence names the file and the field.
"""

import sys
from pathlib import Path

import pytest

from upheld.errors import UsageProblem
from upheld.protocol.manifest import load
from upheld.protocol.waivers import Waiver

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
    assert manifest.progress == "group"


def test_prepare(folder: Path) -> None:
    """The command that runs once before a run has the same placeholders.

    It is refused as early if it cannot be run.
    """
    (folder / "design.toml").write_text(GOOD + 'prepare = ["{python}", "-c", "{dir}"]\n')
    assert load(str(folder)).prepare == (sys.executable, "-c", str(folder))

    (folder / "design.toml").write_text(GOOD + 'prepare = ["./build"]\n')
    assert "`prepare` starts with ./build, which cannot be run here." in refusal(folder)


def test_prepare_may_build_the_program(folder: Path) -> None:
    """The program is asked for when `prepare` has ended."""
    built = GOOD.replace(command_of(GOOD), 'command = ["{dir}/relay"]')
    (folder / "design.toml").write_text(built + 'prepare = ["{python}", "-c", ""]\n')
    assert load(str(folder)).command == (f"{folder}/relay",)

    (folder / "design.toml").write_text(built)
    assert "which cannot be run here." in refusal(folder)


def command_of(manifest: str) -> str:
    """Return the line of a manifest's command."""
    return next(line for line in manifest.splitlines() if line.startswith("command"))


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

    assert manifest.known_failures == {
        "G22.crash": Waiver("slow, and old", "https://example.org/1")
    }
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
        ("modes", "mdoes", "`mdoes` is not a field of a design; known are name, version,"),
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
    ("extra", "says"),
    [
        ("environment = { 'A=B' = 'c' }", "`environment.A=B` is 'A=B': the name of a variable is"),
        ("environment = { '' = 'c' }", "`environment.` is '': the name of a variable is not empty"),
        ('environment = { "A\\u0000" = "c" }', "it holds a NUL"),
        ('environment = { A = "c\\u0000" }', "`environment.A` is 'c\\x00': it holds a NUL"),
        ("environment = { A = 1 }", "`environment.A` is 1: input should be a valid string."),
        (f"environment = {{ A = '{'x' * 200_000}' }}", "it has more than 100000 bytes."),
        ('prepare = ["true", "\\u0000"]', "`prepare.1` is '\\x00': it holds a NUL"),
        ("prepare = ['']", "`prepare` starts with no name, which cannot be run here."),
        ("prepare = ['~nobody/x']", "`prepare` starts with ~nobody/x, which cannot be run here."),
        (f"prepare = ['./{'x' * 5_000}']", "which cannot be run here."),
        (f"prepare = ['{{python}}', '{'x' * 5_000}']", "which does not exist in its folder."),
        (
            "prepare = [" + "'true', '" + "x" * 95_000 + "'," + f"'{'x' * 95_000}'," * 10 + "]",
            "more than 1000000 bytes together",
        ),
        (
            "capabilities = ['qeury']",
            "`capabilities.0` is 'qeury': there is no capability qeury; there are reusable,",
        ),
        (
            "cannot = ['swim']",
            "`cannot.0` is 'swim': there is no limit swim; there are set-transaction-timeout, ",
        ),
        ("cannot = ['name-topics', 'name-topics']", "name-topics is listed twice."),
        ("capabilities = ['query', 'query']", "query is listed twice."),
        ("capabilities = [" + "'query'," * 50_000 + "]", "query is listed twice."),
        (
            "bytes_beside_table = inf",
            "`bytes_beside_table` is inf: input should be a finite number.",
        ),
        ("bytes_beside_table = nan", "`bytes_beside_table` is nan: input should be "),
        ("bytes_beside_table = -1", "`bytes_beside_table` is -1: input should be greater than or"),
        (f"bytes_beside_table = {'9' * 5_000}", "is not TOML: "),
        ("extends = ['plain']", "`extends` is ['plain']: it names one design."),
        (
            "extends = '~no-such-user/x'",
            "There is no design at '~no-such-user/x': nobody has that home.",
        ),
        ('extends = "a\\u0000"', "There is no design at "),
        (f"extends = '{'x' * 5_000}'", "There is no design at "),
        ('known_failures = "a\\u0000"', "which cannot be read: embedded null byte."),
        ("known_failures = '.'", "which cannot be read: Is a directory."),
        ("known_failures = '/dev/zero'", "which cannot be read: it has more than 1048576 bytes."),
        ("local_state = 1979-05-27", "`local_state` is datetime.date(1979, 5, 27): "),
        ("progress = 'offsets'", "`progress` is 'offsets': input should be 'group', 'group-leads'"),
        ("atomic = {}", "`atomic` is {}: input should be 'batch' or 'shard'."),
        ("sin = [1]", "`sin` is [1]: "),
        (
            "twin = {rows = ['G1'], was = 's', a = 1}",
            "`twin.a` is not a field of a design; known are rows, verdict, was, line, follows, "
            "extends.",
        ),
        ("a" + ".a" * 100_000 + " = 1", "is not TOML: a key has more than 100 parts (at line 7)."),
        ("a = " + "[" * 300 + "]" * 300, "is not TOML: it is nested more than 200 levels deep."),
    ],
)
def test_what_no_design_can_run_with(folder: Path, extra: str, says: str) -> None:
    """A field that no program can be started with is refused, briefly."""
    (folder / "design.toml").write_text(f"{GOOD}{extra}\n")

    sentence = refusal(folder)

    assert says in sentence
    assert sentence.isprintable()
    assert len(sentence) <= 2_000


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"mine"', '"../mine"', "`name` is '../mine': each part of it between slashes is a name."),
        ('"mine"', '"/"', "`name` is '/': each part of it between slashes is a name."),
        ('"mine"', f'"{"x" * 300}"', "string should have at most 100 characters."),
        ('"0.1"', '"1\\n2"', "`version` is '1\\n2': string should match pattern"),
        (
            '["relay"]',
            '["relay", "relay"]',
            "`programs` is ['relay', 'relay']: relay is listed twice.",
        ),
        ('"at_least_once", ', '"exactly_once", ', "exactly_once is listed twice."),
        ('"mine.py"', '"mine\\u0000.py"', "`command.1` is 'mine\\x00.py': it holds a NUL"),
        ('"{python}", "mine.py", ', '"", ', "`command` starts with no name"),
    ],
)
def test_names_that_no_design_can_have(folder: Path, old: str, new: str, says: str) -> None:
    """A name, a version or a program that would mislead is refused."""
    (folder / "design.toml").write_text(GOOD.replace(old, new, 1))

    assert says in refusal(folder)


@pytest.mark.parametrize(
    "spec", ["~nobody/x", "a\0b", "x" * 5_000, "/dev/zero", "/dev/null/x", "", "/proc/1/mem"]
)
def test_a_path_that_can_be_no_design(spec: str) -> None:
    """A path that no file can have is refused as any other, and no device is read."""
    assert " " in refusal(spec)


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
