"""No process of the harness runs what lies in the current folder."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from upheld import commands
from upheld.brokers.jars import cache_home
from upheld.brokers.java import find_java
from upheld.protocol.manifest import load
from upheld.supervisor.reaper import RunScope

ROOT = Path(__file__).parents[2]
ANSWER_S = 60
# Modules that the harness, its lanes or its reaper import, and names that Python looks for itself.
SHADOWS = (
    "json.py",
    "pytest.py",
    "runpy.py",
    "contextlib.py",
    "signal.py",
    "sitecustomize.py",
    "usercustomize.py",
    "upheld/__init__.py",
    "upheld/cli.py",
    "conftest.py",
    "docker.py",
    "fcntl.py",
    "filelock/__init__.py",
)
# Here a process of the harness may be begun by the executable itself: it imports nothing of ours.
NO_OWNER = ("impl", "bench", "bootstrap.py")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a folder whose modules and programs all leave a mark when they run."""
    folder = tmp_path / "hostile"
    mark = f"open({str(tmp_path / 'mark')!r}, 'a').write(__name__ + '\\n')\n"
    for name in SHADOWS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(mark)
    for name in ("java", "redis-server", "ldd", "busybox", "true", "docker"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path / 'mark'}\n")
        (folder / name).chmod(0o755)
    return folder


def marks(hostile: Path) -> str:
    """Return the names of the modules and programs that ran."""
    mark = hostile.parent / "mark"
    return mark.read_text() if mark.exists() else ""


def ended(
    command: list[str], folder: Path, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder to its end."""
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=False,
    )


def test_the_folder_is_hostile(hostile: Path) -> None:
    """A Python that is begun as usual runs its modules."""
    ended([sys.executable, "-m", "upheld"], hostile, PYTHONPATH="")

    assert marks(hostile)


@pytest.mark.parametrize("module", ["upheld", "upheld.supervisor.reaper", "upheld.brokers.jars"])
@pytest.mark.parametrize("path", ["/nowhere", str(ROOT)])
def test_a_module_of_ours_takes_nothing_from_the_folder(
    hostile: Path, module: str, path: str
) -> None:
    """This holds for each module that is run as a process, wherever the package lies."""
    end = ended(commands.own_module(module, "--help"), hostile, PYTHONPATH=path)

    assert marks(hostile) == ""
    assert "No module" not in end.stderr


def test_a_module_of_ours_is_that_of_the_caller(hostile: Path) -> None:
    """The package of this process runs, also where PYTHONPATH names another."""
    other = hostile.parent / "other"
    (other / "upheld").mkdir(parents=True)
    (other / "upheld" / "__init__.py").write_text("raise SystemExit('another one')")

    end = ended(commands.own_module("upheld", "--version"), hostile, PYTHONPATH=str(other))

    assert (end.returncode, marks(hostile)) == (0, "")


def test_a_bare_python_takes_nothing_from_anywhere(hostile: Path) -> None:
    """The folder, its sitecustomize and the user's variables are passed over."""
    code = "import json, contextlib, sys; print(sys.flags.inspect)"

    end = ended(
        commands.bare_python("-c", code), hostile, PYTHONPATH=str(hostile), PYTHONINSPECT="1"
    )

    assert (end.stdout, marks(hostile)) == ("0\n", "")


def test_a_run_begins_its_reaper_apart_from_the_folder(
    hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reaper cleans up whatever the folder and the variables of Python say."""
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("PYTHONPATH", f":{os.environ.get('PYTHONPATH', '')}:")
    monkeypatch.setenv("PYTHONSTARTUP", str(hostile / "json.py"))
    commands.isolate()

    with RunScope() as run:
        assert run.scratch.exists()

    assert not run.scratch.exists()
    assert marks(hostile) == ""


def test_python_m_drops_the_folder(hostile: Path) -> None:
    """`python -m upheld` imports the rest of the harness from its own folder alone.

    Modules that Python needs to find the package are taken before the harness can say anything.
    """
    for name in ("runpy.py", "contextlib.py", "signal.py", "upheld/__init__.py", "upheld/cli.py"):
        (hostile / name).unlink()
    (hostile / "upheld").rmdir()

    end = ended([sys.executable, "-m", "upheld", "list"], hostile)

    assert (end.returncode, marks(hostile)) == (0, "")


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("", os.defpath),
        (".", os.defpath),
        (":", os.defpath),
        ("/usr/bin:", "/usr/bin"),
        (":/usr/bin", "/usr/bin"),
        ("/usr/bin::/bin", "/usr/bin:/bin"),
        ("./bin:/usr/bin:../x", "/usr/bin"),
        ("bin:~/bin:/bin", "/bin"),
    ],
)
def test_no_program_is_looked_for_in_the_folder(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, path: str, kept: str
) -> None:
    """Relative entries of PATH go, and an empty one is relative."""
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("PATH", path)

    found = [commands.program(name) for name in ("java", "redis-server", "true", "docker")]
    commands.isolate()

    assert [name for name in found if name and Path(name).parent == hostile] == []
    assert os.environ["PATH"] == kept


@pytest.mark.parametrize("name", commands.INTERACTIVE)
def test_no_variable_stops_a_process_for_a_person(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """With PYTHONINSPECT a design would run requests as code after its end."""
    monkeypatch.setenv(name, str(hostile / "json.py"))

    commands.isolate()

    assert name not in os.environ


@pytest.mark.parametrize(("path", "kept"), [("", ""), (":/a", "/a"), ("/a::b:", "/a:b")])
def test_pythonpath_keeps_what_it_names(
    monkeypatch: pytest.MonkeyPatch, path: str, kept: str
) -> None:
    """An empty entry names nothing, and would mean the folder."""
    monkeypatch.setenv("PYTHONPATH", path)

    commands.isolate()

    assert os.environ["PYTHONPATH"] == kept


@pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"])
def test_java_is_asked_without_the_user_s_options(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """An agent that cannot be loaded would end it, and any other would run."""
    monkeypatch.chdir(hostile)
    monkeypatch.setenv(name, f"-javaagent:{hostile / 'agent.jar'}")
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    monkeypatch.delenv("JAVA_HOME", raising=False)

    java = find_java()

    assert java.path.is_absolute()
    assert java.path.parent != hostile
    assert marks(hostile) == ""


def test_no_cache_lies_in_the_folder(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative XDG_CACHE_HOME is passed over, as its specification demands."""
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")

    assert cache_home() == Path.home() / ".cache" / "upheld"


def test_a_design_is_run_by_this_python(tmp_path: Path) -> None:
    """Its own folder is its affair: a design may import what lies beside its program."""
    manifest = load("plain")

    assert manifest.command[0] == commands.PYTHON
    assert "-P" not in manifest.command


def sources() -> Iterator[Path]:
    """Go through each Python file that may start a process of the harness."""
    for folder in ("upheld", "steps", "generators", "impl", "tools", "bench"):
        yield from (ROOT / folder).rglob("*.py")
    yield ROOT / "bootstrap.py"


def uses(source: str) -> Iterator[ast.AST]:
    """Go through the places that name the interpreter, or look a program up."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in (
            "sys.executable",
            "shutil.which",
        ):
            yield node


def test_one_module_names_the_interpreter_and_looks_programs_up() -> None:
    """All commands of the harness's own processes are made in `upheld.commands`.

    The two look-ups beside it are of a design's command, which is the design's own affair.
    """
    found = {
        f"{path.relative_to(ROOT)}: {ast.unparse(use)}"
        for path in sources()
        if path.relative_to(ROOT).parts[0] not in NO_OWNER
        for use in uses(path.read_text())
    }

    assert found == {
        "upheld/commands.py: sys.executable",
        "upheld/commands.py: shutil.which",
        "upheld/protocol/manifest.py: shutil.which",
        "upheld/injectors/disk/watcher.py: shutil.which",
        "tools/bare.py: shutil.which",
    }


def lists_that_begin_with_a_python(source: str) -> Iterator[list[str]]:
    """Go through the commands in a source that begin with an interpreter."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.List) and node.elts:
            words = [ast.unparse(element) for element in node.elts]
            if words[0] in ("sys.executable", "PYTHON", "str(PYTHON)"):
                yield words


def test_a_command_beside_it_is_isolated_as_well() -> None:
    """Designs and the file that installs the harness cannot import that module."""
    found = [
        words
        for path in sources()
        if path.relative_to(ROOT).parts[0] in NO_OWNER
        for words in lists_that_begin_with_a_python(path.read_text())
    ]

    assert len(found) >= 3
    assert {words[1] for words in found} == {"'-P'"}


def test_a_brace_that_is_no_placeholder_stays() -> None:
    """An argument may be JSON."""
    assert commands.filled('{"a": "{mode}"}', {"mode": "exactly_once"}) == '{"a": "exactly_once"}'
