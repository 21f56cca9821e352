"""How an application without an adapter is started and asked, and its last words.

A bridge starts it so for rows, and the doctor for a visit.
"""

import http.client
import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from upheld.commands import CREDENTIALS, filled
from upheld.protocol.subject import MOUNTED
from upheld.reading import read_text
from upheld.supervisor.contained import Contained, Mount

HTTP: Final = "http://"  # before the address at which an application says that it is ready
ANSWER_S: Final = 1.0
OK: Final = range(200, 300)
NO_VALUE: Final = (204, 404)
# Statuses with which a service says that it cannot answer now, or that another instance does.
NOT_READY: Final = (*range(300, 400), 421, 429, *range(500, 600))
QUERY_S: Final = 3.0  # for the answer to a query, below the time that the harness waits for it
NO_ANSWER: Final = 0  # in place of a status
# A frame of a stack trace, as the JVM and JavaScript write it below the error that it is of.
_FRAME: Final = re.compile(r"\s+(at \S|\.\.\. \d+ (more|common frames omitted))")


def credentials(client: Mapping[str, str]) -> dict[str, str]:
    """Return what is filled in for the placeholders of a client's security properties."""
    return {name: client.get(named, "") for name, named in CREDENTIALS.items()}


def of_caller(names: Iterable[str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return those of these variables that are set.

    A container is given no other variable of its caller.
    """
    return {name: variables[name] for name in names if name in variables}


class Part(NamedTuple):
    """A process of an instance, as it is started.

    Attributes:
        name: Its name: that of its table, with a number if the table stands for several.
        command: The program and its arguments; of a container, those of what stands for it.
        environment: Its own variables; empty of a container, which is told them otherwise.
        address: Where it says by HTTP that it is ready; empty if it does not.
        is_contained: Whether it is a container.
        port: The port that is filled in for {port}.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    address: str
    port: str = ""
    is_contained: bool = False


class _Told(NamedTuple):
    """What all processes of an instance are told by, as `parts` has it."""

    ready: str
    names: Mapping[str, str]
    rendered: Path
    variables: Mapping[str, str]


class Reply(NamedTuple):
    """A reply by HTTP.

    Attributes:
        status: Its status; `NO_ANSWER` if none came in time.
        body: The bytes that came with it.
    """

    status: int
    body: bytes = b""


def parts(
    tables: Mapping[str, Mapping[str, Any]],
    ready: str,
    names: Mapping[str, str],
    rendered: Path,
    variables: Mapping[str, str] | None = None,
) -> list[Part]:
    """Return the processes of an instance, and write the files that they are told by.

    Args:
        tables: The tables of `process`, by name.
        ready: The sign of readiness, as its file has it.
        names: What is filled in for each placeholder that all of them share.
        rendered: The folder for their files. Each has a folder of its own below it.
        variables: What a container is given beside the variables of its table.
    """
    told = _Told(ready, names, rendered, variables or {})
    found = [_part(name, table, told) for name, table in _counted(tables)]
    if ready.startswith(HTTP) and not any(each.address for each in found):
        own = {**names, **_places(rendered)}
        return [found[0]._replace(address=filled(ready, own)), *found[1:]]
    return found


def _counted(tables: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Go through the processes, each with its name and its table."""
    for name, table in tables.items():
        count = table.get("count", 1)
        for number in range(1, count + 1):
            yield (f"{name}-{number}" if count > 1 else name), table


def _part(name: str, table: Mapping[str, Any], told: _Told) -> Part:
    here = {**told.names, "process": name, **_places(told.rendered / name)}
    # A container is told the places of its folders inside of it.
    own = {**here, **table.get("mount", {})}
    image = table.get("image")
    folder = Path(here["rendered"])
    command = tuple(table.get("command", ()))
    variables: Mapping[str, str] = table.get("environment", {})
    texts = [*command, *variables.values(), *_render(table, folder, own)]
    is_told = any("{port}" in text for text in texts)
    is_asked = told.ready.startswith(HTTP) and is_told
    part = Part(
        name,
        tuple(filled(each, own) for each in command),
        {key: filled(value, own) for key, value in variables.items()},
        filled(told.ready, own) if is_asked else "",
        own["port"] if is_told else "",
    )
    if not image:
        return part
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    contained = Contained(
        image,
        part.command,
        {**told.variables, **part.environment},
        tuple(_mounts(here, own, texts)),
    )
    started_by = contained.write(folder.with_name(f"{name}.container.json"))
    return part._replace(command=started_by, environment={}, is_contained=True)


def _mounts(
    here: Mapping[str, str], inside: Mapping[str, str], texts: Sequence[str]
) -> Iterator[Mount]:
    """Go through the folders that a container is told of, or that have a place in it."""
    for name, is_read_only in MOUNTED.items():
        is_told = any(f"{{{name}}}" in text for text in texts)
        if name in here and (is_told or here[name] != inside[name]):
            yield Mount(here[name], inside[name], is_read_only)


def _places(rendered: Path) -> dict[str, str]:
    """Return the texts of placeholders that each start of a process has anew."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    return {"port": str(port), "rendered": str(rendered)}


def _render(process: Mapping[str, Any], folder: Path, names: Mapping[str, str]) -> list[str]:
    """Write the files of a process, and return the templates that they are made of.

    Another user than the owner reads them in a container alone: nobody else comes to the folder.

    Args:
        process: The table of the process.
        folder: The folder of the files.
        names: What is filled in for each placeholder.
    """
    of_file, of_folder = (0o644, 0o755) if process.get("image") else (0o600, 0o700)
    templates = []
    for name, template in process.get("render", {}).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        for above in Path(name).parents:
            (folder / above).chmod(of_folder)
        templates.append(read_text(Path(names["dir"], filled(template, names))))
        file.write_text(filled(templates[-1], names))
        file.chmod(of_file)
    return templates


def last_words(log: Sequence[str], most: int) -> list[str]:
    """Return the last lines of a log that say something.

    The frames of a stack trace stand below its error, and would hide it.
    """
    said = [line for line in log if line.strip()]
    return ([line for line in said if not _FRAME.match(line)] or said)[-most:]


def all_answer(found: Iterable[Part]) -> bool:
    """Return whether each process that is to say by HTTP that it is ready does."""
    return all(answers(each.address) for each in found if each.address)


def answers(address: str) -> bool:
    """Return whether an address of HTTP answers with a status of success."""
    return asked(address, ANSWER_S).status in OK


def address_of(query: str, found: Iterable[Part], key: str) -> str:
    """Return the address at which an instance is asked for a key.

    Args:
        query: The address of its `design.toml`, with {port} and {key}.
        found: The processes of the instance; one of them is told {port}, if the address has it.
        key: The key, of which every character but letters and digits is quoted.
    """
    port = next((each.port for each in found if each.port), "")
    return filled(query, {"port": port, "key": quote(key, safe="")})


def asked(address: str, within_s: float = QUERY_S) -> Reply:
    """Ask an address of HTTP, and return what it replies."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=within_s)
    path = parts.path or "/"
    try:
        connection.request("GET", f"{path}?{parts.query}" if parts.query else path)
        response = connection.getresponse()
        return Reply(response.status, response.read())
    except (OSError, http.client.HTTPException):
        return Reply(NO_ANSWER)
    finally:
        connection.close()
