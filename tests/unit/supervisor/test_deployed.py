"""The processes of an application are told apart; its last words are its error.

An error stands there without the frames below it.
"""

from pathlib import Path
from typing import Any

import pytest

from upheld.supervisor.deployed import last_words, parts

SPRING = """\
ERROR --- [main] o.s.boot.SpringApplication : Application run failed

org.springframework.beans.factory.BeanCreationException: no bean 'costs'
\tat org.springframework.beans.factory.Creation.create(Creation.java:61) ~[spring-beans-7.0.8.jar]
Caused by: java.lang.IllegalArgumentException: Could not resolve 'shop.costs'
\tat org.springframework.util.Parser.resolve(Parser.java:278) ~[spring-core-7.0.8.jar]
\t... 22 common frames omitted

"""
NODE = """\
Error: no topic is named
    at Object.<anonymous> (/srv/app.js:1:7)
    at node:internal/main/run_main_module:28:49
"""


@pytest.mark.parametrize(
    ("log", "last"),
    [
        (SPRING, "Caused by: java.lang.IllegalArgumentException: Could not resolve 'shop.costs'"),
        (NODE, "Error: no topic is named"),
        ("ready\n\nat 12:00 it gave up\n", "at 12:00 it gave up"),
    ],
)
def test_the_error_is_told_and_not_its_frames(log: str, last: str) -> None:
    """A sentence at the beginning of a line is none of them."""
    assert last_words(log.splitlines(), 5)[-1] == last


def test_frames_alone_are_better_than_nothing() -> None:
    """A log of which only the last lines are kept may hold no other line."""
    frames = ["\tat a.B.c(B.java:1)", "\tat a.B.d(B.java:2)"]

    assert last_words(frames, 1) == frames[1:]
    assert last_words([], 5) == []


def test_a_table_may_stand_for_several_processes(tmp_path: Path) -> None:
    """A number tells them apart, and each is told its own name."""
    tables = {"app": {"command": ["run", "{process}"], "count": 2}, "side": {"command": ["{dir}"]}}

    found = parts(tables, "group", {"dir": "/srv"}, tmp_path)

    assert [(each.name, each.command) for each in found] == [
        ("app-1", ("run", "app-1")),
        ("app-2", ("run", "app-2")),
        ("side", ("/srv",)),
    ]


def test_each_process_has_a_port_and_files_of_its_own(tmp_path: Path) -> None:
    """The address at which it is ready has that port."""
    (tmp_path / "app.tmpl").write_text("port = {port}")
    table = {
        "command": ["run", "{rendered}/app.ini"],
        "render": {"app.ini": "{dir}/app.tmpl"},
        "count": 2,
    }
    names = {"dir": str(tmp_path)}
    ready = "http://127.0.0.1:{port}/ready"

    found = parts({"app": table}, ready, names, tmp_path / "rendered")

    ports = [Path(each.command[1]).read_text().removeprefix("port = ") for each in found]
    assert len(set(ports)) == 2
    assert [each.address for each in found] == [f"http://127.0.0.1:{port}/ready" for port in ports]


@pytest.mark.parametrize("told", ["{port}", ""])
def test_a_process_that_is_told_no_port_says_nothing_by_http(told: str, tmp_path: Path) -> None:
    """If none is told one, the first is asked at the address as it stands."""
    tables: dict[str, Any] = {"side": {"command": ["run"]}, "app": {"command": ["serve", told]}}
    ready = "http://127.0.0.1:{port}/" if told else "http://127.0.0.1:8080/"

    found = parts(tables, ready, {}, tmp_path)

    assert [bool(each.address) for each in found] == ([False, True] if told else [True, False])
