"""Feed a reader with odd inputs, and keep those that it falls over.

    python tools/fuzz.py manifest --minutes 5          fuzz, and exit 1 if something fell
    python tools/fuzz.py proxy.wire --minutes 5        another function of a target's module
    python tools/fuzz.py manifest --input FILE         feed one input again

The targets are the modules of `tools/fuzzing`. A process of its own feeds the reader. It is
looked after from outside, so that an input is kept though the reader hangs, dies or fills the
memory. If `atheris` is installed (`pip install "upheld[fuzz]"`), it looks for inputs that reach new
code. Without it, inputs are made from those to begin with alone. An input that fails is made
smaller, and kept in `fuzzed/TARGET`.
"""

import argparse
import faulthandler
import gc
import hashlib
import importlib
import mmap
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

from upheld.commands import PYTHON

TOOLS: Final = Path(__file__).parent
HANG_S: Final = 10.0  # of one input
MOST_INPUT_BYTES: Final = 1 << 16
MOST_MEMORY_BYTES: Final = 4 << 30  # of the address space of the process that is fed
SMALLER_S: Final = 20.0  # that making an input smaller may take
LOOK_EVERY: Final = 2_000  # inputs
WARM: Final = 2 * LOOK_EVERY  # inputs after which a reader has its caches
MORE_FILES: Final = 8  # than after it was warm
MORE_MEMORY_KIB: Final = 512 << 10  # what atheris remembers included
_NUMBER_BYTES: Final = 8

Reader = Callable[[bytes], None]


class Target(NamedTuple):
    """A reader, with inputs to begin with, and pieces that mean something to it."""

    name: str
    read: Reader
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...]


class Held(NamedTuple):
    """The things that a process holds, and that must not grow with each input."""

    files: int
    threads: int
    memory_kib: int


class Current:
    """The input that is being read, where the process outside sees it."""

    def __init__(self, path: Path) -> None:
        path.touch()
        os.truncate(path, 2 * _NUMBER_BYTES + MOST_INPUT_BYTES)
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._count = 0

    def put(self, data: bytes) -> None:
        """Put the next input down."""
        self._count += 1
        self._map[_NUMBER_BYTES : 2 * _NUMBER_BYTES] = len(data).to_bytes(_NUMBER_BYTES)
        self._map[2 * _NUMBER_BYTES : 2 * _NUMBER_BYTES + len(data)] = data
        self._map[:_NUMBER_BYTES] = self._count.to_bytes(_NUMBER_BYTES)

    @property
    def count(self) -> int:
        """Return the number of inputs so far."""
        return int.from_bytes(self._map[:_NUMBER_BYTES])

    @property
    def data(self) -> bytes:
        """Return the last input."""
        length = int.from_bytes(self._map[_NUMBER_BYTES : 2 * _NUMBER_BYTES])
        return self._map[2 * _NUMBER_BYTES : 2 * _NUMBER_BYTES + length]


class Feeder:
    """Feeds a reader, and keeps each kind of failure once."""

    def __init__(self, target: Target, keep: Path, current: Current, until: float) -> None:
        self.target = target
        self.until = until
        self.fallen = set[str]()
        self._keep = keep
        self._current = current
        self._fed = 0
        self._warm: Held | None = None

    def feed(self, data: bytes) -> None:
        """Feed one input; end the process if the time is over."""
        if time.monotonic() > self.until:
            self.end()
        data = data[:MOST_INPUT_BYTES]
        self._current.put(data)
        if place := failure(self.target.read, data):
            self._fell(data, place)
        self._fed += 1
        if self._fed % LOOK_EVERY == 0:
            self._look()

    def end(self) -> None:
        """End the process: atheris has no other end."""
        print(f"{self.target.name}: {self._fed} inputs, {len(self.fallen)} kinds of failure")
        sys.stdout.flush()
        os._exit(1 if self.fallen else 0)

    def _fell(self, data: bytes, place: str) -> None:
        if place in self.fallen:
            return
        self.fallen.add(place)
        small = smaller(data, lambda other: self._fails_at(place, other))
        kept = keep(self._keep, small)
        print(f"{self.target.name} fails at {place}; again: {again(self.target.name, kept)}")
        with suppress(BaseException):
            explained(self.target.read, small)
        sys.stdout.flush()

    def _fails_at(self, place: str, data: bytes) -> bool:
        self._current.put(data)
        return failure(self.target.read, data) == place

    def _look(self) -> None:
        """Compare what the process holds with what it held when it was warm."""
        gc.collect()
        held = held_now()
        if self._fed == WARM:
            self._warm = held
        if self._warm and "leak" not in self.fallen:
            more_files = held.files - self._warm.files
            more_threads = held.threads - self._warm.threads
            more_kib = held.memory_kib - self._warm.memory_kib
            if max(more_files, more_threads) > MORE_FILES or more_kib > MORE_MEMORY_KIB:
                self.fallen.add("leak")
                print(f"{self.target.name} leaks: {self._warm} became {held}")


def held_now() -> Held:
    """Return what this process holds."""
    status = Path("/proc/self/statm").read_text(encoding="ascii").split()
    memory_kib = int(status[1]) * resource.getpagesize() >> 10
    return Held(
        sum(1 for _ in Path("/proc/self/fd").iterdir()), threading.active_count(), memory_kib
    )


def failure(read: Reader, data: bytes) -> str:
    """Return where a reader fails, by the kind of its exception; empty if it does not."""
    try:
        read(data)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a reader raises is a defect
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "/upheld/" in frame.filename] or frames
        return f"{type(error).__name__} {Path(own[-1].filename).name}:{own[-1].lineno}"
    return ""


def explained(read: Reader, data: bytes) -> None:
    """Feed one input, and print the traceback of its failure."""
    try:
        read(data)
    except BaseException:
        traceback.print_exc(limit=-8)
        raise


def smaller(data: bytes, is_same: Callable[[bytes], bool]) -> bytes:
    """Leave out parts of an input as long as the same failure stays."""
    until = time.monotonic() + SMALLER_S
    size = max(1, len(data) // 2)
    while size:
        at = 0
        while at < len(data) and time.monotonic() < until:
            shorter = data[:at] + data[at + size :]
            if is_same(shorter):
                data = shorter
            else:
                at += size
        size //= 2
    return data


def changed(data: bytes, chance: random.Random, target: Target) -> bytes:
    """Return an input with some changes of the kinds that readers stumble over."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice((0, 1, 1, 4, 30, 200)))
        data = data[:at] + _piece(data, at, end, chance, target) + data[end:]
    return data[:MOST_INPUT_BYTES]


def _piece(data: bytes, at: int, end: int, chance: random.Random, target: Target) -> bytes:
    """Return what stands in the place of a part of an input."""
    word = chance.choice(target.words) if target.words else b""
    kinds: Sequence[Callable[[], bytes]] = (
        lambda: b"",
        lambda: chance.randbytes(chance.choice((1, 2, 8))),
        lambda: word,
        lambda: word,
        lambda: data[at:end] * chance.choice((2, 3, 100, 2_000)),
        lambda: word * chance.choice((2, 100, 2_000)),
        lambda: chance.choice(ODD),
        lambda: chance.choice(DEEP) * chance.choice((3, 199, 201, 900, 1_100, 20_000)),
        lambda: _part_of(chance.choice(target.seeds), chance),
    )
    return chance.choice(kinds)()


def _part_of(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[at : at + chance.choice((4, 30, 300))]


ODD: Final = (
    *(
        b"\0",
        b"\n",
        b"\r\n",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\x1b[2J",
        b"\xed\xa0\x80",
        "\u2028".encode(),
    ),
    *(b"9" * 400, b"9" * 5_000, b"-1", b"NaN", b"1e999", b"null", b"true", b'""', b"{}", b"[]"),
    *(b"\\u0000", b"\\ud800", "\u202e".encode(), b" ", b"\t"),
)
DEEP: Final = (b"[", b"{", b"(", b'{"a":', b"[[", b"a.", b"not ", b"<a>", b"\\", b"]", b")")


def fed_by_atheris(feeder: Feeder, seed: int) -> None:
    """Feed the reader with inputs that reach new code."""
    import atheris

    chance = random.Random(seed)

    def mutated(data: bytes, most: int, number: int) -> bytes:
        chance.seed(number)
        if chance.random() < 0.5:
            return bytes(atheris.Mutate(data, len(data)))[:most]
        return changed(data, chance, feeder.target)[:most]

    seeds = Path(tempfile.mkdtemp(prefix="upheld-seeds-"))
    for number, data in enumerate(feeder.target.seeds):
        (seeds / str(number)).write_bytes(data[:MOST_INPUT_BYTES])
    options = [
        *("fuzz", f"-seed={seed % (1 << 31) or 1}", f"-max_len={MOST_INPUT_BYTES}", "-verbosity=0"),
        *("-rss_limit_mb=0", "-timeout=3600", "-detect_leaks=0", "-handle_segv=0", str(seeds)),
    ]
    atheris.Setup(options, feeder.feed, custom_mutator=mutated)
    atheris.Fuzz()


def fed_by_chance(feeder: Feeder, seed: int) -> None:
    """Feed the reader with changed inputs, those to begin with first."""
    chance = random.Random(seed)
    for data in feeder.target.seeds:
        feeder.feed(data)
    while True:
        feeder.feed(changed(chance.choice(feeder.target.seeds), chance, feeder.target))


def target_of(name: str) -> Target:
    """Return the target of that name: a module, or a function of one."""
    module_name, _, function = name.partition(".")
    module: ModuleType = importlib.import_module(f"fuzzing.{module_name}")
    seeds = tuple(getattr(module, "SEEDS", ())) or (b"",)
    words = tuple(getattr(module, "WORDS", ()))
    return Target(name, getattr(module, function or module_name), seeds, words)


def work(arguments: argparse.Namespace) -> None:
    """Feed the reader in this process until the time is over."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    faulthandler.register(signal.SIGUSR1)
    has_atheris = find_spec("atheris") is not None
    if has_atheris:
        import atheris

        with atheris.instrument_imports(include=["upheld", "tomllib", "gherkin", "kio"]):
            target = target_of(arguments.target)
    else:
        target = target_of(arguments.target)
    until = time.monotonic() + 60 * arguments.minutes
    feeder = Feeder(target, arguments.keep, Current(arguments.current), until)
    (fed_by_atheris if has_atheris else fed_by_chance)(feeder, arguments.seed)


def looked_after(arguments: argparse.Namespace) -> int:
    """Have another process feed the reader; return 1 if something fell."""
    fallen = 0
    until = time.monotonic() + 60 * arguments.minutes
    rounds: Iterator[int] = iter(range(1_000))
    while (left := until - time.monotonic()) > 1:
        seed = arguments.seed + next(rounds)
        ended = _round(arguments, seed, left / 60)
        fallen |= ended != 0
        if ended in (0, 1):
            break
    return int(fallen)


def _round(arguments: argparse.Namespace, seed: int, minutes: float) -> int:
    """Run one process, and return how it ended; its last input is kept if it hung or died."""
    arguments.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="upheld-fuzz-") as folder:
        current = Path(folder) / "current"
        seen = Current(current)
        command = [PYTHON, __file__, arguments.target, "--worker", "--current", current]
        command += ["--seed", str(seed), "--minutes", str(minutes), "--keep", arguments.keep]
        worker = subprocess.Popen(command, env={**os.environ, "TMPDIR": folder})
        ended = _watched(worker, seen)
        if ended not in (0, 1):
            kept = keep(arguments.keep, seen.data)
            said = "hangs" if ended == -signal.SIGKILL else f"ends with {ended}"
            print(f"{arguments.target} {said}; again: {again(arguments.target, kept)}", flush=True)
    return ended


def _watched(worker: "subprocess.Popen[bytes]", seen: Current) -> int:
    """Wait for a process, and kill it if one input takes too long."""
    count = seen.count
    since = time.monotonic()
    while (ended := worker.poll()) is None:
        time.sleep(0.2)
        if seen.count != count or not seen.count:
            count = seen.count
            since = time.monotonic()
        elif time.monotonic() - since > HANG_S:
            worker.send_signal(signal.SIGUSR1)  # it says where it is
            time.sleep(0.5)
            worker.kill()
    return ended


def keep(folder: Path, data: bytes) -> Path:
    """Write an input into a file that is named after its digest."""
    path = folder / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path


def again(target: str, path: Path) -> str:
    """Return the command that feeds an input again."""
    return f"python tools/fuzz.py {target} --input {path}"


def main() -> int:
    """Do what the command line asks for, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = sorted(path.stem for path in (TOOLS / "fuzzing").glob("*.py") if path.stem[0] != "_")
    parser.add_argument("target", metavar="TARGET", help=", ".join(names))
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--input", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--current", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.target.partition(".")[0] not in names:
        parser.error(f"there is no target {arguments.target}; there are {', '.join(names)}")
    arguments.keep = arguments.keep or Path("fuzzed", arguments.target)
    if arguments.input:
        explained(target_of(arguments.target).read, arguments.input.read_bytes())
        return 0
    if arguments.worker:
        work(arguments)
    return looked_after(arguments)


if __name__ == "__main__":
    sys.path.insert(0, str(TOOLS))
    sys.exit(main())
