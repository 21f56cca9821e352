"""The files for CI systems are sound, and their page shows them as they are."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import includes
import pipelines
import pytest
from pipelines import ROOT

from upheld.cli import EXIT_CODES, parser

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
PINNED = re.compile(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
OWN = "OWNER/upheld@COMMIT"  # the action itself, in examples
FILES = ("action.yml", "ci/github.yml", "ci/gitlab.yml", "ci/gitlab-use.yml")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
OF_UPHELD = re.compile(r"\bupheld (run|report|merge)\b|\boptions\+?=")
SCRIPTS = pipelines.scripts()
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


def test_the_page_shows_the_files_as_they_are() -> None:
    """A copied file is the tested one; `tools/includes.py` writes them anew."""
    assert sorted(includes.names()) == sorted(FILES)
    assert [*includes.outdated()] == []


def test_a_page_that_differs_is_found(tmp_path: Path) -> None:
    """One other hash on the page is enough."""
    page = tmp_path / "ci.md"
    page.write_text(PAGE.replace("actions/cache@27", "actions/cache@28"), encoding="utf-8")

    assert [*includes.outdated(page)] == ["action.yml"]


@pytest.mark.parametrize("text", [PAGE, *((ROOT / name).read_text() for name in FILES)])
def test_other_people_s_actions_are_pinned(text: str) -> None:
    """A tag can be moved to other code, and the hash of a commit cannot."""
    used = [line.strip(" -") for line in text.splitlines() if re.match(r"\s*(- )?uses:", line)]

    assert [line for line in used if not PINNED.fullmatch(line) and OWN not in line] == []


def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    """It knows expressions, contexts and shells of workflows; a schema does not.

    Its Python package fetches a program that no hash locks, so it is no dependency. The test is
    skipped where it is not on PATH.
    """
    if not (program := shutil.which("actionlint")):
        pytest.skip("actionlint is not on PATH")
    workflow = (ROOT / "ci" / "github.yml").read_text(encoding="utf-8")
    action = tmp_path / "action"
    action.mkdir()
    shutil.copy(ROOT / "action.yml", action)
    file = tmp_path / ".github" / "workflows" / "gate.yml"
    file.parent.mkdir(parents=True)
    file.write_text(workflow.replace(OWN, "./action"), encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)

    done = subprocess.run(
        [program, "-no-color"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert OWN in workflow
    assert (done.returncode, done.stdout) == (0, "")


def test_some_actions_are_used() -> None:
    """So the test above reads something."""
    assert PAGE.count("uses: ") >= 8
    assert (ROOT / "action.yml").read_text().count("uses: actions/") == 3


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_one(name: str) -> None:
    """Bash can parse it, and no text of a user becomes a part of it."""
    parsed = subprocess.run(
        ["bash", "-n"], input=SCRIPTS[name], capture_output=True, text=True, check=False
    )

    assert (parsed.returncode, parsed.stderr) == (0, "")
    assert not pipelines.has_expression(SCRIPTS[name])


def test_the_scripts_have_options_of_ours_alone() -> None:
    """An option that is renamed is renamed here too."""
    (commands,) = (a for a in parser()._actions if hasattr(a, "choices") and a.choices)
    known = {
        option
        for name in ("run", "report", "merge")
        for action in commands.choices[name]._actions
        for option in action.option_strings
    }
    written = {
        option
        for script in SCRIPTS.values()
        for line in script.splitlines()
        if OF_UPHELD.search(line)
        for option in OPTION.findall(line)
    }

    assert {"--design", "--depth", "--shard", "--seed", "--out", "--markdown"} <= written
    assert written - known == set()


def test_each_input_of_the_action_is_read() -> None:
    """An input that no step reads would change nothing, and an unknown one is empty."""
    action = pipelines.read("action.yml")
    read = set(re.findall(r"inputs\.(\w+)", "\n".join(pipelines.strings(action["runs"]))))

    assert read == action["inputs"].keys()
    assert all(each["description"].endswith(".") for each in action["inputs"].values())


def test_the_workflow_gives_inputs_of_the_action() -> None:
    """GitHub only warns of an input that is not there."""
    known = pipelines.read("action.yml")["inputs"].keys()
    jobs = pipelines.read("ci/github.yml")["jobs"].values()
    given = [step["with"] for job in jobs for step in job["steps"] if step["uses"] == OWN]

    assert len(given) == 2
    assert {name for each in given for name in each} <= known


def test_the_extras_that_are_installed_exist() -> None:
    """Each has its file of hashes."""
    named = [
        pipelines.read("action.yml")["inputs"]["extras"]["default"],
        pipelines.read("ci/gitlab.yml")[".upheld"]["variables"]["EXTRAS"],
    ]

    assert set(named) <= EXTRAS.keys()
    assert [each for each in named if not (ROOT / f"constraints-{each}.txt").is_file()] == []


def test_the_page_has_each_exit_code() -> None:
    """A reader who sees a number in a log finds it."""
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)] == [*EXIT_CODES]
