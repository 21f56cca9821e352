"""A Cassandra of one node as a child process, which serves a whole run.

It has locked jars, and a Java that it can take.
"""

import functools
import json
import os
import re
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

from upheld.brokers.jars import jar_set
from upheld.brokers.java import Java, find_java
from upheld.brokers.node import free_ports
from upheld.errors import MachineProblem, Problem
from upheld.masking import private
from upheld.stores.cassandra_server.query_log import QueryLog
from upheld.supervisor.reaper import RunScope
from upheld.ui.console import waiting
from upheld.verdicts import MachineLacks

NEWEST_JAVA: Final = 19  # the query log of Cassandra 5 cannot reach into newer ones
MANAGED_JAVA: Final = 17  # newer ones need a flag for Cassandra's security manager
HOST: Final = "127.0.0.1"
WRITERS: Final = 8  # its threads that write
_READY_S: Final = 90.0
_LOOK_S: Final = 0.05
_TOOL_S: Final = 60.0
_QUEUE_BYTES: Final = 64 << 20
_LOG_BYTES: Final = 16 << 30
_LAST_CHARS: Final = 300
_FLAGS: Final = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
)
_HEAP: Final = ("-Xms128m", "-Xmx384m", "-XX:MaxDirectMemorySize=128m")
# The inner parts of Java that Cassandra, Netty and Chronicle use.
_EXPORTS: Final = (
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "jdk.attach/sun.tools.attach",
    "jdk.unsupported/sun.misc",
)
_OPENS: Final = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.util",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
)
_LOGGING: Final = """<configuration>
  <appender name="log" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%date %-5level %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="log"/></root>
</configuration>
"""


@dataclass
class Server:
    """A Cassandra that answers; the run's reaper ends it."""

    port: int
    process: subprocess.Popen[bytes]
    queries: QueryLog
    launch: "_Launch" = field(repr=False)

    def write_with(self, threads: int) -> None:
        """Set how many of its threads write.

        With none, writes wait and time out, while reads are answered.
        """
        stage = "org.apache.cassandra.request:type=MutationStage"
        self.launch.tell(
            self.process.pid, stage, "-ms", "-f", "MaximumPoolSize", "-v", str(threads)
        )

    def kill(self) -> None:
        """SIGKILL the server; its disk and its port stay its own."""
        self.process.kill()
        self.process.wait()

    def serve_again(self) -> None:
        """Boot the server on the same disk and port; its log of queries goes on from here."""
        self.process = self.launch.boot()
        self.queries.go_on_in(self.launch.queries)


@functools.cache
def server_of(run: RunScope) -> Server:
    """Return the run's one server, started at the first call.

    Raises:
        MachineLacks: The machine lacks what it needs.
    """
    try:
        java = find_java(NEWEST_JAVA)
        jars = jar_set(Path(__file__).parent)
    except Problem as problem:
        raise MachineLacks(f"this machine has no Cassandra to keep a state in: {problem}") from None
    with waiting("Cassandra boots"):
        return _Launch(run, java, jars).start()


class _Launch:
    def __init__(self, run: RunScope, java: Java, jars: list[Path]) -> None:
        self.run = run
        self.java = java
        self.jars = jars
        self.home = run.scratch / f"cassandra-{uuid4().hex[:8]}"
        self.log = self.home / "log"
        self.queries: Path  # of the last boot
        self.port, self.storage_port = free_ports(2)

    def start(self) -> Server:
        """Boot the server for the first time."""
        for folder in (self.home, self.home / "tmp"):
            folder.mkdir()
        (self.home / "logback.xml").write_text(_LOGGING)
        (self.home / "cassandra.yaml").write_text(json.dumps(self._settings()))
        return Server(self.port, self.boot(), QueryLog(self.queries), self)

    def boot(self) -> subprocess.Popen[bytes]:
        """Boot the server, with a new folder for its log of queries.

        It would empty a folder that it has used before.
        """
        self.queries = Path(tempfile.mkdtemp(prefix="queries-", dir=self.home))
        process = self._java(
            *self._server_options(), "org.apache.cassandra.service.CassandraDaemon"
        )
        self.run.session(process.pid)
        try:
            self._await(process)
            self._have_queries_logged(process.pid)
        except BaseException:
            process.kill()
            process.wait()
            raise
        return process

    def _have_queries_logged(self, pid: int) -> None:
        # The server waits for its log, and archives nothing.
        how = (str(self.queries), "DAILY", "true", str(_QUEUE_BYTES), str(_LOG_BYTES), "", "0")
        self.tell(
            pid,
            "org.apache.cassandra.db:type=StorageService",
            "-mc",
            "-op",
            "enableFullQueryLogger",
            "-a",
            *how,
        )

    def tell(self, pid: int, bean: str, *what: str) -> None:
        """Have the server do something, by attaching to it.

        This is quicker than Cassandra's own tool, and needs no port.
        """
        tool = self._java("org.gridkit.jvmtool.SJK", "mx", "--pid", str(pid), "-b", bean, *what)
        self.run.session(tool.pid)
        try:
            tool.wait(_TOOL_S)
        except subprocess.TimeoutExpired:
            tool.kill()
            tool.wait()
        if tool.returncode != 0:
            raise self._problem(f"does not take {' '.join(what)}")

    def _settings(self) -> dict[str, object]:
        """Return the settings that differ from Cassandra's defaults, or have none."""
        seeds = {"seeds": f"{HOST}:{self.storage_port}"}
        return {
            "cluster_name": "upheld",
            "num_tokens": 1,
            "partitioner": "Murmur3Partitioner",
            "endpoint_snitch": "SimpleSnitch",
            "seed_provider": [
                {
                    "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                    "parameters": [seeds],
                }
            ],
            "listen_address": HOST,
            "rpc_address": HOST,
            "storage_port": self.storage_port,
            "start_native_transport": True,
            "native_transport_port": self.port,
            "concurrent_writes": WRITERS,
            "commitlog_sync": "batch",  # all that it has acknowledged is on the disk
            "commitlog_segment_size": "8MiB",
            "memtable_heap_space": "64MiB",
            "memtable_offheap_space": "32MiB",
            "file_cache_size": "32MiB",
            "networking_cache_size": "16MiB",
            "key_cache_size": "0MiB",
            # This is needed even for the empty command, which archives nothing.
            "full_query_logging_options": {"allow_nodetool_archive_command": True},
            "auto_snapshot": False,
            "hinted_handoff_enabled": False,
        }

    def _server_options(self) -> list[str]:
        agent = next(str(jar) for jar in self.jars if jar.name.startswith("jamm-"))
        properties = {
            "cassandra.config": (self.home / "cassandra.yaml").as_uri(),
            "cassandra-foreground": "yes",  # else it closes its log
            "cassandra.storagedir": self.home / "data",
            "cassandra.logdir": self.home,
            "cassandra.skip_wait_for_gossip_to_settle": 0,
            "cassandra.ring_delay_ms": 0,
            "chronicle.analytics.disable": "true",
            "io.netty.tryReflectionSetAccessible": "true",
            "jdk.attach.allowAttachSelf": "true",
        }
        return [
            f"-javaagent:{agent}",
            *_HEAP,
            *(f"-D{name}={value}" for name, value in properties.items()),
        ]

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start one of Cassandra's programs, its output in the log."""
        inner = [f"--add-exports={name}=ALL-UNNAMED" for name in _EXPORTS]
        inner += [f"--add-opens={name}=ALL-UNNAMED" for name in _OPENS]
        if self.java.major > MANAGED_JAVA:
            inner.append("-Djava.security.manager=allow")
        command = [
            str(self.java.path),
            *_FLAGS,
            *inner,
            f"-Djava.io.tmpdir={self.home / 'tmp'}",
            f"-Duser.home={self.home}",
            f"-Dlogback.configurationFile={self.home / 'logback.xml'}",
            "-cp",
            ":".join(map(str, self.jars)),
            *arguments,
        ]
        with open(self.log, "ab", opener=private) as log:
            return subprocess.Popen(
                command,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.defpath} | self.run.environment,
                start_new_session=True,  # the harness handles Ctrl-C
            )

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        """Return once the server takes statements."""
        until = time.monotonic() + _READY_S
        while True:
            try:
                process.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                pass
            else:
                raise self._problem("ends at start")
            try:
                socket.create_connection((HOST, self.port), 1).close()
            except OSError:
                if time.monotonic() > until:
                    raise self._problem(f"is not ready within {_READY_S:.0f} s") from None
            else:
                return

    def _problem(self, what: str) -> MachineProblem:
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        telling = [line for line in lines if re.search(r"\b(ERROR|Error|\w*Exception)\b", line)]
        last = (telling or lines or ["nothing"])[-1].strip()
        return MachineProblem(f"Cassandra {what}; its last word is: {last[:_LAST_CHARS]}")
