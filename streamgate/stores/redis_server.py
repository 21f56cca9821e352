"""A Redis server of one application's own: for each stage a hash `APPLICATION_ID:STAGE`, its fields the keys.

What is written is read from MONITOR, which tells every command with the server's own time.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from redis import Redis as Client
from redis.exceptions import RedisError

from streamgate.brokers.node import free_ports
from streamgate.designs.reaper import RunScope
from streamgate.errors import MachineProblem
from streamgate.verdicts import NotOffered

_UP_S = 10.0
_HELD_MS = 60_000
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
_WRITES = ("hset", "hmset", "hsetnx")


class Redis:
    """The server, found on PATH; `address` is a URL of it."""

    def __init__(self, run: RunScope, folder: Path, application_id: str) -> None:
        binary = shutil.which("redis-server")
        if binary is None:
            raise NotOffered("this machine has no redis-server on PATH to keep a state in")
        folder.mkdir(parents=True, exist_ok=True)
        (port,) = free_ports(1)
        self.address, self._prefix = f"redis://127.0.0.1:{port}/0", f"{application_id}:"
        command = [binary, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath} | run.environment,
            start_new_session=True,
        )
        run.session(self._process.pid)
        self._client = Client.from_url(self.address, decode_responses=True)
        self._told: list[tuple[float, str, str]] = []
        self._asked = 0
        try:
            self._await()
            self._monitor = socket.create_connection(("127.0.0.1", port), _UP_S)
            self._monitor.settimeout(None)
            self._monitor.sendall(b"MONITOR\r\n")
            lines = self._monitor.makefile("r", encoding="utf-8", errors="replace")
            lines.readline()  # it is told from here on
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        self._listener = threading.Thread(target=self._listen, args=(lines,), name="monitor", daemon=True)
        self._listener.start()

    def _await(self) -> None:
        until = time.monotonic() + _UP_S
        while True:
            with contextlib.suppress(RedisError):
                self._client.ping()
                return
            if self._process.poll() is not None or time.monotonic() > until:
                raise MachineProblem("redis-server does not come up; try `redis-server` by hand")
            time.sleep(0.01)

    def _listen(self, lines: Iterator[str]) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in lines:
                words = _WORD.findall(line)
                if len(words) > 3 and words[0].lower() in _WRITES and words[1].startswith(self._prefix):
                    at_s, stage = float(line.lstrip("+").split(" ", 1)[0]), words[1].removeprefix(self._prefix)
                    self._told += [(at_s, stage, key) for key in words[2::2]]

    def rows(self) -> list[tuple[str, str, str]]:
        """Stage, key and value of everything that is kept."""
        names = sorted(self._client.scan_iter(f"{self._prefix}*"))
        found = (
            (str(name).removeprefix(self._prefix), cast(dict[str, str], self._client.hgetall(name))) for name in names
        )
        return [(stage, key, value) for stage, fields in found for key, value in sorted(fields.items())]

    def writes(self) -> list[tuple[float, str, str]]:
        """How many seconds ago, stage and key of every write since this was asked last."""
        told, self._asked = self._told[self._asked :], len(self._told)
        return [(time.time() - at_s, stage, key) for at_s, stage, key in told]

    def version(self) -> int:
        """A number that changes when somebody else has written; quick enough to be asked all the time."""
        return len(self._told)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile nobody can write; who reads sees what was there before."""
        self._client.client_pause(_HELD_MS, all=False)
        try:
            yield
        finally:
            self._client.client_unpause()

    def close(self) -> None:
        """End the server, and what it kept with it."""
        self._client.close()
        self._process.kill()
        self._process.wait()
        self._listener.join(_UP_S)
        self._monitor.close()
