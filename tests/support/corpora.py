"""A corpus of recorded histories, and what judging each of them gives.

A redesign proves by it that no verdict changed: `tools/corpus.py` collects one history a design and
row from the folders of runs, and judges all of them again. A small corpus stands in
tests/data/corpus.
"""

import hashlib
import json
import lzma
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from goldens import as_text

from upheld.checks import CHECKS
from upheld.history import History, events
from upheld.history.reading import read
from upheld.judging import rejudge
from upheld.verdicts import Inconclusive, NotOffered

FOLDER = Path(__file__).parents[1] / "data" / "corpus"
INDEX = "index.json"
SUFFIX = ".jsonl.xz"
# Of paths on a machine: such a history stays out.
PREFIXES = (
    "/tmp",
    "/home",
    "/root",
    "/work",
    "/var",
)


class Outcome(NamedTuple):
    """The result of one claim of a history."""

    check: str
    result: str  # "holds", the names of its anomalies, or why it could not be judged
    digest: str = ""  # of its anomalies: name, key, source, expected, got


class Judged(NamedTuple):
    """The results of judging a history, without all that differs by machine."""

    design: str
    row: str
    verdict: str
    outcomes: list[Outcome]


def judged(path: Path) -> Judged:
    """Judge a history again, and each of its claims by itself; nothing is shrunk.

    A verdict alone is not enough: where no claim is violated any more, the recorded end stands.
    """
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(rejudge, "SHRUNK_S", 0.0):
        plain = path
        if path.name.endswith(SUFFIX):
            plain = Path(folder) / path.name.removesuffix(".xz")
            plain.write_bytes(lzma.decompress(path.read_bytes()))
        judgement = rejudge.judge(plain)
        history = read(plain)
    outcomes = [
        outcome(event, history.upto(count))
        for count, event in enumerate(history.events)
        if isinstance(event, events.Claim)
    ]
    return Judged(judgement.design, judgement.scenario, str(judgement.verdict), outcomes)


def outcome(claim: events.Claim, history: History) -> Outcome:
    """Ask a claim's check on the history before it."""
    try:
        anomalies = CHECKS[claim.check](history, claim.application, **claim.arguments)
    except (Inconclusive, NotOffered) as said:
        kind = Inconclusive if isinstance(said, Inconclusive) else type(said)
        return Outcome(claim.check, f"{kind.__name__}: {said}")
    told = sorted(json.dumps(each.model_dump(exclude={"text"})) for each in anomalies)
    if not told:
        return Outcome(claim.check, "holds")
    counted = Counter(each.name for each in anomalies)
    names = ", ".join(f"{counted[name]} {name}" for name in sorted(counted))
    return Outcome(claim.check, names, hashlib.sha256("\n".join(told).encode()).hexdigest()[:16])


def histories(runs: Iterable[Path]) -> Iterator[Path]:
    """Yield every history below the folders of runs, in the order of their names."""
    for run in runs:
        yield from sorted(run.glob("**/history/*.jsonl*"))


def collect(runs: Iterable[Path], folder: Path, under_kib: float = inf) -> dict[str, Judged]:
    """Keep the first history of each design and row, compressed.

    Returns:
        What judging each of them gives, by name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    index: dict[str, Judged] = {}
    known = set[tuple[str, str]]()
    for path in histories(runs):
        if path.stat().st_size >= under_kib * 1024:
            continue
        text = path.read_bytes()
        begun = events.Begun.model_validate_json(text.partition(b"\n")[0])
        place = (begun.design, begun.scenario)
        if place in known or any(f"{prefix}/".encode() in text for prefix in PREFIXES):
            continue
        known.add(place)
        name = f"{begun.design.replace('/', '-')}-{begun.scenario}{SUFFIX}"
        (folder / name).write_bytes(lzma.compress(text, preset=6))
        index[name] = judged(path)
    write_index(folder, index)
    return index


def write_index(folder: Path, index: dict[str, Judged]) -> None:
    """Write one history a line."""
    entries = {name: judgement._asdict() for name, judgement in index.items()}
    (folder / INDEX).write_text(as_text(entries), encoding="utf-8")


def read_index(folder: Path) -> dict[str, Judged]:
    """Read what each history of a corpus gave."""
    entries = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    return {
        name: Judged(**entry | {"outcomes": [Outcome(*each) for each in entry["outcomes"]]})
        for name, entry in entries.items()
    }


def differences(folder: Path, index: dict[str, Judged]) -> Iterator[str]:
    """Judge every history again, and yield a line for each that gives something else."""
    for name, expected in index.items():
        actual = judged(folder / name)
        if actual != expected:
            yield f"{name} gave {expected} and gives {actual}"


def shows(path: Path) -> set[str]:
    """Return the checks that a history calls, and the anomalies that it ends with."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "history.jsonl"
        plain.write_bytes(lzma.decompress(path.read_bytes()))
        history: History = read(plain)
    checks = {f"check {claim.check}" for claim in history.of(events.Claim)}
    ended = next(history.of(events.Ended))
    return checks | {f"anomaly {each.name}" for each in ended.anomalies} | {str(ended.verdict)}


def smallest(folder: Path, index: dict[str, Judged]) -> list[str]:
    """Choose histories that show all that the corpus shows.

    The history with the most news a byte comes first.
    """
    news = {name: shows(folder / name) for name in index}
    size = {name: (folder / name).stat().st_size for name in index}
    unseen = set().union(*news.values())
    chosen = []
    while unseen:
        best = max(sorted(news), key=lambda name: len(news[name] & unseen) / size[name])
        unseen -= news[best]
        chosen.append(best)
    return chosen
