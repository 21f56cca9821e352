"""A Redis server: a hash `APPLICATION_ID:STAGE` for each stage of an application.

The fields of a hash are the keys. The server is one of the application's own, from PATH or in a
container, or one that is given by its address. Writes are read from MONITOR, which tells every
command with the server's own time.
"""

import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, cast
from urllib.parse import urlsplit
from uuid import uuid4

from redis import ConnectionPool
from redis import Redis as Client
from redis.exceptions import RedisError

from upheld import commands, extras
from upheld.brokers.node import free_ports
from upheld.errors import MachineProblem, UsageProblem
from upheld.stores.layout import Kept, Written
from upheld.supervisor.reaper import RunScope
from upheld.threads import Heard
from upheld.verdicts import MachineLacks

_UP_S: Final = 10.0
_LOOK_S: Final = 0.01
_HELD_MS: Final = 60_000
_PORT: Final = 6379  # of an address that names none
_NONE: Final = "this machine has no Redis to keep a state in: there is no redis-server on PATH"
_WORD: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_WRITES: Final = ("hset", "hmset", "hsetnx")
# All that a server has acknowledged is still there after it is killed.
_KEEPS_ALL: Final = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")


class _Seen(NamedTuple):
    """A write as MONITOR tells it, with the server's own time in seconds."""

    at_s: float
    stage: str
    key: str


class _Server(Protocol):
    """A server of the harness; `address` is a URL of it."""

    address: str

    def start(self) -> None:
        """Start the server, with what it kept."""
        ...

    def has_ended(self) -> bool:
        """Return whether the server has ended, so that it will answer no more."""
        ...

    def kill(self) -> None:
        """SIGKILL the server."""
        ...

    def close(self) -> None:
        """End the server for good."""
        ...


class _Process:
    """A server from PATH, which keeps its data in a folder."""

    def __init__(self, run: RunScope, binary: str, folder: Path) -> None:
        self._run = run
        self._process: subprocess.Popen[bytes] | None = None
        (port,) = free_ports(1)
        folder.mkdir(parents=True, exist_ok=True)
        self._command = [
            binary,
            "--bind",
            "127.0.0.1",
            "--port",
            str(port),
            "--dir",
            str(folder),
            *_KEEPS_ALL,
        ]
        self.address = f"redis://127.0.0.1:{port}/0"

    def start(self) -> None:
        """Start the server, with what it kept."""
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath} | self._run.environment,
            start_new_session=True,
        )
        self._run.session(self._process.pid)

    def has_ended(self) -> bool:
        """Return whether the server has ended, so that it will answer no more."""
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """SIGKILL the server."""
        if self._process:
            self._process.kill()
            self._process.wait()

    close = kill


def _server(run: RunScope, folder: Path) -> _Server:
    """Return a server of the harness.

    Raises:
        MachineLacks: The machine has neither the program nor a container of it.
    """
    if binary := commands.program("redis-server"):
        return _Process(run, binary, folder)
    if lack := extras.lack("container"):
        raise MachineLacks(f"{_NONE}, and {lack}")
    from upheld.stores.redis_container import RedisContainer, redis_image

    image, reason = redis_image()
    if reason:
        raise MachineLacks(f"{_NONE}, and {reason}")
    return RedisContainer(run, image, _KEEPS_ALL)


class Redis:
    """The server, the harness's own or given; `address` is a URL of it."""

    def __init__(self, run: RunScope, folder: Path, application_id: str, given: str = "") -> None:
        self._prefix = f"{application_id}:"
        self._server = None if given else _server(run, folder)
        self.address = self._server.address if self._server else given
        self._client = Client.from_url(
            self.address, decode_responses=True, encoding_errors="replace"
        )
        self._writes: list[_Seen] = []
        self._reported = 0
        self._kept: list[Kept] | None = None  # what is in it while it is down
        self._monitor: Any = None
        self._listener: Heard | None = None
        self._word = uuid4().hex
        self._has_caught_up = threading.Event()
        try:
            self._serve()
        except BaseException:
            with contextlib.suppress(RedisError):
                self.close()
            raise

    def _serve(self) -> None:
        """Start the harness's own server with what it kept, and listen to its commands."""
        if self._server:
            self._server.start()
        self._await()
        patient = {"decode_responses": True, "encoding_errors": "replace", "socket_timeout": None}
        self._monitor = ConnectionPool.from_url(self.address, **patient).make_connection()
        self._monitor.send_command("MONITOR")
        self._monitor.read_response()  # all later commands come
        self._listener = Heard(self._listen, self._monitor, name="monitor")
        self._listener.start()

    def _await(self) -> None:
        until = time.monotonic() + _UP_S
        while True:
            with contextlib.suppress(RedisError):
                self._client.ping()
                return
            if self._server is None:
                raise MachineProblem(f"The store at {shown(self.address)} does not answer any more")
            if self._server.has_ended() or time.monotonic() > until:
                raise MachineProblem("redis-server does not come up; try `redis-server` by hand")
            time.sleep(_LOOK_S)

    def _listen(self, monitor: Any) -> None:
        with contextlib.suppress(RedisError, OSError, ValueError):
            while True:
                line = str(monitor.read_response())
                words = _WORD.findall(line)
                if words[:2] == ["ECHO", self._word]:
                    self._has_caught_up.set()
                if (
                    len(words) > 3
                    and words[0].lower() in _WRITES
                    and words[1].startswith(self._prefix)
                ):
                    at_s = float(line.split(" ", 1)[0])
                    stage = words[1].removeprefix(self._prefix)
                    self._writes += [_Seen(at_s, stage, key) for key in words[2::2]]

    def rows(self) -> list[Kept]:
        """Return all rows that are kept."""
        if self._kept is not None:
            return self._kept
        names = sorted(self._client.scan_iter(f"{self._prefix}*"))
        found = (
            (str(name).removeprefix(self._prefix), cast(dict[str, str], self._client.hgetall(name)))
            for name in names
            if self._client.type(name) == "hash"  # anything else holds no rows
        )
        return [
            Kept(stage, key, value)
            for stage, fields in found
            for key, value in sorted(fields.items())
        ]

    def writes(self) -> list[Written]:
        """Return the writes since the last call."""
        known = self._writes[self._reported :]
        self._reported += len(known)
        return [Written(time.time() - seen.at_s, seen.stage, seen.key) for seen in known]

    def version(self) -> int:
        """Return a number that changes when another client has written."""
        return len(self._writes)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let no client write meanwhile; readers see what was there before."""
        self._client.client_pause(_HELD_MS, all=False)
        try:
            yield
        finally:
            self._client.client_unpause()

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Answer every write with an error meanwhile; readers see what was there before.

        The server may use no more memory, and gives up no key for it.
        """
        if self._server is None:
            raise MachineLacks(f"the store at {shown(self.address)} is not ours to fill")
        limits = cast(dict[str, str], self._client.config_get("maxmemory*"))
        self._client.config_set("maxmemory-policy", "noeviction")
        self._client.config_set("maxmemory", 1)
        try:
            yield
        finally:
            self._client.config_set("maxmemory", limits["maxmemory"])
            self._client.config_set("maxmemory-policy", limits["maxmemory-policy"])

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Kill the server meanwhile; it comes back with all that it had acknowledged.

        `rows` returns this all along.
        """
        if self._server is None:
            raise MachineLacks(f"the store at {shown(self.address)} is not ours to kill")
        self._client.client_pause(_HELD_MS, all=False)
        self._kept = self.rows()
        self._catch_up()
        self._server.kill()
        self._stop_listening()
        try:
            yield
        finally:
            self._serve()
            self._kept = None

    def close(self) -> None:
        """End the server, with what it kept.

        If the server was given, remove this application's rows from it.
        """
        if self._server:
            self._server.close()
        else:
            self._client.delete(*self._client.scan_iter(f"{self._prefix}*"), self._prefix)
        self._stop_listening()
        self._client.close()

    def _catch_up(self) -> None:
        """Wait until the listener has heard all that the server has.

        A kill would take with it what is still on its way.
        """
        self._has_caught_up.clear()
        self._client.echo(self._word)
        if not self._has_caught_up.wait(_UP_S):
            raise MachineProblem(
                f"The store at {shown(self.address)} does not tell what is written there"
            )

    def _stop_listening(self) -> None:
        """Stop listening."""
        if self._monitor:
            self._monitor.disconnect()
        if self._listener:
            self._listener.join(_UP_S)


def shown(address: str) -> str:
    """Return an address without user and password."""
    url = urlsplit(address)
    return f"{url.scheme}://{url.hostname}:{url.port or _PORT}"


def reachable(address: str) -> str:
    """Return the address of a server, once it has answered.

    Raises:
        UsageProblem: It is no address.
        MachineProblem: No server answers.
    """
    try:
        with Client.from_url(
            address, retry=None, socket_timeout=_UP_S, socket_connect_timeout=_UP_S
        ) as client:
            client.ping()
    except ValueError as error:
        raise UsageProblem(
            f"--store redis is given what is no address of a Redis: {error}."
        ) from None
    except RedisError as error:
        raise MachineProblem(
            f"The store at {shown(address)} does not answer: {str(error).rstrip('.')}."
        ) from None
    return address
