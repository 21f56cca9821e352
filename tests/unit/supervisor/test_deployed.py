"""The processes of an application are told apart; its last words are its error.

An error stands there without the frames below it.
"""

from pathlib import Path
from typing import Any

import pytest

from upheld.supervisor.contained import Contained, Mount
from upheld.supervisor.deployed import last_words, of_caller, parts

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


def test_a_container_is_told_the_places_of_its_folders_in_it(tmp_path: Path) -> None:
    """A folder that it is not told of is not mounted."""
    (tmp_path / "app.tmpl").write_text("disk = {state_dir}\nca = {tmp_dir}")
    names = {
        "dir": str(tmp_path),
        "state_dir": "/run/state",
        "durable_dir": "/run/durable",
        "tmp_dir": "/run/tmp",
    }
    table = {
        "image": "shop/orders:4",
        "command": ["--config", "{rendered}/conf/app.ini"],
        "environment": {"DISK": "{state_dir}", "SHARED": "no"},
        "mount": {"state_dir": "/data", "rendered": "/etc/app"},
        "render": {"conf/app.ini": "{dir}/app.tmpl"},
    }

    (found,) = parts({"app": table}, "group", names, tmp_path / "rendered", {"TOKEN": "x"})

    told = Contained.read(Path(found.command[-1]))
    folder = tmp_path / "rendered" / "app"
    assert (found.environment, found.is_contained) == ({}, True)
    assert (told.image, told.command) == ("shop/orders:4", ("--config", "/etc/app/conf/app.ini"))
    assert told.environment == {"TOKEN": "x", "DISK": "/data", "SHARED": "no"}
    assert told.mounts == (
        Mount("/run/state", "/data", is_read_only=False),
        Mount("/run/tmp", "/run/tmp", is_read_only=False),
        Mount(str(folder), "/etc/app", is_read_only=True),
    )
    assert (folder / "conf" / "app.ini").read_text() == "disk = /data\nca = /run/tmp"


def test_another_user_reads_files_in_a_container_alone(tmp_path: Path) -> None:
    """How it is started may hold a password, and is for the owner alone."""
    (tmp_path / "app.tmpl").touch()
    table = {"command": ["run"], "render": {"conf/app.ini": "{dir}/app.tmpl"}}
    tables = {"app": table, "side": {**table, "image": "shop/orders:4"}}

    own, contained = parts(tables, "group", {"dir": str(tmp_path)}, tmp_path / "rendered")

    def modes(folder: Path) -> list[int]:
        return [path.stat().st_mode & 0o777 for path in (folder, *sorted(folder.glob("**/*")))]

    assert not own.is_contained
    assert modes(tmp_path / "rendered" / "app") == [0o700, 0o700, 0o600]
    assert modes(tmp_path / "rendered" / "side") == [0o755, 0o755, 0o644]
    assert Path(contained.command[-1]).stat().st_mode & 0o777 == 0o600


def test_a_variable_that_is_not_set_is_given_to_no_container() -> None:
    """Those of the caller that nobody names are not given either."""
    assert of_caller(["TOKEN", "OTHER"], {"TOKEN": "x", "PATH": "/bin"}) == {"TOKEN": "x"}
