import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from upheld.brokers import jars
from upheld.brokers.jars import Jar, jar_set
from upheld.errors import MachineProblem, UsageProblem

CONTENT = {"alpha": b"the first jar", "beta": b"the second jar"}


@pytest.fixture
def lock_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a set of two jars, and a cache that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "lock"
    folder.mkdir()
    entries = "".join(
        f'[[dependencies]]\ngroupId = "g"\nartifactId = "{name}"\nversion = "1"\n'
        f'sha256 = "{hashlib.sha256(content).hexdigest()}"\n'
        for name, content in CONTENT.items()
    )
    (folder / "jgo.lock.toml").write_text(f'[environment]\nname = "pair"\n{entries}')
    return folder


class Repository:
    """A Maven repository in miniature, which can serve damage a number of times."""

    def __init__(self, damaged_times: int = 0) -> None:
        self.served: list[str] = []
        self.damaged_times = damaged_times

    def __call__(self, jar: Jar, folder: Path) -> Path:
        """Serve one jar into the folder."""
        self.served.append(jar.artifact)
        damaged = self.served.count(jar.artifact) <= self.damaged_times
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / jar.file_name
        path.write_bytes(b"an error page" if damaged else CONTENT[jar.artifact])
        return path


def unreachable(jar: Jar, folder: Path) -> Path:
    """Refuse to fetch, as a repository does without a network."""
    raise ConnectionError("no route to host")


def test_a_set_is_fetched_once(lock_folder: Path) -> None:
    """The second use takes the cache and asks nobody."""
    repository = Repository()

    first = jar_set(lock_folder, repository)
    second = jar_set(lock_folder, unreachable)

    assert [path.read_bytes() for path in first] == [b"the first jar", b"the second jar"]
    assert first == second
    assert sorted(repository.served) == ["alpha", "beta"]


def test_a_damaged_jar_in_the_cache_is_fetched_again(lock_folder: Path) -> None:
    """Each use hashes every jar, so damage is found, and that jar alone is fetched."""
    paths = jar_set(lock_folder, Repository())
    paths[1].write_bytes(b"bit rot")
    repository = Repository()

    jar_set(lock_folder, repository)

    assert paths[1].read_bytes() == CONTENT["beta"]
    assert repository.served == ["beta"]


def test_damage_on_the_way_is_fetched_once_more(lock_folder: Path) -> None:
    """One bad transfer is forgiven."""
    paths = jar_set(lock_folder, Repository(damaged_times=1))

    assert [path.read_bytes() for path in paths] == [b"the first jar", b"the second jar"]


def test_lasting_damage_is_named_and_never_enters_the_cache(lock_folder: Path) -> None:
    """Two bad transfers are a problem of the machine: one sentence names the jar."""
    with pytest.raises(
        MachineProblem,
        match=r"^The jar (alpha|beta)-1\.jar has not the content that its lock names",
    ):
        jar_set(lock_folder, Repository(damaged_times=2))

    assert list((jars.cache_home()).rglob("*.jar")) == []


def test_offline_with_a_damaged_cache_names_the_jar(lock_folder: Path) -> None:
    """Without a network the sentence says which jar and what to do."""
    jar_set(lock_folder, Repository())[0].write_bytes(b"bit rot")

    with pytest.raises(MachineProblem) as problem:
        jar_set(lock_folder, unreachable)

    assert str(problem.value).startswith(
        "The jar alpha-1.jar cannot be fetched (ConnectionError: no route to host); "
        "let this machine reach a Maven repository once, or copy "
    )


def test_a_lock_without_checksums_is_refused(lock_folder: Path) -> None:
    """A lock that would accept any content is not a lock."""
    lock = lock_folder / "jgo.lock.toml"
    lock.write_text(
        "\n".join(line for line in lock.read_text().splitlines() if "sha256" not in line)
    )

    with pytest.raises(UsageProblem, match="is not a jgo lock with a sha256 for every jar"):
        jar_set(lock_folder, unreachable)


def test_the_command_says_one_sentence_when_there_is_no_lock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A design calls it as a command: it prints paths, or a sentence on stderr.

    With the sentence comes an exit code.
    """
    code = jars.main([str(tmp_path)])

    out, err = capsys.readouterr()
    assert (4, "", f"There is no jgo.lock.toml in {tmp_path}; run `jgo lock` there.\n") == (
        code,
        out,
        err,
    )


@pytest.mark.parametrize("folder", ["upheld/brokers/kafka", "impl/spark/jars"])
def test_our_locks_hold_a_checksum_for_each_jar_and_no_address(folder: str) -> None:
    """Where a jar comes from is the machine's business; what it is, the lock's."""
    lock = Path(__file__).parents[3] / folder / "jgo.lock.toml"

    name, locked = jars.read_lock(lock)

    assert name == ("kafka" if "kafka" in folder else "spark")
    assert all(len(jar.sha256) == 64 for jar in locked)
    assert "://" not in lock.read_text() + lock.with_name("jgo.toml").read_text()


def pipe(place: Path) -> None:
    """Put a pipe there, which nothing ever writes to."""
    os.mkfifo(place)


def cut(place: Path) -> None:
    """Leave the first bytes alone, as a full disk does."""
    place.write_bytes(CONTENT["alpha"][:5])


def longer(place: Path) -> None:
    """Add a byte to what the lock names."""
    place.write_bytes(CONTENT["alpha"] + b"\0")


def empty(place: Path) -> None:
    """Leave a file without a byte."""
    place.touch()


def endless(place: Path) -> None:
    """Lead to a device that never ends."""
    place.symlink_to("/dev/zero")


def dangling(place: Path) -> None:
    """Lead to nothing."""
    place.symlink_to("nowhere")


def circle(place: Path) -> None:
    """Lead to itself."""
    place.symlink_to(place.name)


def other(place: Path) -> None:
    """Lead to the other jar, which is whole."""
    place.symlink_to(place.with_name("beta-1.jar"))


@pytest.mark.parametrize(
    "spoil", [pipe, cut, longer, empty, endless, dangling, circle, other], ids=lambda f: f.__name__
)
def test_whatever_stands_in_a_jar_s_place_is_replaced(
    lock_folder: Path, spoil: Callable[[Path], None]
) -> None:
    """Only the bytes of the lock are used, and nothing waits for a file that is none."""
    paths = jar_set(lock_folder, Repository())
    paths[0].unlink()
    spoil(paths[0])

    jar_set(lock_folder, Repository())

    assert [path.read_bytes() for path in paths] == [CONTENT["alpha"], CONTENT["beta"]]
    assert not paths[0].is_symlink()


def test_a_folder_in_a_jar_s_place_is_named(lock_folder: Path) -> None:
    """It is not removed: something else may have been put there."""
    paths = jar_set(lock_folder, Repository())
    paths[0].unlink()
    paths[0].mkdir()

    with pytest.raises(MachineProblem, match=r"alpha-1\.jar is a folder .*; remove it\.$"):
        jar_set(lock_folder, Repository())


def test_a_fetch_that_brings_a_pipe_is_refused(lock_folder: Path) -> None:
    """A file that a repository's client leaves is judged as one of the cache is."""

    def piped(jar: Jar, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / jar.file_name).unlink(missing_ok=True)
        pipe(folder / jar.file_name)
        return folder / jar.file_name

    with pytest.raises(MachineProblem, match="has not the content that its lock names"):
        jar_set(lock_folder, piped)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("artifactId", '"../../../escaped"'),
        ("artifactId", '"/etc/escaped"'),
        ("artifactId", '""'),
        ("artifactId", '"a\\u0000b"'),
        ("groupId", '"..\\nforged"'),
        ("groupId", f'"{"g" * 300}"'),
        ("version", "1.5"),
        ("version", '"1/../../x"'),
        ("classifier", '"../x"'),
        ("classifier", "[1]"),
        ("sha256", '"00"'),
        ("sha256", f'"{"G" * 64}"'),
        ("sha256", "0"),
        ("name", '"../../pair"'),
    ],
)
def test_a_lock_that_leads_out_of_the_cache_is_refused(
    lock_folder: Path, field: str, value: str
) -> None:
    """Its fields become parts of paths; the sentence names the lock and the field."""
    lock = lock_folder / "jgo.lock.toml"
    text = lock.read_text()
    if field == "classifier":
        text += f"classifier = {value}\n"
    lock.write_text(re.sub(rf'{field} = ".*"', lambda _: f"{field} = {value}", text))
    before = sorted(lock_folder.parent.rglob("*"))

    with pytest.raises(UsageProblem) as problem:
        jar_set(lock_folder, unreachable)

    assert str(problem.value).startswith(f"{lock} is not a jgo lock ")
    assert field in str(problem.value)
    assert "\n" not in str(problem.value)
    assert sorted(lock_folder.parent.rglob("*")) == before


def no_lock(lock: Path, how: str) -> None:
    """Put something in a lock's place that is none."""
    lock.unlink()
    match how:
        case "pipe":
            os.mkfifo(lock)
        case "folder":
            lock.mkdir()
        case "endless":
            lock.symlink_to("/dev/zero")
        case "huge":
            lock.touch()
            os.truncate(lock, 1 << 34)
        case "deep":
            lock.write_text("a = " + "[" * 100_000)
        case "binary":
            lock.write_bytes(b"\xff\xfe\0")
        case "flat":
            lock.write_text('dependencies = "abc"\nenvironment = []\n')
        case "keyed":
            lock.write_text("a = 1\na = 2\n")


@pytest.mark.parametrize(
    "how", ["pipe", "folder", "endless", "huge", "deep", "binary", "flat", "keyed"]
)
def test_what_is_no_lock_is_said_in_a_sentence(lock_folder: Path, how: str) -> None:
    """Nothing hangs, nothing fills the memory, and no traceback is shown."""
    lock = lock_folder / "jgo.lock.toml"
    no_lock(lock, how)

    with pytest.raises(UsageProblem, match="is not a jgo lock") as problem:
        jar_set(lock_folder, unreachable)

    assert len(str(problem.value)) < 500
