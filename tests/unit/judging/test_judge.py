import json
from pathlib import Path

import pytest
from histories import Story, resealed
from stories import duplicated, right

from upheld.checks import CHECKS
from upheld.cli import main
from upheld.errors import UsageProblem
from upheld.history import History
from upheld.history.events import Ended, Record
from upheld.history.reading import read
from upheld.judging.claims import CLAIMS
from upheld.judging.rejudge import judge
from upheld.lint import step_definitions
from upheld.report import RowResult, card, exit_code
from upheld.spec.catalogue import load
from upheld.verdicts import Anomaly, Verdict, worst_first


class TestVerdicts:
    """A recorded history is judged again with the same verdict."""

    def test_upheld(self, tmp_path: Path) -> None:
        """Every claim passes again."""
        judged = judge(right().recorded(tmp_path / "h.jsonl"))

        assert (judged.verdict, judged.recorded, judged.claims, judged.exit_code) == (
            "upheld",
            "upheld",
            2,
            0,
        )
        assert judged.text == "upheld  G1.story  hand-written  (2 claims)"

    def test_violated(self, tmp_path: Path) -> None:
        """The claim that failed fails again, by the same anomaly.

        The card tells which record.
        """
        judged = judge(duplicated().recorded(tmp_path / "h.jsonl", "violated"))

        assert (judged.verdict, judged.recorded, judged.claims, judged.exit_code) == (
            "violated",
            "violated",
            3,
            1,
        )
        assert [(a.name, a.key, a.source) for a in judged.anomalies] == [
            ("duplicated", "ada", "app-entries-0@0")
        ]
        for said in (
            "VIOLATED  G1.story",
            "duplicated: ada",
            "app-entries-0@0",
            "again     upheld judge",
        ):
            assert said in judged.text

    def test_a_claim_is_judged_on_what_was_before_it(self, tmp_path: Path) -> None:
        """A later event is none of an earlier claim's business."""
        story = right()
        story.row("ada", 1, 1, next(iter(story.history.of(Record))))

        assert judge(story.recorded(tmp_path / "h.jsonl")).verdict == "upheld"

    def test_the_record_disagrees(self, tmp_path: Path) -> None:
        """If a claim fails now that the run upheld, the verdict of now stands.

        Both verdicts are told.
        """
        judged = judge(duplicated().recorded(tmp_path / "h.jsonl"))

        assert (judged.verdict, judged.exit_code) == ("violated", 1)
        assert judged.text.endswith("the run itself recorded: upheld")

    def test_inconclusive(self, tmp_path: Path) -> None:
        """A slow canary is as slow again."""
        story = right()
        story.rests(canary_ms=5000)
        story.claims("promptly")
        judged = judge(story.recorded(tmp_path / "h.jsonl", "inconclusive"))

        assert (judged.verdict, judged.exit_code) == ("inconclusive", 2)
        assert "5000 ms" in judged.text

    @pytest.mark.parametrize(("again", "verdict"), [(1, "violated"), (0, "inconclusive")])
    def test_claims_after_an_inconclusive_one(
        self, tmp_path: Path, again: int, verdict: str
    ) -> None:
        """They are judged as well, and a violation is worse."""
        story = right()
        story.rests(canary_ms=5000)
        story.claims("promptly")
        for _ in range(again):
            story.row("ada", 1, 1, next(iter(story.history.of(Record))))
        story.claims("relation")

        assert judge(story.recorded(tmp_path / "h.jsonl", verdict)).verdict == verdict

    def test_stuck_after_an_inconclusive_claim(self, tmp_path: Path) -> None:
        """The run went on to a claim that holds, and ended without another one."""
        story = right()
        story.rests(canary_ms=5000)
        story.claims("promptly")
        story.claims("relation")
        stuck = (Anomaly(name="stuck", text="it processes no more"),)
        path = story.recorded(tmp_path / "h.jsonl", "violated", anomalies=stuck)

        assert judge(path).anomalies == list(stuck)

    def test_unsupported(self, tmp_path: Path) -> None:
        """A rule that the design does not support leaves the other claims to be judged.

        A violation is worse.
        """
        story = right()
        story.settled(group=False)
        story.claims("below-the-commit")
        assert judge(story.recorded(tmp_path / "h.jsonl", "unsupported")).verdict == "unsupported"

        story.row("ada", 1, 1, next(iter(story.history.of(Record))))
        story.claims("relation")

        assert judge(story.recorded(tmp_path / "h.jsonl", "violated")).verdict == "violated"

    @pytest.mark.parametrize(
        ("verdict", "code"),
        [("violated", 1), ("inconclusive", 2), ("harness-error", 3), ("unsupported", 5)],
    )
    def test_an_end_without_a_claim(self, tmp_path: Path, verdict: str, code: int) -> None:
        """The recorded end of a run without a claim stands, with its reason.

        The run was stuck, had a breach, or missed a mark.
        """
        anomalies = (
            (Anomaly(name="stuck", text="it processes no more"),) if verdict == "violated" else ()
        )
        path = Story().recorded(
            tmp_path / "h.jsonl", verdict, reason="it was so", anomalies=anomalies
        )
        judged = judge(path)

        assert (judged.verdict, judged.exit_code, judged.claims) == (verdict, code, 0)
        assert judged.anomalies == list(anomalies)

    def test_arguments_of_a_claim(self, tmp_path: Path) -> None:
        """A claim is judged with the arguments it had."""
        story = right()
        story.settled(1, stable_ms=100)
        story.claims("released", bound_ms=99)

        assert [
            a.name for a in judge(story.recorded(tmp_path / "h.jsonl", "violated")).anomalies
        ] == ["stuck"]

    def test_the_file_holds_what_was_seen(self, tmp_path: Path) -> None:
        """Keys, values and headers of any bytes come back as they were.

        So do names of any letters.
        """
        story = Story("relay")
        names = ("\u2028", "\x85\n\r", "base64:", "")
        entry = story.entry(
            ada=1, headers=[(n, n.encode()) for n in names] + [("raw", b"\xff\0"), ("none", None)]
        )
        story.copy(entry, key=None)
        story.copy(entry, key=b"\xff")
        path = story.recorded(tmp_path / "h.jsonl")

        assert list(read(path).of(Record)) == list(story.history.of(Record))


class TestBadHistories:
    """A file that is no whole history is refused in one sentence that says what it is."""

    def refused(self, path: Path) -> str:
        """Return the sentence by which a history is refused."""
        with pytest.raises(UsageProblem) as problem:
            judge(path)
        said = str(problem.value)

        assert str(path) in said
        assert "\n" not in said
        return said

    def test_missing(self, tmp_path: Path) -> None:
        """No file, or no file at all."""
        assert "cannot be read" in self.refused(tmp_path / "none.jsonl")
        assert "cannot be read" in self.refused(tmp_path)

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "is empty"),
            (b"\n", "line 1"),
            (b"\xff\xfe", "cannot be read"),
            (b"not json\n", "line 1"),
            (b"[]\n", "line 1"),
            (b'{"kind":"row"}\n', "line 1"),
            (
                b'{"kind":"ended","verdict":"upheld","seconds":1}\n',
                "does not open with the event `begun`",
            ),
        ],
    )
    def test_something_else(self, tmp_path: Path, content: bytes, said: str) -> None:
        """A file of another kind."""
        path = tmp_path / "h.jsonl"
        path.write_bytes(content)

        assert said in self.refused(path)

    def test_cut_anywhere(self, tmp_path: Path) -> None:
        """Wherever a history is cut, in a line or between two, it is refused and says so."""
        path = right().recorded(tmp_path / "h.jsonl")
        whole = path.read_bytes()
        for cut in [
            1,
            len(whole) // 2,
            len(whole) - 2,
            *(i + 1 for i, b in enumerate(whole[:-1]) if b == 10),
        ]:
            path.write_bytes(whole[:cut])

            assert "cut" in self.refused(path)

    def test_cut_by_a_whole_line_end(self, tmp_path: Path) -> None:
        """Only the last line end may be missing."""
        path = right().recorded(tmp_path / "h.jsonl")
        path.write_bytes(path.read_bytes().removesuffix(b"\n"))

        assert judge(path).verdict == "upheld"

    def test_damaged_in_the_middle(self, tmp_path: Path) -> None:
        """A line that is no event is named by its number."""
        path = right().recorded(tmp_path / "h.jsonl")
        lines = path.read_text().split("\n")
        lines[3] = lines[3][:20]
        path.write_text("\n".join(lines))

        assert "line 4 is no event" in self.refused(path)

    def test_no_claim(self, tmp_path: Path) -> None:
        """An upheld history without a claim proves nothing."""
        assert "proves nothing" in self.refused(Story().recorded(tmp_path / "h.jsonl"))

    def test_another_version(self, tmp_path: Path) -> None:
        """Checks, arguments and verdicts that this version does not have are told as such."""
        story = right()
        story.claims("relation", strictly=True)
        assert "another version" in self.refused(story.recorded(tmp_path / "arguments.jsonl"))
        assert "no verdict" in self.refused(
            right().recorded(tmp_path / "verdict.jsonl", "splendid")
        )
        path = right().recorded(tmp_path / "check.jsonl")
        text = path.read_text().replace('"check":"fold"', '"check":"unfold"')
        assert "no check 'unfold'" in self.refused(resealed(path, text.splitlines()))
        path = right().recorded(tmp_path / "program.jsonl")
        text = path.read_text().replace('"program":"ledger"', '"program":"abacus"')
        assert "another version" in self.refused(resealed(path, text.splitlines()))

    @pytest.mark.parametrize("check", sorted(CHECKS))
    def test_what_a_claim_rests_on_is_missing(self, tmp_path: Path, check: str) -> None:
        """A claim whose evidence was edited away is inconclusive, and says so."""
        story = Story()
        story.claims(check)

        judged = judge(story.recorded(tmp_path / "h.jsonl"))

        assert (judged.verdict, judged.exit_code) == ("inconclusive", 2)
        assert f"before the claim '{check}' the history lacks " in judged.text

    def test_the_command(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The command prints the sentence and exits 4.

        A right history prints its verdict and exits 0, also as JSON.
        """
        path = right().recorded(tmp_path / "h.jsonl")
        cut = tmp_path / "cut.jsonl"
        cut.write_bytes(path.read_bytes()[:-20])

        assert main(["judge", str(cut)]) == 4
        assert "cut in its middle" in capsys.readouterr().err
        assert main(["judge", str(path)]) == 0
        assert capsys.readouterr().out.startswith("upheld")
        assert (
            main(["judge", "--json", str(duplicated().recorded(tmp_path / "d.jsonl", "violated"))])
            == 1
        )
        assert json.loads(capsys.readouterr().out)[0]["anomalies"][0]["name"] == "duplicated"


def row(verdict: str, known: str | None = None) -> RowResult:
    """Return one row of a run."""
    return RowResult(
        design="d",
        id="G1.a[ledger-exactly_once]",
        guarantee="G1",
        name="n",
        verdict=Verdict(verdict),
        known=known,
        seconds=1,
    )


UPHELD = row("upheld")
VIOLATED = row("violated")
INCONCLUSIVE = row("inconclusive")
UNSUPPORTED = row("unsupported")
HARNESS_ERROR = row("harness-error")
KNOWN = row("violated", "slow disk")
CURED = row("upheld", "slow disk")


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([UPHELD], 0),
        ([UPHELD, UNSUPPORTED], 0),
        ([UPHELD, KNOWN], 0),
        ([KNOWN], 0),
        ([VIOLATED], 1),
        ([CURED], 1),
        ([UPHELD, VIOLATED, HARNESS_ERROR, INCONCLUSIVE], 1),
        ([CURED, HARNESS_ERROR, INCONCLUSIVE], 1),
        ([UPHELD, HARNESS_ERROR, INCONCLUSIVE], 3),
        ([KNOWN, HARNESS_ERROR], 3),
        ([UPHELD, INCONCLUSIVE], 2),
        ([row("inconclusive", "slow disk")], 2),
        ([row("harness-error", "slow disk")], 3),
        ([row("unsupported", "slow disk"), UPHELD], 0),
        ([], 5),
        ([UNSUPPORTED], 5),
    ],
)
def test_exit_code(rows: list[RowResult], code: int) -> None:
    """A new violation or a cured known failure gives 1.

    It comes before 3 for the harness, which comes before 2 for nothing to say. Otherwise it is 0.
    """
    assert exit_code(rows, len(rows)) == code


@pytest.mark.parametrize(
    ("rows", "code"),
    [([UPHELD], 2), ([VIOLATED], 1), ([HARNESS_ERROR], 3), ([INCONCLUSIVE], 2), ([], 5)],
)
def test_exit_code_of_a_part(rows: list[RowResult], code: int) -> None:
    """Fewer rows than were promised are no green."""
    assert exit_code(rows, len(rows) + 1) == code


def test_exit_code_of_a_broken_limit() -> None:
    """A run over its limits fails, however green."""
    assert exit_code([UPHELD], 1, limits_broken=True) == 1


def test_card() -> None:
    """The card tells the first three anomalies down to the record.

    It counts the others.
    """
    anomaly = Anomaly(
        name="lost", text="ada lacks it", key="ada", source="t-0@7", expected="2", got="1"
    )
    found = {
        "anomalies": [anomaly] * 5,
        "totals": {"lost": 29, "torn": 2},
        "marks": [{"fault": "killed"}],
    }
    said = card(VIOLATED.model_copy(update=found), "do it again")

    assert said.split("\n")[:8] == [
        "VIOLATED  G1.a[ledger-exactly_once]  d",
        "  claim     n",
        "  mark      killed",
        "  anomaly   lost: ada lacks it",
        "    key       ada",
        "    input     t-0@7",
        "    expected  2",
        "    got       1",
    ]
    assert said.split("\n")[-2:] == ["  in all    29 lost, 2 torn", "  again     do it again"]


@pytest.mark.parametrize(
    ("found", "first"),
    [
        ("lost lost torn", "torn"),
        ("lost resurrected duplicated duplicated", "resurrected"),
        ("stale-overwrite resurrected stale-overwrite", "stale-overwrite"),
        ("lost reordered reordered", "reordered"),
        ("lost reordered", "lost"),
    ],
)
def test_worst_first(found: str, first: str) -> None:
    """Values that no input gives come first, then those that undo a newer result.

    The most frequent kind comes next, in an order that no run changes.
    """
    anomalies = worst_first(Anomaly(name=name, text="") for name in found.split())

    assert anomalies[0].name == first


def test_a_history_is_on_disk_as_it_happens(tmp_path: Path) -> None:
    """Events from before a crash of the harness can be read, and are refused as cut."""
    history = History(right().history.events, path=tmp_path / "h.jsonl")
    history.flush()

    with pytest.raises(UsageProblem, match="was cut"):
        read(tmp_path / "h.jsonl")
    history.add(Ended(verdict="upheld", seconds=1))
    history.close()

    assert judge(tmp_path / "h.jsonl").verdict == "upheld"


def test_every_sentence_that_judges_has_its_check() -> None:
    """Each Then is one claim of the table, and each claim stands in a feature."""
    rows = [row for scenario in load().scenarios for row in scenario.rows]
    thens = {step.text for row in rows for step in row.steps if step.type == "then"}
    fitting = {text: [claim for claim in CLAIMS if claim.fits(text)] for text in thens}

    assert {text: claims for text, claims in fitting.items() if len(claims) != 1} == {}
    assert {claim for claims in fitting.values() for claim in claims} == set(CLAIMS)
    assert {claim.check for claim in CLAIMS if claim.is_timed} == {
        "promptly",
        "filled",
        "in-time",
        "stored",
    }


def test_every_claim_is_a_sentence_of_the_steps() -> None:
    """The table has the templates of the Then definitions, word for word."""
    defined = {found.parser.name for found in step_definitions() if found.type == "then"}

    assert {claim.template for claim in CLAIMS} == defined
