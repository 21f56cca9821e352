"""How an application without an adapter is started, and what its log ends with.

A bridge starts it so for rows, and the doctor for a visit.
"""

import http.client
import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from upheld.commands import CREDENTIALS, filled
from upheld.reading import read_text

HTTP: Final = "http://"  # before the address at which an application says that it is ready
ANSWER_S: Final = 1.0
OK: Final = range(200, 300)
# A frame of a stack trace, as the JVM and JavaScript write it below the error that it is of.
_FRAME: Final = re.compile(r"\s+(at \S|\.\.\. \d+ (more|common frames omitted))")


def credentials(client: Mapping[str, str]) -> dict[str, str]:
    """Return what is filled in for the placeholders of a client's security properties."""
    return {name: client.get(named, "") for name, named in CREDENTIALS.items()}


class Part(NamedTuple):
    """A process of an instance, as it is started.

    Attributes:
        name: Its name: that of its table, with a number if the table stands for several.
        command: The program and its arguments.
        environment: Its own variables.
        address: Where it says by HTTP that it is ready; empty if it does not.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    address: str


def parts(
    tables: Mapping[str, Mapping[str, Any]], ready: str, names: Mapping[str, str], rendered: Path
) -> list[Part]:
    """Return the processes of an instance, and write the files that they are told by.

    Args:
        tables: The tables of `process`, by name.
        ready: The sign of readiness, as its file has it.
        names: What is filled in for each placeholder that all of them share.
        rendered: The folder for their files. Each has a folder of its own below it.
    """
    found = [_part(name, table, ready, names, rendered) for name, table in _counted(tables)]
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


def _part(
    name: str, table: Mapping[str, Any], ready: str, names: Mapping[str, str], rendered: Path
) -> Part:
    own = {**names, "process": name, **_places(rendered / name)}
    texts = [*table["command"], *table.get("environment", {}).values(), *_render(table, own)]
    is_asked = ready.startswith(HTTP) and any("{port}" in text for text in texts)
    return Part(
        name,
        tuple(filled(each, own) for each in table["command"]),
        {key: filled(value, own) for key, value in table.get("environment", {}).items()},
        filled(ready, own) if is_asked else "",
    )


def _places(rendered: Path) -> dict[str, str]:
    """Return the texts of placeholders that each start of a process has anew."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    return {"port": str(port), "rendered": str(rendered)}


def _render(process: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    """Write the files of a process, and return the templates that they are made of.

    Args:
        process: The table of the process.
        names: What is filled in for each placeholder; `rendered` is the folder of the files.
    """
    folder = Path(names["rendered"])
    templates = []
    for name, template in process.get("render", {}).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        templates.append(read_text(Path(names["dir"], filled(template, names))))
        file.write_text(filled(templates[-1], names))
        file.chmod(0o600)
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
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=ANSWER_S)
    path = parts.path or "/"
    try:
        connection.request("GET", f"{path}?{parts.query}" if parts.query else path)
        return connection.getresponse().status in OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
