"""The commands that know an application without an adapter. No Kafka is started."""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from upheld import cli
from upheld.cli import designs, sweep
from upheld.protocol.manifest import load
from upheld.scaffold import new
from upheld.sweep.points import CrashPoint, Result

POINT = CrashPoint(phase="transaction-2", api="end_txn", number=1, side="after")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where an application is."""
    monkeypatch.chdir(tmp_path)
    new(tmp_path / "shop", is_application=True)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[argparse.Namespace]:
    """Return what a sweep is asked for; its one point was not hit."""
    found = list[argparse.Namespace]()

    def swept(arguments: argparse.Namespace, *_: object) -> list[Result]:
        found.append(arguments)
        return [Result(point=POINT)]

    @contextmanager
    def own_folder(_: Path | None) -> Iterator[Path]:
        yield Path("out")

    monkeypatch.setattr(sweep, "swept", swept)
    monkeypatch.setattr(sweep, "own_folder", own_folder)
    return found


def test_all_of_its_life_is_swept(
    asked: list[argparse.Namespace], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its start, three waves and its stop are; nobody has to name its program."""
    assert cli.main(["sweep", "--design", "shop"]) == 2

    (arguments,) = asked
    assert (arguments.mode, arguments.points, arguments.depth) == ("exactly_once", "all", "full")
    lines = capsys.readouterr().out.splitlines()
    again = next(line for line in lines if line.startswith("  again "))
    assert "--design shop --mode exactly_once --points all --point transaction-2" in again
    assert lines[-1] == f"crash points 0 of 1 hit, 0 upheld; not hit: {POINT}"


def test_it_is_swept_as_it_is_asked_for(asked: list[argparse.Namespace]) -> None:
    """Options that are typed stand."""
    typed = ["--points", "txn", "--depth", "quick", "--mode", "exactly_once"]

    assert cli.main(["sweep", "--design", "shop", *typed]) == 2

    assert (asked[0].points, asked[0].depth) == ("txn", "quick")


@pytest.mark.parametrize(
    ("design", "program", "mode"),
    [
        ({"programs": ("relay",), "modes": ("at_least_once",)}, "relay", "at_least_once"),
        ({"programs": ("relay", "ledger")}, "ledger", "exactly_once"),
    ],
)
def test_a_design_is_swept_as_the_strongest_that_it_is(
    design: dict[str, Any], program: str, mode: str
) -> None:
    """Where nothing is typed, a ledger comes before a relay, and exactly_once first."""
    modes = ("at_least_once", "exactly_once")
    manifest: Any = SimpleNamespace(
        **{"name": "mine", "application": None, "modes": modes} | design
    )
    arguments = cli.parser().parse_args(["sweep"])

    sweep._fill_in(arguments, manifest)

    assert (arguments.program, arguments.mode) == (program, mode)
    assert (arguments.points, arguments.depth) == ("txn", "core")


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (["sweep", "--program", "ledger"], "runs no program of the suite; leave --program out."),
        (["sweep", "--mode", "at_least_once"], "shop has no mode at_least_once; it has"),
        (["sweep", "--lanes", "2", "--pairs"], "leave --pairs out, or --lanes."),
        (["sweep", "--lanes", "2", "--point", "x"], "leave --point out, or --lanes."),
        (["smoke"], "`upheld sweep --design shop --depth quick` starts it, and says what is wrong"),
    ],
)
def test_what_has_no_meaning_for_it_is_refused(
    asked: list[argparse.Namespace],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    typed: list[str],
    says: str,
) -> None:
    """The sentence says what to do instead, before anything is started."""
    monkeypatch.setattr(designs, "opened_broker", lambda *_: pytest.fail("a broker is started"))
    assert cli.main([*typed, "--design", "shop"]) == 4

    assert not asked
    refused = capsys.readouterr().err
    assert says in refused
    assert len(refused.splitlines()) == 1


def test_new_says_what_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    """The command that it names is understood."""
    assert cli.main(["new", "--application", "mine"]) == 0

    said = capsys.readouterr().out
    assert said == "mine holds an application; try: upheld sweep --design mine\n"
    assert cli.main(["new", "--application", "--json", "other"]) == 0
    files = [Path(file).name for file in json.loads(capsys.readouterr().out)["files"]]
    assert files == ["design.toml", "app.py", "orders.jsonl", "design.schema.json"]


def test_changes_of_containers_to_disks_are_not_seen() -> None:
    """The system calls of a process that the engine starts are asked of nobody."""
    file = Path("shop", "design.toml")
    lines = [
        'image = "shop/orders:4"' if line.startswith("command =") else line
        for line in file.read_text().splitlines()
    ]
    file.write_text("\n".join(lines))
    design = load("shop")

    assert sweep._not_watched(design) == f"{design.name} runs in containers, which nobody watches"
