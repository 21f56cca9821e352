"""Jar sets: the Java that a broker or a design needs, by a jgo lock file.

A set is fetched once per user. A lock holds every jar's coordinates and SHA-256, and no address. So
the source of a jar does not matter, and its content cannot vary. Each use hashes every jar again
(45 MB: a tenth of a second), because a cache is a folder that anybody can damage. It is a command
too, so that a design in any language can have its jars from its own lock folder:

    python -m upheld.brokers.jars LOCKFOLDER      prints one jar path a line
"""

import argparse
import errno
import hashlib
import os
import re
import stat
import sys
import tempfile
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from filelock import FileLock, Timeout

from upheld.errors import MachineProblem, Problem, UsageProblem
from upheld.ui.console import announce

LOCK_NAME: Final = "jgo.lock.toml"
FETCH_DEADLINE_S: Final = 300  # another process may be fetching the same set
_CONNECT_TIMEOUT_S: Final = 20
_TRIES: Final = 2
_PARALLEL_FETCHES: Final = 6
_REASON_CHARS: Final = 160
_SHOWN_CHARS: Final = 60
_LOCK_BYTES: Final = 4 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

Fetch = Callable[["Jar", Path], Path]


@dataclass(frozen=True)
class Jar:
    """One line of a lock: an artifact and the only content that is accepted for it."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The jar's name in the cache and in messages."""
        return (
            f"{self.artifact}-{self.version}{'-' if self.classifier else ''}{self.classifier}.jar"
        )

    def is_whole(self, path: Path) -> bool:
        """Return whether the file is the locked one, byte for byte.

        Only a regular file can be: a pipe would never answer, and a device never end.
        """
        try:
            _demand_regular(path)
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError:
            return False


def _demand_regular(path: Path) -> None:
    """Raise OSError for a file that a read might wait at for ever, such as a pipe."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))


def cache_home() -> Path:
    """Return the user's cache folder of this project; XDG_CACHE_HOME moves it.

    A relative one is passed over, as its specification demands.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "upheld"


class JarSet(NamedTuple):
    """The name of a set of jars, and the jars that its lock names."""

    name: str
    jars: list[Jar]


def read_lock(lock: Path) -> JarSet:
    """Return the name of a set and the jars that its lock names.

    Raises:
        UsageProblem: There is no lock, or one without checksums, which locks nothing.
    """
    try:
        content = tomllib.loads(_text_of(lock))
        jars = [_locked(each) for each in content["dependencies"]]
        return JarSet(_part(content["environment"], "name"), jars)
    except FileNotFoundError:
        raise UsageProblem(
            f"There is no {LOCK_NAME} in {lock.parent}; run `jgo lock` there."
        ) from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as damage:
        said = f"{type(damage).__name__}: {damage}"[:_REASON_CHARS]
        raise UsageProblem(
            f"{lock} is not a jgo lock with a sha256 for every jar ({said!r}); run `jgo lock` "
            "there."
        ) from None


def _text_of(lock: Path) -> str:
    """Return a lock's text, or raise ValueError for a file that is too large to be one."""
    _demand_regular(lock)
    with lock.open("rb") as file:
        content = file.read(_LOCK_BYTES + 1)
    if len(content) > _LOCK_BYTES:
        raise ValueError(f"it has more than {_LOCK_BYTES} bytes")
    return content.decode()


def _locked(entry: dict[str, object]) -> Jar:
    """Return a jar of a lock, whose fields are all of the form that they have to have."""
    return Jar(
        _part(entry, "groupId"),
        _part(entry, "artifactId"),
        _part(entry, "version"),
        _part(entry, "classifier") if entry.get("classifier") else "",
        _part(entry, "sha256", _SHA256),
    )


def _part(entry: dict[str, object], name: str, form: re.Pattern[str] = _NAME) -> str:
    """Return a field of a lock that becomes a part of a path or of an address.

    Raises:
        ValueError: It has another form, such as one that leads out of the cache.
    """
    value = entry[name]
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ValueError(f"{name} is {str(value)[:_SHOWN_CHARS]!r}")
    return value


def jar_set(name_or_folder: str | Path, fetch: Fetch | None = None) -> list[Path]:
    """Return the paths of a set's jars, all verified.

    Jars that are missing or damaged are fetched first, once. The set is one of the harness's own by
    name (`kafka`), or any folder that holds a jgo.lock.toml.
    """
    folder = Path(name_or_folder)
    if isinstance(name_or_folder, str) and os.sep not in name_or_folder:
        folder = Path(__file__).parent / name_or_folder
    lock = folder if folder.name == LOCK_NAME else folder / LOCK_NAME
    name, jars = read_lock(lock)
    digest = hashlib.sha256("".join(sorted(j.sha256 for j in jars)).encode()).hexdigest()[:16]
    cache = cache_home() / "jars" / f"{name}-{digest}"
    if _wanting(jars, cache):
        _fill(cache, jars, fetch or _fetch_with_jgo)
    return [cache / jar.file_name for jar in jars]


def _wanting(jars: list[Jar], cache: Path) -> list[Jar]:
    with ThreadPoolExecutor(max_workers=2) as pool:  # hashing releases the interpreter lock
        whole = pool.map(lambda jar: jar.is_whole(cache / jar.file_name), jars)
        return [jar for jar, good in zip(jars, whole, strict=True) if not good]


def _fill(cache: Path, jars: list[Jar], fetch: Fetch) -> None:
    """Bring every missing jar into the cache; each gets its name when it is whole."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (
            FileLock(cache.with_suffix(".lock"), timeout=FETCH_DEADLINE_S),
            tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache) as incoming,
        ):
            wanting = _wanting(jars, cache)  # another process may have fetched them just before
            if wanting:
                announce(f"fetching {len(wanting)} jars into {cache}")
            with ThreadPoolExecutor(max_workers=_PARALLEL_FETCHES) as pool:
                list(pool.map(lambda jar: _fetch_one(jar, cache, Path(incoming), fetch), wanting))
    except Timeout:
        raise MachineProblem(
            f"Another process has been fetching jars into {cache} for {FETCH_DEADLINE_S} s; end "
            "it and try again."
        ) from None
    except OSError as failure:
        raise MachineProblem(
            f"The jar cache {cache} cannot be written ({failure.strerror or failure}); make room "
            "or set XDG_CACHE_HOME."
        ) from None


def _fetch_one(jar: Jar, cache: Path, incoming: Path, fetch: Fetch) -> None:
    trouble = ""
    if (place := cache / jar.file_name).is_dir():
        raise MachineProblem(f"{place} is a folder where a jar has to be; remove it.")
    for attempt in range(_TRIES):
        try:
            arrived = fetch(jar, incoming / str(attempt))
        except Exception as failure:  # noqa: BLE001 - the user gets one sentence
            reason = f"{type(failure).__name__}: {failure}".split("\n", 1)[0]
            trouble = f"cannot be fetched ({reason[:_REASON_CHARS]})"
            continue
        if jar.is_whole(arrived):
            arrived.replace(place)
            return
        trouble = f"has not the content that its lock names (SHA-256 {jar.sha256[:12]}…)"
    raise MachineProblem(
        f"The jar {jar.file_name} {trouble}; let this machine reach a Maven repository once, "
        f"or copy {cache} from a machine that has it."
    )


def _fetch_with_jgo(jar: Jar, folder: Path) -> Path:
    """Fetch one artifact by its coordinates.

    jgo knows the default repository and the user's own settings.
    """
    from jgo.config import GlobalSettings
    from jgo.maven import MavenContext

    context = MavenContext(
        repo_cache=folder,
        remote_repos=GlobalSettings.load().repositories or None,
        timeout=_CONNECT_TIMEOUT_S,
    )
    return (
        context.project(jar.group, jar.artifact)
        .at_version(jar.version)
        .artifact(jar.classifier)
        .resolve()
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the paths of a set's jars, one a line, and return the exit code.

    A problem is one sentence on stderr.
    """
    parser = argparse.ArgumentParser(
        prog="python -m upheld.brokers.jars", description=jar_set.__doc__
    )
    parser.add_argument("lockfolder", help="a folder with a jgo.lock.toml, or `kafka`")
    options = parser.parse_args(arguments)
    try:
        for path in jar_set(options.lockfolder):
            print(path)
    except Problem as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
