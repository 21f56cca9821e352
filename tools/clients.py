"""Judge small relays with the clients of the world, and write docs/clients.md.

python tools/clients.py [CLIENT…]               judge these clients, or all, and write the table
python tools/clients.py --read-only [CLIENT…]   write the table of what was judged before

A client whose relay cannot be built on this machine stands in the table with the reason. A client
that is not judged now keeps what was found about it last, if the folder of the runs is kept.
A failure that is the client's own stands in the relay's file of known failures, with a link.
"""

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from kio.schema.index import api_key_map
from pages import Part

from upheld import commands
from upheld.errors import UsageProblem
from upheld.history.events import Negotiated
from upheld.history.reading import recording
from upheld.protocol.manifest import load as load_manifest
from upheld.report import RowResult, read
from upheld.verdicts import Verdict

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "clients.md"
TABLES: Final = Part("<!-- written by `tox run -e clients` -->\n", "<!-- until here -->\n")
ROWS: Final = "@wire"  # the rows behind the proxy
RUN_S: Final = 1_800
# client -> the design that uses it
DESIGNS: Final = {
    "librdkafka": "examples/librdkafka",
    "Java 3.9": "examples/java-3.9",
    "Java 4.3": "examples/java-4.3",
    "franz-go": "examples/franz-go",
    "sarama": "examples/sarama",
    "aiokafka": "examples/aiokafka",
    "kafkajs": "examples/kafkajs",
}
APIS: Final = (
    "api_versions",
    "metadata",
    "find_coordinator",
    "join_group",
    "fetch",
    "produce",
    "offset_fetch",
    "offset_commit",
    "init_producer_id",
    "add_partitions_to_txn",
    "add_offsets_to_txn",
    "txn_offset_commit",
    "end_txn",
)


KNOWN_APIS: Final = frozenset(api_key_map.values())


class Judged(NamedTuple):
    """The rows of a client, or why there are none."""

    version: str
    rows: Sequence[RowResult] = ()
    # API -> its versions through the proxy, and those that it might have without it
    versions: Mapping[str, tuple[int, int]] = {}
    date: str = "-"
    seed: int | None = None
    why_not: str = ""


def judge(designs: Sequence[str], out: Path) -> str:
    """Judge relays behind the proxy; return why they could not be, or nothing."""
    command = commands.own_module("upheld", "run", "--program", "relay", "--only", ROWS)
    command += ["--broker", "embedded", "--lanes", "2", "--out", str(out)]
    for design in designs:
        command += ["--design", design]
    ended = subprocess.run(
        command, check=False, timeout=RUN_S, cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    if (out / "report.jsonl").exists():
        return ""
    return " ".join(ended.stderr.split())[:200] or f"the run ended with {ended.returncode}"


def lacking(design: str) -> str:
    """Return why this machine cannot build a design, or nothing."""
    try:
        load_manifest(str(ROOT / design))
    except UsageProblem as problem:
        return str(problem).partition("design.toml: ")[2]
    return ""


def judged(client: str, out: Path) -> Judged:
    """Read what the last run that judged a client found about it."""
    if why_not := lacking(DESIGNS[client]):
        return Judged("-", why_not=f"not judged: {why_not}")
    design = load_manifest(str(ROOT / DESIGNS[client]))
    reports = sorted(out.glob("*/report.jsonl"), key=_end, reverse=True)
    for report in reports:
        with suppress(UsageProblem):  # a run that was cut
            rows, summary = read(report)
            if own := [row for row in rows if row.design == design.name]:
                versions = _versions(report.parent, own)
                day = datetime.fromtimestamp(_end(report), UTC).date().isoformat()
                return Judged(design.version, own, versions, day, summary.seed)
    return Judged(design.version, why_not="not judged yet")


def _end(report: Path) -> float:
    """Return when a report was ended, in seconds since 1970."""
    return report.stat().st_mtime


def _versions(out: Path, rows: Iterable[RowResult]) -> dict[str, tuple[int, int]]:
    """Return the highest version of each API that the rows' histories have."""
    found = dict[str, tuple[int, int]]()
    for path in (out / row.history for row in rows if row.history):
        for event in recording(path).history.of(Negotiated):
            for api, through in event.through.items():
                before = found.get(api, (0, 0))
                found[api] = max(before[0], through), max(before[1], event.without[api])
    return found


def table(found: Mapping[str, Judged]) -> str:
    """Return the tables of the page: what was judged, and the versions of each API."""
    lines = ["| client | version | judged | seed | rows behind the proxy |"]
    lines.append("|---|---|---|---|---|")
    for client, each in found.items():
        seed = "-" if each.seed is None else each.seed
        lines.append(f"| {client} | {each.version} | {each.date} | {seed} | {_verdicts(each)} |")
    with_rows = {client: each for client, each in found.items() if each.versions}
    lines += ["", f"| API | {' | '.join(with_rows)} |", f"|---|{'---|' * len(with_rows)}"]
    for api in APIS:
        cells = [_cell(each.versions.get(api)) for each in with_rows.values()]
        lines.append(f"| `{api}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _verdicts(found: Judged) -> str:
    """Return how many rows have which verdict, and each row that is not upheld."""
    if not found.rows:
        return found.why_not
    counts = Counter(row.verdict for row in found.rows)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    others = [
        f"{row.id} is {row.verdict}{_anomaly(row)}{_known(row)}"
        for row in found.rows
        if row.verdict is not Verdict.UPHELD
    ]
    return "; ".join([said, *others])


def _known(row: RowResult) -> str:
    """Return the reason and the link of a known failure."""
    return f", which is known: {row.known}" if row.known else ""


def is_bad(row: RowResult) -> bool:
    """Return whether a row is red, or is upheld though it is a known failure."""
    return row.fails or row.verdict is Verdict.HARNESS_ERROR


def _anomaly(row: RowResult) -> str:
    return f" ({row.anomalies[0].name})" if row.anomalies else ""


def _cell(versions: tuple[int, int] | None) -> str:
    if versions is None:
        return "-"
    through, without = versions
    return f"{through}" if through == without else f"{through} (up to {without})"


def write(text: str) -> None:
    """Put the tables between the page's marks."""
    TABLES.put(PAGE, f"\n{text}\n")


def main(arguments: Iterable[str] | None = None) -> int:
    """Judge clients and write the tables; return 1 if a row is bad or missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("client", nargs="*", help=f"any of {', '.join(DESIGNS)}")
    parser.add_argument("--read-only", action="store_true", help="judge nothing")
    parser.add_argument("--out", type=Path, default=ROOT / ".tox" / "out" / "clients")
    options = parser.parse_args(list(arguments) if arguments is not None else None)
    if unknown := set(options.client) - set(DESIGNS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    chosen = [DESIGNS[client] for client in options.client or DESIGNS]
    due = [design for design in chosen if not lacking(design)]
    why = ""
    if not options.read_only and due:
        why = judge(due, options.out / time.strftime("%Y%m%d-%H%M%S"))
    found = {client: judged(client, options.out) for client in DESIGNS}
    write(table(found))
    if why:
        print(f"nothing was judged: {why}", file=sys.stderr)
    return int(bool(why) or any(is_bad(row) for each in found.values() for row in each.rows))


if __name__ == "__main__":
    sys.exit(main())
