"""Compare the oracle `itself` with the models of programs, on the wrong designs.

python tools/itself.py --out /tmp/itself                 judge, and print the table
python tools/itself.py --out /tmp/itself --rounds 0      print the table of what was judged before

`--sample 8` takes at most 8 rows a shape and kind. `--write` puts the table on the page. Without a
sample it puts the verdicts into upheld/data, too, by which the power of a row is known. A row that
has a verdict below the folder is not judged again. The samples are drawn with one seed: a bigger
one holds all rows of a smaller one.

Each wrong design is judged on the rows of relay and ledger in which a model has caught it
(upheld/data/kills.json), with `--oracle itself`. Rows that no application without a model is judged
on, by what they say, are left out. A kind of fault is that of the anomaly that the model found. The
exit code is 1 if the oracle catches less than 80 % of a kind in a shape. Rows that it cannot judge
count as not caught, and are counted beside.

A ledger is judged in two forms. As it is, it skips states, so that the last values of its keys are
compared, and a number in them that increases. The other form sends a state for every record, and
says so.

A design that errs without a fault is left out, and its rows are counted beside: that is wrong
logic, which this oracle cannot see. Its run without a fault is not what the model makes of the same
input, or does not come to its end. So is a row that the oracle upholds, and the model of the
program too: in this run the design did not err.
"""

import argparse
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from pages import DOCS, Part

import upheld
from upheld import commands
from upheld.checks import CHECKS
from upheld.checks.strength import asked
from upheld.history import History, reading
from upheld.history.events import Answered, Application, Claim, Record
from upheld.judging.prerequisites import lacking
from upheld.programs import PROGRAMS, Value
from upheld.programs.itself import Itself, oracles_of
from upheld.protocol.manifest import load
from upheld.reading import loaded, read_bytes
from upheld.report import RowResult
from upheld.spec import catalogue, kills
from upheld.spec.power import BY_ITSELF, BY_LAST_VALUE
from upheld.verdicts import Inconclusive, NotOffered, Verdict

EVERY_STATE: Final = "fold"
LAST_VALUES: Final = "fold that skips states"
SHAPES: Final[Mapping[str, tuple[str, ...]]] = {
    "relay": ("map",),
    "ledger": (EVERY_STATE, LAST_VALUES),
}
KINDS: Final[Mapping[str, str]] = {
    "lost": "loss",
    "behind-commit": "loss",
    "duplicated": "duplicate",
    "ahead-of-commit": "duplicate",
    "reordered": "order",
    "torn": "torn",
    "uncommitted-visible": "torn",
    "phantom": "not restored",
}
# The guarantees on state: what is wrong there was not restored.
OF_STATE: Final = frozenset({"G9", "G25", "G28", "G29", "G32"})
OF_PLACES: Final = ("$.chain", "$.applied")  # what differs between two topics
LEAST: Final = 0.8
SEED: Final = 7
WRONG_LOGIC: Final = "wrong-logic"
NOTHING_STRUCK: Final = "with nothing to strike it"  # in the reason of a run that has no answer
ONE_BY_ONE: Final = '''\
"""Runs a design that sends a state for every record."""

import runpy
import sys

from upheld.impl.plain import Plain

in_chunks = Plain.process


def one_by_one(self, messages):
    for message in messages:
        in_chunks(self, [message])


Plain.process = one_by_one
runpy.run_module(sys.argv[1], run_name="__main__")
'''
PAGE: Final = DOCS / "application.md"
TABLE: Final = Part("<!-- written by tools/itself.py -->\n", "<!-- until here -->\n")


class Place(NamedTuple):
    """The place of a verdict."""

    form: str
    design: str
    row: str

    @property
    def kin(self) -> tuple[str, ...]:
        """The form, the design, the program and the mode.

        Rows that share them have the same run without a fault.
        The id of a row ends in `[ledger-exactly_once]` or `[ledger-exactly_once-after]`.
        """
        program_and_mode = self.row.partition("[")[2].removesuffix("]").split("-")[:2]
        return self.form, self.design, *program_and_mode


class Kill(NamedTuple):
    """A row in which a model has caught a wrong design."""

    design: str
    row: str
    shape: str
    kind: str

    @property
    def place(self) -> Place:
        """The place of its verdict."""
        return Place(form_of(self.shape), self.design, self.row)


class Cell(NamedTuple):
    """The rows of a shape and a kind.

    Attributes:
        rows: How many were judged, of designs that are right without a fault.
        caught: How many of these the oracle catches.
        unsupported: How many of these it cannot judge.
        logic: How many rows there are of designs that err without a fault.
    """

    rows: int
    caught: int
    unsupported: int
    logic: int = 0


class Found(NamedTuple):
    """A row that was judged, and where its history is."""

    row: RowResult
    history: Path


def form_of(shape: str) -> str:
    """Return the form in which designs are judged as a shape, as the name of a folder."""
    return "every-state" if shape == EVERY_STATE else "as-it-is"


def known() -> Iterator[Kill]:
    """Go through what models have caught on programs with one input and one output."""
    for design, found in kills.load().designs.items():
        for row, kill in found.killed.items():
            kind = KINDS.get(kill.anomaly)
            # Without a check, the outputs were wrong while the row waited for them.
            if kind and (not kill.check or any(asked(kill.check))):
                guarantee = row.partition(".")[0]
                kind = "not restored" if guarantee in OF_STATE else kind
                for shape in SHAPES.get(program_of(row), ()):
                    yield Kill(design, row, shape, kind)


def program_of(row: str) -> str:
    """Return the program that the id of a row names."""
    return row.partition("[")[2].partition("-")[0]


def asked_of_applications(all_kills: Iterable[Kill]) -> Iterator[Kill]:
    """Go through the kills in rows that a design compared with itself is judged on."""
    rows = {row.id: row for scenario in catalogue.load().scenarios for row in scenario.rows}
    for kill in all_kills:
        emits = "every-state" if kill.shape == EVERY_STATE else None
        changes = {"compared_with": "itself", "emits": emits}
        design = load(kill.design).model_copy(update=changes)
        row = rows.get(kill.row)
        if row and not any(lacking(row, design)):
            yield kill


def sample(all_kills: Iterable[Kill], most: int) -> list[Kill]:
    """Return at most that many kills of each shape and kind, drawn with a fixed seed."""
    cells: dict[tuple[str, str], list[Kill]] = {}
    for kill in sorted(all_kills):
        cells.setdefault((kill.shape, kill.kind), []).append(kill)
    for kills_of_cell in cells.values():
        random.Random(SEED).shuffle(kills_of_cell)
    return [kill for kills_of_cell in cells.values() for kill in kills_of_cell[:most]]


def judge(all_kills: Iterable[Kill], out: Path, lanes: int) -> None:
    """Judge the wrong designs, compared with themselves, on rows without a verdict."""
    known_verdicts = rows_in(out)
    left: dict[str, list[Kill]] = {}
    for kill in all_kills:
        if kill.place not in known_verdicts:
            left.setdefault(form_of(kill.shape), []).append(kill)
    for form, kills_of_form in left.items():
        folder = out / form
        folder.mkdir(parents=True, exist_ok=True)
        number = next(each for each in count() if not (folder / f"{each}.rows").exists())
        wanted = folder / f"{number}.rows"
        wanted.write_text("".join(f"{kill.design} {kill.row}\n" for kill in kills_of_form))
        command = ["run", "--rows", str(wanted), "--oracle", "itself", "--seed", str(SEED)]
        command += ["--broker", "embedded", "--lanes", str(lanes), "--keep", "all"]
        for name in {kill.design: 0 for kill in kills_of_form}:
            is_as_it_is = form == form_of(LAST_VALUES)
            command += ["--design", name if is_as_it_is else str(of_every_state(name, folder))]
        out_of_form = str(folder / str(number))
        subprocess.run(commands.own_module("upheld", *command, "--out", out_of_form), check=False)


def of_every_state(name: str, folder: Path) -> Path:
    """Write a wrong design that sends a state for every record, and return its folder."""
    shipped = load(name)
    variant = folder / "designs" / name.replace("/", "-")
    variant.mkdir(parents=True, exist_ok=True)
    (variant / "one_by_one.py").write_text(ONE_BY_ONE)
    module = f"upheld.impl.{name.replace('/', '.')}"
    command = f'command = ["{{python}}", "{{dir}}/one_by_one.py", "{module}"]'
    text = (shipped.folder / "design.toml").read_text()
    changed, commands_found = re.subn(r"^command = .*$", command, text, flags=re.MULTILINE)
    assert commands_found == 1, name
    (variant / "design.toml").write_text(f'emits = "every-state"\n{changed}')
    return variant


def save(
    all_kills: Iterable[Kill], found: Mapping[Place, Found], erring: Collection[tuple[str, ...]]
) -> None:
    """Put the verdicts in the place of the shipped ones; wrong logic has none."""
    places = {kill.place: kill.shape for kill in all_kills}
    for path, shapes in ((BY_ITSELF, {"map", EVERY_STATE}), (BY_LAST_VALUE, {LAST_VALUES})):
        matrix = kills.Kills(upheld=upheld.__version__)
        for place in sorted(place for place, shape in places.items() if shape in shapes):
            judged = matrix.designs.setdefault(place.design, kills.Judged())
            if place.kin in erring:
                judged.unproven[place.row] = WRONG_LOGIC
            else:
                row = found[place].row
                anomaly = row.anomalies[0].name if row.anomalies else ""
                judged.add(row.id, row.verdict, kills.Kill(anomaly=anomaly, seconds=row.seconds))
        kills.save(matrix, path)


def table(
    all_kills: Iterable[Kill],
    found: Mapping[Place, Found],
    erring: Collection[tuple[str, ...]],
) -> dict[tuple[str, str], Cell]:
    """Count what the oracle caught of what models caught, by shape and kind.

    Args:
        all_kills: What models caught.
        found: The rows that were judged.
        erring: The kin of the rows whose designs err without a fault.
    """
    counts = Counter[tuple[str, str, str]]()
    cells = set[tuple[str, str]]()
    for kill in all_kills:
        if kill.place.kin in erring:
            counts[kill.shape, kill.kind, WRONG_LOGIC] += 1
        elif kill.place in found and not is_shown(found[kill.place]):
            continue
        elif kill.place in found:
            counts[kill.shape, kill.kind, found[kill.place].row.verdict] += 1
        else:
            continue
        cells.add((kill.shape, kill.kind))
    verdicts = [*Verdict]
    return {
        (shape, kind): Cell(
            sum(counts[shape, kind, verdict] for verdict in verdicts),
            counts[shape, kind, Verdict.VIOLATED],
            counts[shape, kind, Verdict.UNSUPPORTED],
            counts[shape, kind, WRONG_LOGIC],
        )
        for shape, kind in sorted(cells)
    }


def erring_of(found: Mapping[Place, Found]) -> set[tuple[str, ...]]:
    """Return the kin of rows of which one shows that the design errs without a fault."""
    alike: dict[tuple[str, ...], list[Found]] = {}
    for place in sorted(found):
        alike.setdefault(place.kin, []).append(found[place])
    return {kin for kin, rows in alike.items() if any(map(_errs, rows))}


def firsts(all_kills: Iterable[Kill]) -> list[Kill]:
    """Return one row of each kin."""
    return list({kill.place.kin: kill for kill in all_kills}.values())


def _errs(found: Found) -> bool | None:
    """Return whether a design errs without a fault; None if a row does not show it."""
    if found.row.verdict is Verdict.HARNESS_ERROR:
        return NOTHING_STRUCK in found.row.reason or None
    if not found.history.exists():
        return None
    history = reading.read(found.history)
    answers = [
        errs_alone(history, application, oracle)
        for application in history.of(Application)
        for oracle in oracles_of(history, application)
    ]
    known_answers = [answer for answer in answers if answer is not None]
    return any(known_answers) if known_answers else None


def errs_alone(history: History, application: Application, oracle: Itself) -> bool | None:
    """Return whether a run without a fault gives what the model does not.

    It is asked of all visible input. The answer is None if there was no such run. If two such runs
    differ in more than places of the log, one of them at least is wrong.
    """
    program = PROGRAMS[application.program]
    reads = application.topics[program.reads]
    inputs = [r for r in history.of(Record) if r.topic == reads and r.visible]
    answer = oracle.answer_to(inputs)
    if answer is None:
        return None
    if any(not path.startswith(OF_PLACES) for path in answer.unstable):
        return True
    states = program.model(_copies(inputs, answer.topics[1]))
    shown: dict[bytes, list[Value]] = {}
    for record in sorted(history.of(Record), key=lambda each: (each.partition, each.offset)):
        if record.topic == answer.outputs:
            shown.setdefault(record.key or b"", []).append(program.value_of(record))
    if shown.keys() != states.keys():
        return True
    due = {key: [state.value for state in found] for key, found in states.items()}
    if not program.conflates:
        return shown != due
    return any(
        values[-1] != due[key][-1] or not set(values) <= set(due[key])
        for key, values in shown.items()
    )


def is_shown(found: Found) -> bool:
    """Return whether a row shows the mistake of its design to the program's model.

    It is asked of a row that the oracle has upheld, and of the same history.
    """
    if found.row.verdict is not Verdict.UPHELD or not found.history.exists():
        return True
    recorded = reading.read(found.history)
    history = History(
        each.model_copy(update={"contract": None}) if isinstance(each, Application) else each
        for each in recorded.events
        if not isinstance(each, Answered)
    )
    for number, claim in enumerate(history.events):
        if isinstance(claim, Claim) and any(asked(claim.check)):
            with suppress(NotOffered, Inconclusive):
                check = CHECKS[claim.check]
                if check(history.upto(number), claim.application, **claim.arguments):
                    return True
    return False


def _copies(inputs: Iterable[Record], topic: str) -> Iterator[Record]:
    """Go through the records of a copy of an input, at their offsets there."""
    ends = Counter[int]()
    for record in sorted(inputs, key=lambda each: (each.partition, each.offset)):
        yield record._replace(topic=topic, offset=ends[record.partition])
        ends[record.partition] += 1


def rows_in(out: Path) -> dict[Place, Found]:
    """Return the last result of each row below a folder.

    Reports that were cut short count, too.
    """
    found: dict[Place, Found] = {}
    runs = (each for each in out.glob("*/*/") if each.name.isdigit())
    for folder in sorted(runs, key=lambda each: int(each.name)):
        whole = folder / "report.jsonl"
        reports = [whole] if whole.exists() else sorted(folder.glob("lane-*/report.jsonl"))
        for report in reports:
            for line in map(loaded, read_bytes(report).split(b"\n")[:-1]):
                if line["kind"] == "row":
                    row = RowResult(**line)
                    place = Place(folder.parent.name, row.design, row.id)
                    found[place] = Found(row, report.parent / row.history)
    return found


def lines(cells: Mapping[tuple[str, str], Cell]) -> str:
    """Return the table in Markdown."""
    found = [
        "| shape | kind | rows judged | itself catches | share | it cannot judge | wrong logic |\n",
        "|---|---|---|---|---|---|---|\n",
    ]
    for (shape, kind), cell in cells.items():
        share = f"{cell.caught / cell.rows:.0%}" if cell.rows else "-"
        numbers = f"{cell.rows} | {cell.caught} | {share} | {cell.unsupported} | {cell.logic}"
        found.append(f"| {shape} | {kind} | {numbers} |\n")
    return "".join(found)


def main() -> int:
    """Judge what was not judged yet, and print the table."""
    parser = argparse.ArgumentParser(description="Compare the oracle `itself` with models.")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the reports")
    parser.add_argument("--rounds", type=int, default=1, help="0 judges nothing")
    parser.add_argument("--sample", type=int, help="the most rows of a shape and kind")
    parser.add_argument("--lanes", type=int, default=3, help="rows side by side")
    parser.add_argument("--write", action="store_true", help="write the table and the verdicts")
    arguments = parser.parse_args()
    everything = list(known())
    all_kills = list(asked_of_applications(everything))
    print(f"{len(all_kills)} of {len(everything)} rows are judged without a model")
    if arguments.sample is not None:
        all_kills = sample(all_kills, arguments.sample)
    if arguments.rounds:
        judge(firsts(all_kills), arguments.out, arguments.lanes)
        erring = erring_of(rows_in(arguments.out))
        right = [kill for kill in all_kills if kill.place.kin not in erring]
        judge(right, arguments.out, arguments.lanes)
    found = rows_in(arguments.out)
    erring = erring_of(found)
    cells = table(all_kills, found, erring)
    print(lines(cells), end="")
    if arguments.write:
        left = [k for k in all_kills if k.place not in found and k.place.kin not in erring]
        if left:
            raise SystemExit(f"{len(left)} rows are not judged: nothing is written")
        said = ""
        if arguments.sample is None:
            save(all_kills, found, erring)
        else:
            said = f"Of each shape and kind, at most {arguments.sample} rows were drawn.\n\n"
        TABLE.put(PAGE, said + lines(cells))
    return int(any(cell.caught < LEAST * cell.rows for cell in cells.values()))


if __name__ == "__main__":
    sys.exit(main())
