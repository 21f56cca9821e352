"""A history that is not as it was recorded proves nothing."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from histories import Story, resealed

from upheld.cli import main
from upheld.errors import UsageProblem
from upheld.history.events import Begun, Claim, Ended, Fed, Mark
from upheld.history.marks import Happening
from upheld.history.reading import recording
from upheld.judging.claims import claim_of, sentences_of
from upheld.judging.rejudge import judge
from upheld.report import RowResult
from upheld.spec.catalogue import load
from upheld.spec.gherkin import Row
from upheld.verdicts import Verdict

ROW = "G22.dies-after-a-commit[ledger-exactly_once]"
FOLD = "the visible outputs are the fold of the committed input"
RELATION = "the outputs match the model in order and count under exactly_once"
BROKER = "nothing else changes on the broker"
Lines = list[str]


def row_of(name: str) -> Row:
    """Return a row of the specification that ships."""
    rows = (row for scenario in load().scenarios for row in scenario.rows)
    return next(row for row in rows if row.id == name)


class Told(Story):
    """A run of the row, as the harness records it."""

    def fed(self, records: int) -> None:
        """Note how many records of the input were read."""
        self._tell(Fed(at_ms=0, application=self.name, records={f"{self.reads}-0": records}))

    def struck(self) -> None:
        """Leave the mark of the fault."""
        happening = Happening.AFTER_COMMIT
        self._tell(
            Mark(
                at_ms=0,
                code=happening.family,
                happening=happening,
                fault=happening.text,
                evidence={},
            )
        )

    def says(self, sentence: str) -> None:
        """Make the claim of a sentence."""
        claim = claim_of(sentence)
        assert claim
        self._tell(Claim(check=claim.check, application=self.name, sentence=sentence))


def genuine(path: Path, *, row: str = ROW, claims: tuple[str, ...] | None = None) -> Path:
    """Record an upheld run of the row; the scenario's claims are those of the row."""
    story = Told()
    story.names("app-entries", "app-balances")
    first = story.entry(ada=1)
    second = story.entry(ada=2)
    story.fed(2)
    story.start()
    story.row("ada", 1, 1, first)
    story.struck()
    story.kill()
    story.settled(1)
    story.says(FOLD)
    story.start()
    story.row("ada", 3, 2, second)
    story.says(RELATION)
    story.names("app-entries", "app-balances")
    story.says(BROKER)
    recorded = story.recorded(path)
    begun = story.history.begun.model_copy(
        update={"scenario": row, "claims": sentences_of(row_of(ROW)) if claims is None else claims}
    )
    return resealed(recorded, [begun.line(), *lines_of(recorded)[1:]])


def lines_of(path: Path) -> Lines:
    """Return the lines of a history."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def report_of(path: Path) -> None:
    """Write the report of a run beside a history."""
    result = RowResult(
        design="hand-written",
        id=ROW,
        guarantee="G22",
        name="n",
        verdict=Verdict.UPHELD,
        seconds=1.0,
        history=f"{path.parent.name}/{path.name}",
        history_sha256=recording(path).sha256,
    )
    (path.parents[1] / "report.jsonl").write_text(result.model_dump_json() + "\n")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Record a genuine history with its report beside it."""
    (tmp_path / "history").mkdir()
    recorded = genuine(tmp_path / "history" / "h.jsonl")
    report_of(recorded)
    return recorded


def without(pattern: str, times: int = 99) -> Callable[[Lines], Lines]:
    """Return a change that removes the first lines which hold a pattern."""

    def change(lines: Lines) -> Lines:
        found = [line for line in lines if re.search(pattern, line)][:times]
        assert found
        return [line for line in lines if line not in found]

    return change


def replaced(pattern: str, by: str) -> Callable[[Lines], Lines]:
    """Return a change that replaces a pattern wherever it stands."""

    def change(lines: Lines) -> Lines:
        changed = [re.sub(pattern, by, line) for line in lines]
        assert changed != lines
        return changed

    return change


def moved(pattern: str, to: int) -> Callable[[Lines], Lines]:
    """Return a change that moves the first line with a pattern to another place."""

    def change(lines: Lines) -> Lines:
        line = next(line for line in lines if re.search(pattern, line))
        rest = [each for each in lines if each is not line]
        return [*rest[:to], line, *rest[to:]]

    return change


def with_line_of_another_row(lines: Lines) -> Lines:
    """Append a record of another application at the end of the records."""
    other = next(line for line in lines if '"record"' in line)
    return [*lines[:-1], other.replace("app-", "other-"), lines[-1]]


CHANGES: dict[str, Callable[[Lines], Lines]] = {
    "all records are removed": without('"kind":"record"'),
    "one output is removed": without('"topic":"app-balances"', 1),
    "one input is removed": without('"topic":"app-entries"', 1),
    "two lines are swapped": moved('"kind":"fed"', 3),
    "a claim is relabelled": replaced('"check":"relation"', '"check":"once"'),
    "an argument is added": replaced('"arguments":{}', '"arguments":{"of":1}'),
    "a claim is cut": without('"check":"fold"'),
    "a claim is before the fault": moved('"check":"fold"', 4),
    "the mark is removed": without('"kind":"mark"'),
    "the verdict is another": replaced('"verdict":"upheld"', '"verdict":"unsupported"'),
    "the application id is another": replaced('"application_id":"app"', '"application_id":"x"'),
    "the mode is weaker": replaced('"mode":"exactly_once"', '"mode":"at_least_once"'),
    "a line is doubled": lambda lines: [*lines[:5], *lines[4:]],
    "a line of another row": with_line_of_another_row,
    "the attempt is another": replaced('"attempt":0', '"attempt":1'),
    "a space is put in": lambda lines: [lines[0] + " ", *lines[1:]],
}


def test_what_was_not_altered_is_upheld(path: Path) -> None:
    """The digest, the report and the claims fit, and every check has what it needs."""
    judged = judge(path)

    assert (judged.verdict, judged.exit_code, judged.notes) == ("upheld", 0, [])


@pytest.mark.parametrize("change", CHANGES)
def test_altered_lines_are_refused(
    path: Path, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence names file and lines, and the exit code is that of bad input."""
    path.write_text("\n".join([*CHANGES[change](lines_of(path)), ""]))

    assert main(["judge", str(path)]) == 4
    said = capsys.readouterr().err
    assert said.startswith(f"upheld: {path} was altered: lines ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("change", CHANGES)
def test_the_report_knows_a_digest_that_was_made_anew(path: Path, change: str) -> None:
    """Another digest does not help beside the report of the run."""
    resealed(path, CHANGES[change](lines_of(path)))

    with pytest.raises(UsageProblem, match=r"has another hash for its lines"):
        judge(path)


LEFT: dict[str, tuple[str, str]] = {
    "all records are removed": ("inconclusive", "records of the input as it was fed"),
    "one output is removed": ("violated", "behind-commit"),
    "one input is removed": ("inconclusive", "records of the input as it was fed"),
    "a claim is relabelled": ("refused", "asks the check 'once'"),
    "an argument is added": ("refused", "has other arguments than “"),
    "a claim is cut": ("refused", f"claim 1 is “{RELATION}”"),
    "a claim is before the fault": ("inconclusive", "lacks a start of an instance and a mark"),
    "the mark is removed": ("inconclusive", "lacks a mark of the fault"),
    "the mode is weaker": ("refused", "runs ledger under at_least_once"),
}


@pytest.mark.parametrize("change", LEFT)
def test_a_digest_that_was_made_anew_proves_no_more(tmp_path: Path, change: str) -> None:
    """Without the report the claims and the needs of the checks still tell."""
    path = genuine(tmp_path / "h.jsonl")
    resealed(path, CHANGES[change](lines_of(path)))
    verdict, says = LEFT[change]

    if verdict == "refused":
        with pytest.raises(UsageProblem, match=re.escape(says)):
            judge(path)
        return
    judged = judge(path)
    assert judged.verdict == verdict
    assert says in judged.text


class TestWithoutADigest:
    """A history of a version without digests is judged as it stands."""

    def test_it_is_inconclusive(self, tmp_path: Path) -> None:
        """The verdict is told, with the reason why it proves nothing."""
        path = genuine(tmp_path / "h.jsonl")
        path.write_text(re.sub(r',"digest":.*', "}", path.read_text()))
        judged = judge(path)

        assert (judged.verdict, judged.exit_code) == ("upheld", 2)
        assert judged.text.endswith("it has no digest: it is judged as it stands")

    def test_a_violated_one_stays_red(self, tmp_path: Path) -> None:
        """A violation is not taken back because the history has no digest."""
        path = genuine(tmp_path / "h.jsonl")
        text = re.sub(r',"digest":.*', "}", path.read_text())
        path.write_text("\n".join([*CHANGES["one output is removed"](text.split("\n"))]))

        assert judge(path).exit_code == 1

    def test_a_digest_cannot_be_taken_away_beside_the_report(self, path: Path) -> None:
        """The report states the hash of the lines with their digest."""
        path.write_text(re.sub(r',"digest":.*', "}", path.read_text()))

        with pytest.raises(UsageProblem, match="another hash"):
            judge(path)


class TestOtherVersions:
    """A history of another version of the specification is said to be one."""

    def test_a_row_that_is_gone(self, tmp_path: Path) -> None:
        """Its claims are those that it says it had to make."""
        judged = judge(genuine(tmp_path / "h.jsonl", row="G22.gone[ledger-exactly_once]"))

        assert (judged.verdict, judged.exit_code, judged.notes) == ("upheld", 0, [])

    def test_a_scenario_that_makes_other_claims_now(self, tmp_path: Path) -> None:
        """It is not refused as altered, since its lines are as they were written."""
        judged = judge(genuine(tmp_path / "h.jsonl", claims=(FOLD, RELATION, BROKER)))
        other = genuine(tmp_path / "o.jsonl", claims=(FOLD, RELATION))
        lines = [line for line in lines_of(other) if BROKER not in line]
        changed = judge(resealed(other, lines))

        assert judged.notes == []
        assert (changed.verdict, changed.exit_code) == ("upheld", 2)
        assert "than the version that recorded it" in changed.text

    def test_its_own_claims_were_cut(self, tmp_path: Path) -> None:
        """It states its claims, so that a claim can be missed whatever the version."""
        path = genuine(tmp_path / "h.jsonl", claims=(FOLD, RELATION, BROKER, "it shines"))

        with pytest.raises(UsageProblem, match="the claim “it shines” is missing"):
            judge(path)


class TestReports:
    """A report says what it can, and a bad one says nothing."""

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\xff\xfe",
            b'{"history_sha256"' + b"[" * 100_000,
            b'{"history":"history/h.jsonl","history_sha256":7}',
            b'["history_sha256"]',
            b'{"history":"history/other.jsonl","history_sha256":"0"}',
        ],
    )
    def test_one_that_cannot_be_read(self, path: Path, content: bytes) -> None:
        """The history proves itself by its own digest."""
        (path.parents[1] / "report.jsonl").write_bytes(content)

        assert judge(path).exit_code == 0

    def test_the_history_of_another_row(self, path: Path) -> None:
        """A genuine history in the place of another one is refused."""
        other = Story()
        other.start()
        other.recorded(path, "violated")

        with pytest.raises(UsageProblem, match="another hash"):
            judge(path)

    def test_of_a_run_in_lanes(self, tmp_path: Path) -> None:
        """The report of the run lies above the folder of the lane."""
        (tmp_path / "lane-1" / "history").mkdir(parents=True)
        lane = genuine(tmp_path / "lane-1" / "history" / "h.jsonl")
        row = {"history": "lane-1/history/h.jsonl", "history_sha256": "0" * 64}
        (tmp_path / "report.jsonl").write_text(json.dumps(row))

        with pytest.raises(UsageProblem, match="another hash"):
            judge(lane)


def test_the_others_are_judged_beside_a_refused_one(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A history that is refused hides no verdict of another one."""
    altered = tmp_path / "altered.jsonl"
    altered.write_bytes(path.read_bytes() + b"{}\n")

    assert main(["judge", str(altered), str(path)]) == 4
    said = capsys.readouterr()
    assert said.out.startswith("upheld  G22")
    assert "altered.jsonl" in said.err


def test_a_card_shows_no_file_beside_the_logs(tmp_path: Path) -> None:
    """A history that names a path as an instance's log shows nothing of that file."""
    (tmp_path / "history").mkdir()
    (tmp_path / "logs").mkdir()
    (tmp_path / "secret").write_text("the words of another file\n")
    (tmp_path / "logs" / "link").symlink_to(tmp_path / "secret")
    story = Story()
    for name in ("../secret", str(tmp_path / "secret"), "link", "a\0b"):
        story._happens("a", "started", detail=name)
    anomalies: Any = [{"name": "stuck", "text": "it processes no more"}]
    path = story.recorded(tmp_path / "history" / "h.jsonl", "violated", anomalies=anomalies)

    assert "another file" not in judge(path).text


def test_begun_and_ended_stand_once(path: Path) -> None:
    """Two histories in one file are refused, whatever the digest says."""
    lines = lines_of(path)
    for extra in (0, -1):
        resealed(path, [*lines[:4], re.sub(r',"digest":.*', "}", lines[extra]), *lines[4:]])

        with pytest.raises(UsageProblem, match="line 5 is a second"):
            recording(path)


def test_old_histories_have_no_claims_of_their_own() -> None:
    """Fields that came later have a value that says so."""
    assert Begun.model_fields["claims"].default is None
    assert Ended.model_fields["digest"].default is None
