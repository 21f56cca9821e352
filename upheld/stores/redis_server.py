"""A Redis server: for each stage of an application a hash `APPLICATION_ID:STAGE`, its fields the
keys.

It is one of the application's own, from PATH or in a container, or one that is given by its
address. What is written is read from MONITOR, which tells every command with the server's own time.
"""

import contextlib
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit
from uuid import uuid4

from redis import ConnectionPool
from redis import Redis as Client
from redis.exceptions import RedisError

from upheld.brokers.node import free_ports
from upheld.errors import MachineProblem, UsageProblem
from upheld.supervisor.reaper import RunScope
from upheld.verdicts import MachineLacks, NotOffered

_UP_S = 10.0
_HELD_MS = 60_000
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
_WRITES = ("hset", "hmset", "hsetnx")
# What it has acknowledged is still there when it was killed.
_KEEPS_ALL = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")


class _Server(Protocol):
    """A server of ours; `address` is a URL of it."""

    address: str

    def start(self) -> None:
        """Start it, with what it kept."""
        ...

    def has_ended(self) -> bool:
        """Whether nobody will answer any more."""
        ...

    def kill(self) -> None:
        """SIGKILL."""
        ...

    def close(self) -> None:
        """End it for good."""
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
        """Start it, with what it kept."""
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
        """Whether nobody will answer any more."""
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """SIGKILL."""
        if self._process:
            self._process.kill()
            self._process.wait()

    close = kill


def _server(run: RunScope, folder: Path) -> _Server:
    """A server of our own; MachineLacks where the machine has neither the program nor a container of
    it.
    """
    if binary := shutil.which("redis-server"):
        return _Process(run, binary, folder)
    from upheld.stores.redis_container import RedisContainer, redis_image  # noqa: PLC0415 - docker takes half a second

    image, reason = redis_image()
    if reason:
        raise MachineLacks(
            "this machine has no Redis to keep a state in: there is no redis-server on PATH, and "
            f"{reason}"
        )
    return RedisContainer(run, image, _KEEPS_ALL)


class Redis:
    """The server, ours or given; `address` is a URL of it."""

    def __init__(self, run: RunScope, folder: Path, application_id: str, given: str = "") -> None:
        self._prefix = f"{application_id}:"
        self._server = None if given else _server(run, folder)
        self.address = self._server.address if self._server else given
        self._client = Client.from_url(self.address, decode_responses=True)
        self._told: list[tuple[float, str, str]] = []
        self._asked = 0
        self._kept: list[tuple[str, str, str]] | None = None  # what is in it while it is down
        self._monitor: Any = None
        self._listener: threading.Thread | None = None
        self._word, self._is_heard = uuid4().hex, threading.Event()
        try:
            self._serve()
        except BaseException:
            with contextlib.suppress(RedisError):
                self.close()
            raise

    def _serve(self) -> None:
        """Start the server, if it is ours, with what it kept; and listen to what it is told."""
        if self._server:
            self._server.start()
        self._await()
        patient = {"decode_responses": True, "encoding_errors": "replace", "socket_timeout": None}
        self._monitor = ConnectionPool.from_url(self.address, **patient).make_connection()
        self._monitor.send_command("MONITOR")
        self._monitor.read_response()  # it is told from here on
        self._listener = threading.Thread(
            target=self._listen, args=(self._monitor,), name="monitor", daemon=True
        )
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
            time.sleep(0.01)

    def _listen(self, monitor: Any) -> None:
        with contextlib.suppress(RedisError, OSError, ValueError):
            while True:
                line = str(monitor.read_response())
                words = _WORD.findall(line)
                if words[:2] == ["ECHO", self._word]:
                    self._is_heard.set()
                if (
                    len(words) > 3
                    and words[0].lower() in _WRITES
                    and words[1].startswith(self._prefix)
                ):
                    at_s, stage = float(line.split(" ", 1)[0]), words[1].removeprefix(self._prefix)
                    self._told += [(at_s, stage, key) for key in words[2::2]]

    def rows(self) -> list[tuple[str, str, str]]:
        """Stage, key and value of everything that is kept."""
        if self._kept is not None:
            return self._kept
        names = sorted(self._client.scan_iter(f"{self._prefix}*"))
        found = (
            (str(name).removeprefix(self._prefix), cast(dict[str, str], self._client.hgetall(name)))
            for name in names
        )
        return [
            (stage, key, value) for stage, fields in found for key, value in sorted(fields.items())
        ]

    def writes(self) -> list[tuple[float, str, str]]:
        """How many seconds ago, stage and key of every write since this was asked last."""
        told, self._asked = self._told[self._asked :], len(self._told)
        return [(time.time() - at_s, stage, key) for at_s, stage, key in told]

    def version(self) -> int:
        """A number that changes when somebody else has written; quick enough to be asked all the
        time.
        """
        return len(self._told)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile nobody can write; who reads sees what was there before."""
        self._client.client_pause(_HELD_MS, all=False)
        try:
            yield
        finally:
            self._client.client_unpause()

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Meanwhile the server is killed; it comes back with what it had acknowledged, which `rows`
        tells all along.
        """
        if self._server is None:
            raise NotOffered(f"the store at {shown(self.address)} is not ours to kill")
        self._client.client_pause(_HELD_MS, all=False)
        self._kept = self.rows()
        self._hear_all()
        self._server.kill()
        self._unheard()
        try:
            yield
        finally:
            self._serve()
            self._kept = None

    def close(self) -> None:
        """End the server, and what it kept with it; leave none of this application in one that was
        given.
        """
        if self._server:
            self._server.close()
        else:
            self._client.delete(*self._client.scan_iter(f"{self._prefix}*"), self._prefix)
        self._unheard()
        self._client.close()

    def _hear_all(self) -> None:
        """Wait until the listener was told all that the server was: a kill takes what is on its way
        with it.
        """
        self._is_heard.clear()
        self._client.echo(self._word)
        if not self._is_heard.wait(_UP_S):
            raise MachineProblem(
                f"The store at {shown(self.address)} does not tell what is written there"
            )

    def _unheard(self) -> None:
        """Listen no more."""
        if self._monitor:
            self._monitor.disconnect()
        if self._listener:
            self._listener.join(_UP_S)


def shown(address: str) -> str:
    """The address without what must not be shown."""
    url = urlsplit(address)
    return f"{url.scheme}://{url.hostname}:{url.port or 6379}"


def reachable(address: str) -> str:
    """The address of a server that answers; UsageProblem where it is no address, MachineProblem
    where nobody answers.
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
