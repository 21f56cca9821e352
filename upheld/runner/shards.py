"""A run in shards: several machines judge a part of the rows each.

Their reports are made one again.
"""

import heapq
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from upheld.errors import UsageProblem
from upheld.report import (
    RowResult,
    Summary,
    Writer,
    cpu_seconds,
    exit_code,
    matrix,
    median_seconds,
    read,
)
from upheld.report.baseline import Baseline, differences, limit
from upheld.report.folder import LOCK, locked, named_in
from upheld.report.formats import USUAL, Shown, write_all
from upheld.spec.catalogue import Catalogue
from upheld.spec.depths import DEPTHS, Share, share_of
from upheld.spec.selection import Rows, rows, within
from upheld.verdicts import Verdict

# The reports of one run are alike in these: a field of the summary, and its name for a person.
ALIKE: Final = {
    "version": ("upheld", "the version"),
    "seed": ("seed", "the seed"),
    "depth": ("depth", "the depth"),
    "slice": ("slice", "the slice"),
    "broker": ("broker", "the broker"),
    "releases": ("follows", "the releases before the designs"),
    "designs": ("design_versions", "the designs and their versions"),
    "promised": ("promised", "the rows that the designs promise"),
    "narrowed": ("narrowed", "whether options name what is judged"),
    "repeat": ("repeat", "how often each row is judged"),
}


def shard(rows: Rows, asked: Share, seconds: Callable[[str, str], float]) -> Rows:
    """Choose the rows of one shard, so that all shards take about as long.

    The longest row goes to the shard that has least, and so on. The result is the same on every
    machine, in any order of the rows.

    Args:
        rows: The ids of all chosen rows, by design.
        asked: The shard, as K of N.
        seconds: The seconds that a row of a design takes.

    Raises:
        UsageProblem: There are fewer rows than shards.
    """
    keys = sorted(
        ((design, row) for design, ids in rows.items() for row in ids),
        key=lambda key: (-seconds(*key), key),
    )
    if len(keys) < asked.count:
        raise UsageProblem(
            f"--shard {asked} asks for {asked.count} shards of {len(keys)} rows; ask for fewer."
        )
    loads = [(0.0, number) for number in range(1, asked.count + 1)]
    chosen: Rows = {design: set() for design in rows}
    for design, row in keys:
        load_s, number = heapq.heappop(loads)
        if number == asked.number:
            chosen[design].add(row)
        heapq.heappush(loads, (load_s + seconds(design, row), number))
    return chosen


def merge(
    folders: Sequence[Path],
    out: Path,
    known: Catalogue,
    formats: Iterable[str] = USUAL,
    older: Baseline | None = None,
) -> tuple[list[RowResult], Summary]:
    """Make one report of those of all shards, in a new or empty folder.

    Histories and logs are copied.

    Args:
        folders: The output folders of the shards.
        out: The folder.
        known: What the rows were judged by.
        formats: What is made of the report, beside `report.jsonl`.
        older: An older report, to compare the whole with.

    Raises:
        UsageProblem: A report is missing, cut off, partial, or of no shard; or they do not fit
            together; or the folder is not empty.
    """
    reports = {folder: read(folder / "report.jsonl") for folder in folders}
    summaries = {folder: summary for folder, (_, summary) in reports.items()}
    _demand_alike(summaries)
    _demand_all(summaries)
    rows = {
        (folder, number): row
        for folder, (found, _) in reports.items()
        for number, row in enumerate(found)
    }
    twice = [key for key, times in Counter(_key(row) for row in rows.values()).items() if times > 1]
    if twice:
        raise UsageProblem(
            f"{twice[0][1]} of {twice[0][0]} is in two of the reports, so they are none of one run."
        )
    if older:
        older = _fitting(older, list(summaries.values()), known)
        for row in rows.values():
            older.compare(row)
    _make(out)
    with locked(out):
        _demand_empty(out)
        merged = [_moved(row, folder, out) for (folder, _), row in rows.items()]
        whole = _write(merged, summaries, out, older)
        found = matrix([(merged, whole)], known.promises)
        write_all(formats, Shown(found, known, [out]))
    return merged, whole


def _subjects(shards: Sequence[Summary]) -> dict[str, str]:
    """Return what was judged of each design; it is unknown if each machine built its own."""
    first = shards[0].subjects
    return {
        design: digest if all(each.subjects.get(design) == digest for each in shards) else ""
        for design, digest in first.items()
    }


def _fitting(older: Baseline, shards: Sequence[Summary], known: Catalogue) -> Baseline:
    """Return a baseline with the rows that all shards would judge, if they are promised.

    Raises:
        UsageProblem: It is none of this run.
    """
    shard = shards[0]
    older.demand_designs(shard.design_versions)
    older.demand_alike(dict(shard) | {"subjects": _subjects(shards)})
    depth = next((each for each in DEPTHS if each == shard.depth), None)
    if shard.narrowed or not depth:  # what was named is not known
        return older
    share = share_of(shard.slice, "the slice") if shard.slice else None
    due = {row.id for row in rows(known, within(depth, share))}
    return replace(older, expected=dict.fromkeys(shard.design_versions, due))


def _write(
    merged: list[RowResult], summaries: dict[Path, Summary], out: Path, older: Baseline | None
) -> Summary:
    """Copy the logs of all reports, and write one report and one summary of them."""
    for folder, summary in summaries.items():
        if (folder / "logs").is_dir():
            shutil.copytree(
                folder / "logs", out / "logs" / f"shard-{summary.shard.partition('/')[0]}"
            )
    whole = _summary(list(summaries.values()), merged, older)
    writer = Writer(out)
    for row in merged:
        writer.write(row)
    writer.write(whole)
    writer.close()
    return whole


def _key(row: RowResult) -> tuple[str, str, int]:
    return row.design, row.id, row.repetition


def _demand_alike(summaries: dict[Path, Summary]) -> None:
    first, *others = summaries
    for other in others:
        for each in differences(ALIKE, dict(summaries[first]), dict(summaries[other])):
            raise UsageProblem(
                f"{first} and {other} do not fit together: {each.what} is {each.first!r} in one "
                f"and {each.second!r} in the other."
            )


def _demand_all(summaries: dict[Path, Summary]) -> None:
    """Raise UsageProblem unless every shard is there once, and none is partial."""
    shares: dict[Share, Path] = {}
    for folder, summary in summaries.items():
        if summary.partial:
            raise UsageProblem(
                f"{folder} is partial: not every row of its shard was judged, so it proves nothing."
            )
        if not summary.shard:
            raise UsageProblem(
                f"{folder} is the report of no shard; `upheld run --shard K/N` makes one."
            )
        share = share_of(summary.shard, f"{folder}: the shard")
        if share in shares:
            raise UsageProblem(f"{folder} and {shares[share]} are both shard {share}.")
        shares[share] = folder
    counts = sorted({share.count for share in shares})
    if len(counts) > 1:
        raise UsageProblem(
            f"Here are shards of {counts[0]} and of {counts[1]}; merge those of one run."
        )
    missing = [
        str(Share(number, counts[0]))
        for number in range(1, counts[0] + 1)
        if Share(number, counts[0]) not in shares
    ]
    if missing:
        raise UsageProblem(f"These shards are missing: {', '.join(missing)}.")


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageProblem(f"--out {out} cannot be written: {error.strerror}.") from None


def _demand_empty(out: Path) -> None:
    if any(entry.name != LOCK for entry in out.iterdir()):
        raise UsageProblem(
            f"--out {out} is not empty, and nothing is overwritten; name another folder."
        )


def _moved(row: RowResult, folder: Path, out: Path) -> RowResult:
    """Copy a row's files beside the others.

    A file that its machine did not keep is no longer named.
    """
    places = {}
    for name in ("history", "picture"):
        file = named_in(folder, getattr(row, name))
        places[name] = ""
        if file:
            places[name] = f"history/{file.name}"
            (out / "history").mkdir(exist_ok=True)
            shutil.copyfile(file, out / places[name])
    return row.model_copy(update=places)


def _summary(
    shards: Sequence[Summary], rows: list[RowResult], older: Baseline | None = None
) -> Summary:
    """Return one summary of all shards.

    Seconds are those of all machines together. Memory is that of the machine that took most.
    """
    chosen = _sum(shard.chosen for shard in shards)
    limits = list(dict.fromkeys(each for shard in shards for each in shard.limits_broken))
    subjects = _subjects(shards)
    fields = dict(shards[0]) | {"subjects": subjects}
    compared = older.compared(rows, fields) if older else None
    if compared and (worse := limit(compared)):
        limits.append(worse)
    unmeasured = [each for shard in shards for each in shard.limits_unmeasured]
    code = exit_code(
        rows,
        sum(chosen.values()),
        limits_broken=bool(limits),
        limits_unmeasured=bool(unmeasured),
    )
    return shards[0].model_copy(
        update={
            "shard": "",
            "shards": len(shards),
            "subjects": subjects,
            "chosen": chosen,
            "judged": _sum(shard.judged for shard in shards),
            "verdicts": {
                verdict: sum(row.verdict is verdict for row in rows) for verdict in Verdict
            },
            "known_failures": sum(row.known is not None for row in rows),
            "seconds": round(sum(shard.seconds for shard in shards), 1),
            "median_seconds": median_seconds(rows),
            "peak_memory_mb": max(shard.peak_memory_mb for shard in shards),
            "cpu_s": cpu_seconds(rows),
            "limits_broken": limits,
            "limits_unmeasured": unmeasured,
            "baseline": compared,
            "exit_code": code,
        }
    )


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total
