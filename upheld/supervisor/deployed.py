"""How an application without an adapter is started, and what its log ends with.

A bridge starts it so for rows, and the doctor for a visit.
"""

import http.client
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from upheld.commands import filled
from upheld.reading import read_text

HTTP: Final = "http://"  # before the address at which an application says that it is ready
ANSWER_S: Final = 1.0
OK: Final = range(200, 300)
# A frame of a stack trace, as the JVM and JavaScript write it below the error that it is of.
_FRAME: Final = re.compile(r"\s+(at \S|\.\.\. \d+ (more|common frames omitted))")


def places(rendered: Path) -> dict[str, str]:
    """Return the texts of placeholders that each start has anew."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    return {"port": str(port), "rendered": str(rendered)}


def render(process: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Write the files of a process, made of its templates.

    Args:
        process: The table of the process.
        names: What is filled in for each placeholder; `rendered` is the folder of the files.
    """
    folder = Path(names["rendered"])
    for name, template in process.get("render", {}).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_text(filled(read_text(Path(names["dir"], filled(template, names))), names))
        file.chmod(0o600)


def last_words(log: Sequence[str], most: int) -> list[str]:
    """Return the last lines of a log that say something.

    The frames of a stack trace stand below its error, and would hide it.
    """
    said = [line for line in log if line.strip()]
    return ([line for line in said if not _FRAME.match(line)] or said)[-most:]


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
