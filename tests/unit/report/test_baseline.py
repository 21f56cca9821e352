"""A report as the baseline of another one: what got worse, and what is excused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reports import summary

from upheld.errors import UsageProblem
from upheld.report import RowResult, Writer, exit_code
from upheld.report import baseline as baselines
from upheld.report.annotations import annotations
from upheld.report.badge import badge
from upheld.report.baseline import Baseline, lines, load, worst
from upheld.report.formats import FORMATS, Shown
from upheld.report.junit import text as junit
from upheld.report.matrix import matrix
from upheld.report.messages import result
from upheld.spec import catalogue
from upheld.verdicts import Verdict

UPHELD = Verdict.UPHELD
VIOLATED = Verdict.VIOLATED
INCONCLUSIVE = Verdict.INCONCLUSIVE
UNSUPPORTED = Verdict.UNSUPPORTED
HARNESS_ERROR = Verdict.HARNESS_ERROR
FIELDS: dict[str, object] = {
    "upheld": "0.1.0",
    "depth": "core",
    "seed": 7,
    "subjects": {"mine": "sha256:ab"},
}
KNOWN = catalogue.load()


def row(name: str, verdict: Verdict, **changes: Any) -> RowResult:
    """Return a row of the design `mine`."""
    said: dict[str, Any] = {
        "design": "mine",
        "id": name,
        "guarantee": "G1",
        "name": "a claim",
        "verdict": verdict,
        "seconds": 1.0,
    }
    return RowResult(**(said | changes))


def older(*rows: RowResult, **changes: Any) -> Baseline:
    """Return a baseline of these rows, all of which the run would judge."""
    options = {"across": (), "expected": {"mine": {each.id for each in rows}}} | changes
    return Baseline("last.jsonl", worst(rows), summary(), **options)


@pytest.mark.parametrize("now", [VIOLATED, INCONCLUSIVE, HARNESS_ERROR, UNSUPPORTED, None])
def test_a_row_that_was_upheld_and_is_not_got_worse(now: Verdict | None) -> None:
    """So did a row that was upheld and is not judged; either fails the run."""
    judged = [row("G1.x", now)] if now else []
    before = older(row("G1.x", UPHELD))
    for each in judged:
        before.compare(each)

    found = before.compared(judged, FIELDS)

    (worse,) = found.worse
    assert (worse.id, worse.was, worse.now) == ("G1.x", UPHELD, now)
    assert baselines.limit(found) == "--baseline: 1 row got worse"
    assert not any(each.excused for each in judged)
    assert list(lines(found)) == [
        "beside the baseline last.jsonl: 1 worse, 0 better, 0 new, 0 as bad as there",
        f"worse: mine G1.x was upheld and is {now or 'not judged'}",
    ]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (VIOLATED, VIOLATED),
        (VIOLATED, INCONCLUSIVE),
        (VIOLATED, HARNESS_ERROR),
        (INCONCLUSIVE, INCONCLUSIVE),
        (INCONCLUSIVE, HARNESS_ERROR),
        (HARNESS_ERROR, INCONCLUSIVE),
    ],
)
def test_a_row_that_was_as_bad_is_excused(was: Verdict, now: Verdict) -> None:
    """It fails no run, is no news in any format, and is counted."""
    judged = row("G1.x", now, reason="it is hard")
    before = older(row("G1.x", was))

    before.compare(judged)
    found = before.compared([judged], FIELDS)

    assert (judged.excused, judged.before, found.as_bad, found.worse) == (True, was, 1, [])
    assert exit_code([judged, row("G1.y", UPHELD)], 2) == 0
    assert exit_code([judged], 1) == 0
    assert not list(annotations([judged]))
    assert badge([judged], [summary()])["message"] == "nothing judged (core)"
    assert f"{now}, and {was} in the baseline" in junit([([judged], summary())], [])
    assert result(judged).status == "SKIPPED"
    assert "<details>" not in FORMATS["markdown"].text(shown([judged]))


@pytest.mark.parametrize(
    ("was", "now", "code"),
    [
        (INCONCLUSIVE, VIOLATED, 1),
        (HARNESS_ERROR, VIOLATED, 1),
        (UNSUPPORTED, VIOLATED, 1),
        (UNSUPPORTED, INCONCLUSIVE, 2),
    ],
)
def test_nothing_is_excused_by_less(was: Verdict, now: Verdict, code: int) -> None:
    """A violation is news where nothing was proved, or nothing was offered."""
    judged = row("G1.x", now)
    before = older(row("G1.x", was))

    before.compare(judged)

    assert not judged.excused
    assert [each.id for each in before.compared([judged], FIELDS).worse] == ["G1.x"]
    assert exit_code([judged, row("G1.y", UPHELD)], 2) == code


def test_a_new_row_counts_as_without_a_baseline() -> None:
    """It is named, and fails the run if it is violated."""
    judged = row("G1.x", VIOLATED)
    before = older(row("G1.y", UPHELD))

    before.compare(judged)
    found = before.compared([judged, row("G1.y", UPHELD)], FIELDS)

    assert (found.new, found.worse, judged.before) == (["mine G1.x"], [], None)
    assert exit_code([judged], 1) == 1
    assert list(lines(found))[1:] == ["new: mine G1.x"]


@pytest.mark.parametrize(
    ("was", "now"), [(VIOLATED, UPHELD), (UNSUPPORTED, UPHELD), (INCONCLUSIVE, UNSUPPORTED)]
)
def test_what_got_better_is_said(was: Verdict, now: Verdict) -> None:
    """A row that was bad and is not got better."""
    found = older(row("G1.x", was)).compared([row("G1.x", now)], FIELDS)

    assert [each.id for each in found.better] == ["G1.x"]
    assert list(lines(found))[1:] == ["better: mine G1.x"]


def test_a_known_failure_is_accepted_on_either_side() -> None:
    """A row that becomes a known failure got no worse; one that is known no more did."""
    accepted = row("G1.x", VIOLATED, known="hard link")
    before = older(accepted)

    assert not older(row("G1.x", UPHELD)).compared([accepted], FIELDS).worse
    assert not before.compared([accepted], FIELDS).worse
    judged = row("G1.x", VIOLATED)
    before.compare(judged)
    assert (judged.excused, judged.fails) == (False, True)
    assert before.compared([judged], FIELDS).worse


def test_a_known_failure_that_is_upheld_fails_whatever_was_before() -> None:
    """The baseline excuses nothing that is upheld."""
    judged = row("G1.x", UPHELD, known="hard link")
    before = older(row("G1.x", UPHELD, known="hard link"))

    before.compare(judged)

    assert (judged.excused, judged.fails) == (False, True)


def test_the_worst_repetition_counts() -> None:
    """A row that was violated once in the baseline may be violated once again."""
    before = older(row("G1.x", VIOLATED), row("G1.x", UPHELD, repetition=1))
    judged = [row("G1.x", UPHELD), row("G1.x", VIOLATED, repetition=1)]
    for each in judged:
        before.compare(each)

    found = before.compared(judged, FIELDS)

    assert (found.worse, found.better, found.as_bad) == ([], [], 1)


def test_what_was_not_asked_for_is_not_missed() -> None:
    """A row that the options leave out, and a row of another design, got no worse."""
    before = older(
        row("G1.x", UPHELD),
        row("G1.y", UPHELD),
        row("G1.z", UPHELD, design="theirs"),
        expected={"mine": {"G1.x"}},
    )

    found = before.compared([row("G1.x", UPHELD)], FIELDS)

    assert (found.worse, found.new) == ([], [])


def test_what_was_not_upheld_is_not_missed() -> None:
    """A row that proved nothing in the baseline is no loss if it is not judged."""
    assert not older(row("G1.x", VIOLATED)).compared([], FIELDS).worse


@pytest.mark.parametrize(
    ("name", "fields", "says"),
    [
        ("version", {"upheld": "9.9.9"}, "the version of upheld is '0.1.0' there and '9.9.9' here"),
        ("depth", {"depth": "full"}, "the depth is 'core' there and 'full' here"),
        ("seed", {"seed": 8}, "the seed is 7 there and 8 here"),
        (
            "subject",
            {"subjects": {"mine": "sha256:cd"}},
            "the subject of mine is 'sha256:ab' there and 'sha256:cd' here",
        ),
        (
            "subject",
            {"subjects": {"mine": ""}},
            "the subject of mine is 'sha256:ab' there and 'unknown' here",
        ),
    ],
)
def test_a_baseline_that_differs_is_refused(name: str, fields: Any, says: str) -> None:
    """One sentence says in what, and how to compare all the same."""
    with pytest.raises(UsageProblem) as refused:
        older().demand_alike(FIELDS | fields)
    assert str(refused.value) == (
        f"last.jsonl is no baseline of this run: {says}. Make them alike, or compare with "
        f"--across {name}."
    )

    crossed = older(across=(name,))
    crossed.demand_alike(FIELDS | fields)
    said = list(lines(crossed.compared([], FIELDS | fields)))
    was_and_is = says.replace("'", "").replace(" is ", " was ").replace(" and ", " and is ")
    assert said[1] == was_and_is


def test_a_subject_that_neither_knows_is_not_alike() -> None:
    """Two that are unknown may be different ones; another design's counts for nothing."""
    before = replace(older(), summary=summary(subjects={"mine": "", "theirs": "sha256:ab"}))

    with pytest.raises(UsageProblem, match="the subject of mine is 'unknown' there and 'unknown'"):
        before.demand_alike(FIELDS | {"subjects": {"mine": ""}})
    replace(before, summary=summary()).demand_alike(FIELDS)


def test_a_baseline_of_other_designs_is_refused() -> None:
    """Nothing of the design could be compared."""
    before = older(row("G1.x", UPHELD), row("G1.x", UPHELD, design="theirs"))

    before.demand_designs(["theirs"])
    with pytest.raises(UsageProblem, match="is no baseline of another: it judged mine, theirs"):
        before.demand_designs(["another"])


def written(folder: Path, *rows: RowResult, **changes: Any) -> Path:
    """Write a report of these rows, and return its folder."""
    writer = Writer(folder)
    for each in rows:
        writer.write(each)
    writer.write(summary(**changes))
    writer.close()
    return folder


def test_a_baseline_is_read_from_a_file_or_a_folder(tmp_path: Path) -> None:
    """Its name is the one that was typed; a partial one is said to be so."""
    folder = written(tmp_path, row("G1.x", UPHELD), partial=True)

    for path in (folder, folder / "report.jsonl"):
        found = load(path)
        assert (found.name, found.designs) == (str(path), ["mine"])
        assert f"the baseline {path}, which is partial: " in next(lines(found.compared([], FIELDS)))


def test_the_report_of_one_shard_is_no_baseline(tmp_path: Path) -> None:
    """It lacks the rows of the others, which would be new."""
    folder = written(tmp_path, row("G1.x", UPHELD), shard="1/2")

    with pytest.raises(UsageProblem, match=r"is the report of shard 1/2 alone"):
        load(folder)


def test_many_rows_that_got_worse_are_counted() -> None:
    """The block stays short."""
    rows = [row(f"G1.x{number}", UPHELD) for number in range(12)]

    said = list(lines(older(*rows).compared([], FIELDS)))

    assert len(said) == 12
    assert said[-1] == "worse: 2 more rows"


def shown(rows: list[RowResult], **changes: Any) -> Shown:
    """Return what formats show of these rows."""
    found = matrix([(rows, summary(**changes))], KNOWN.promises)
    return Shown(found, KNOWN, [Path()])


@pytest.mark.parametrize("name", ["html", "markdown", "json", "junit", "github"])
def test_every_format_says_what_became_of_the_rows(name: str) -> None:
    """The block is among the hints; the page has the older verdict beside each row."""
    judged = row("G1.x", UNSUPPORTED)
    before = older(row("G1.x", UPHELD))
    before.compare(judged)

    text = FORMATS[name].text(shown([judged], baseline=before.compared([judged], FIELDS)))

    assert "mine G1.x was upheld and is unsupported" in text
    assert name != "html" or 'In the baseline: <span class="upheld">upheld' in text
