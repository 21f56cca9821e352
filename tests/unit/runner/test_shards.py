import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.cli import main
from upheld.errors import UsageProblem
from upheld.report import FORMAT, RowResult, Summary, Writer, read
from upheld.report.baseline import load
from upheld.runner.shards import merge, shard
from upheld.spec import catalogue
from upheld.spec.depths import Share
from upheld.spec.selection import rows, within
from upheld.verdicts import Anomaly, Reason, Verdict

SECONDS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=4), st.floats(0, 100), min_size=4, max_size=40
)

KNOWN = catalogue.load()
REPORTS = Path(__file__).parents[2] / "data" / "reports"  # one of each format that was


def dealt(seconds: dict[str, float], count: int) -> list[set[str]]:
    """Return the rows of each shard of one design."""
    rows = {"plain": set(seconds)}
    return [
        shard(rows, Share(k, count), lambda _, row: seconds[row])["plain"]
        for k in range(1, count + 1)
    ]


@given(SECONDS, st.integers(1, 4))
def test_each_row_is_in_one_shard(seconds: dict[str, float], count: int) -> None:
    """Together the shards are what was chosen, and none of them is empty."""
    shards = dealt(seconds, count)

    assert set.union(*shards) == set(seconds)
    assert sum(map(len, shards)) == len(seconds)
    assert all(shards)


@given(SECONDS, st.integers(1, 4))
def test_shards_take_about_as_long(seconds: dict[str, float], count: int) -> None:
    """Two shards differ by no more than the longest row."""
    loads = [sum(seconds[row] for row in rows) for rows in dealt(seconds, count)]

    assert max(loads) - min(loads) <= max(seconds.values()) + 1e-6


def test_a_shard_is_the_same_on_every_machine() -> None:
    """The order in which rows and designs are known changes no shard.

    Rows that take as long as each other are dealt by name.
    """
    rows = {"a": {"1", "2"}, "b": {"3"}}
    turned = {"b": {"3"}, "a": {"2", "1"}}

    for number in (1, 2):
        assert shard(rows, Share(number, 2), lambda *_: 1.0) == shard(
            turned, Share(number, 2), lambda *_: 1.0
        )
    assert shard(rows, Share(1, 2), lambda *_: 1.0) == {"a": {"1"}, "b": {"3"}}


def test_more_shards_than_rows() -> None:
    """A shard with nothing in it would prove nothing: fewer are to be asked for."""
    with pytest.raises(UsageProblem, match=r"--shard 1/4 asks for 4 shards of 3 rows"):
        shard({"a": {"1", "2", "3"}}, Share(1, 4), lambda *_: 1.0)


def row(row_id: str, verdict: Verdict = Verdict.UPHELD, folder: str = "history") -> RowResult:
    """Return a row's result, with a history."""
    anomalies = [Anomaly(name="lost", text="one is missing")] if verdict is Verdict.VIOLATED else []
    return RowResult(
        design="plain",
        id=row_id,
        guarantee="G1",
        name="a claim",
        verdict=verdict,
        anomalies=anomalies,
        seconds=2.0,
        history=f"{folder}/plain-{row_id}.jsonl",
    )


def written(folder: Path, which: str, rows: list[RowResult], **changes: object) -> Path:
    """Write the output folder of a shard, as a run leaves it."""
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "broker.log").write_text(f"of {which}")
    summary = Summary(
        format=FORMAT,
        partial=False,
        upheld="0.1.0",
        seed=7,
        depth="core",
        shard=which,
        broker="embedded 4.3.1",
        broker_why="asked for",
        versions={},
        design_versions={"plain": "1"},
        promised={"plain": 203},
        chosen={"plain": len(rows)},
        judged={"plain": len(rows)},
        verdicts={},
        known_failures=0,
        untested=[],
        seconds=30.0,
        median_seconds=2.0,
        peak_memory_mb=100 * len(rows),
        exit_code=0,
    )
    writer = Writer(folder)
    for each in rows:
        file = folder / each.history
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(each.id)
        writer.write(each)
    writer.write(summary.model_copy(update=changes))
    writer.close()
    return folder


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """Return two shards of three rows, one of them judged in lanes."""
    first = written(tmp_path / "a", "1/2", [row("G1.x"), row("G1.y")])
    return [first, written(tmp_path / "b", "2/2", [row("G1.z", folder="lane-1/history")])]


def test_two_shards_are_one_report(shards: list[Path], tmp_path: Path) -> None:
    """The report has rows, counts, histories and logs of all shards.

    The order in which they are named changes no row.
    """
    rows, summary = merge(shards, tmp_path / "out", KNOWN)

    assert read(tmp_path / "out" / "report.jsonl") == (rows, summary)
    assert [each.id for each in rows] == ["G1.x", "G1.y", "G1.z"]
    assert (summary.shard, summary.shards, summary.depth) == ("", 2, "core")
    assert (summary.chosen, summary.judged, summary.promised) == (
        {"plain": 3},
        {"plain": 3},
        {"plain": 203},
    )
    assert (summary.seconds, summary.peak_memory_mb, summary.exit_code) == (60.0, 200, 0)
    for each in rows:
        assert (tmp_path / "out" / each.history).read_text() == each.id
    assert (tmp_path / "out" / "logs" / "shard-2" / "broker.log").read_text() == "of 2/2"
    assert (tmp_path / "out" / "junit.xml").read_text().count("<testcase ") == 3
    assert "plain" in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict.VIOLATED, 1),
        (Verdict.HARNESS_ERROR, 3),
        (Verdict.INCONCLUSIVE, 2),
        (Verdict.UNSUPPORTED, 0),
    ],
)
def test_the_exit_code_is_that_of_the_whole(tmp_path: Path, verdict: Verdict, code: int) -> None:
    """As if all rows had been judged on one machine."""
    first = written(tmp_path / "a", "1/2", [row("G1.x")])
    second = written(tmp_path / "b", "2/2", [row("G1.y", verdict)])

    assert merge([first, second], tmp_path / "out", KNOWN)[1].exit_code == code
    assert main(["merge", str(second), str(first), "--out", str(tmp_path / "again")]) == code


def test_a_limit_that_one_shard_broke_fails_the_whole(tmp_path: Path) -> None:
    """A limit that a shard's machine did not hold is not forgotten."""
    first = written(tmp_path / "a", "1/2", [row("G1.x")], limits_broken=["9 s of at most 5 s"])
    second = written(tmp_path / "b", "2/2", [row("G1.y")])

    summary = merge([first, second], tmp_path / "out", KNOWN)[1]

    assert (summary.exit_code, summary.limits_broken) == (1, ["9 s of at most 5 s"])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"upheld": "0.2.0"}, "the version is '0.1.0' in one and '0.2.0' in the other"),
        ({"seed": 8}, "the seed is 7 in one and 8 in the other"),
        ({"depth": "full"}, "the depth is 'core' in one and 'full' in the other"),
        ({"slice": "1/8"}, "the slice is '' in one and '1/8' in the other"),
        ({"broker": "container 4.3.1"}, "the broker is"),
        ({"design_versions": {"plain": "2"}}, "the designs and their versions is"),
        ({"promised": {"plain": 204}}, "the rows that the designs promise is"),
        ({"repeat": 2}, "how often each row is judged is 1 in one and 2 in the other"),
        ({"narrowed": True}, "whether options name what is judged is False in one and True in"),
        ({"partial": True}, "is partial: not every row of its shard was judged"),
        ({"shard": ""}, "is the report of no shard"),
        ({"shard": "1/2"}, "are both shard 1/2"),
        ({"shard": "3/3"}, "Here are shards of 2 and of 3"),
        ({"shard": "4/3"}, "the shard '4/3' is not K/N"),
        (
            {"format": FORMAT + 1},
            f"has format {FORMAT + 1}, and this version reads {FORMAT} at most",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(
    tmp_path: Path, changes: dict[str, object], says: str
) -> None:
    """One sentence says what differs, and nothing is written."""
    first = written(tmp_path / "a", "1/2", [row("G1.x")])
    second = written(tmp_path / "b", "2/2", [row("G1.y")], **changes)

    with pytest.raises(UsageProblem) as refused:
        merge([first, second], tmp_path / "out", KNOWN)

    assert says in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_shard_that_is_missing_is_named(tmp_path: Path) -> None:
    """The numbers of those that are lacking are said."""
    only = written(tmp_path / "a", "2/3", [row("G1.x")])

    with pytest.raises(UsageProblem, match=r"These shards are missing: 1/3, 3/3\."):
        merge([only], tmp_path / "out", KNOWN)


def test_a_row_in_two_shards(tmp_path: Path) -> None:
    """Reports of two runs that look alike are told by the row that both have."""
    first = written(tmp_path / "a", "1/2", [row("G1.x")])
    second = written(tmp_path / "b", "2/2", [row("G1.x")])

    with pytest.raises(UsageProblem, match=r"G1\.x of plain is in two of the reports"):
        merge([first, second], tmp_path / "out", KNOWN)


@pytest.mark.parametrize(
    "content", ["", '{"kind":"row"}\n', "[]\n", '{"kind":"summary"}\n', "\x00"]
)
def test_a_damaged_report(shards: list[Path], tmp_path: Path, content: str) -> None:
    """An empty, cut or strange file is one sentence with its name."""
    (shards[1] / "report.jsonl").write_text(content)

    with pytest.raises(UsageProblem, match=r"b/report\.jsonl"):
        merge(shards, tmp_path / "out", KNOWN)


def test_nothing_is_overwritten(shards: list[Path], tmp_path: Path) -> None:
    """A folder with something in it is left as it is."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")

    with pytest.raises(UsageProblem, match="is not empty, and nothing is overwritten"):
        merge(shards, tmp_path / "out", KNOWN)

    assert [file.name for file in (tmp_path / "out").iterdir()] == ["mine"]


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """Return the report of a whole run: G1.x was violated, two more rows upheld."""
    core = next(row.id for row in rows(KNOWN, within("core")))
    judged = [row("G1.x", Verdict.VIOLATED), row("G1.y"), row(core)]
    return written(tmp_path / "whole", "", judged)


def test_the_whole_is_compared_with_a_baseline(
    tmp_path: Path, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row that was as bad there is excused; one that no shard judged is missed."""
    first = written(tmp_path / "a", "1/2", [row("G1.x", Verdict.VIOLATED)])
    second = written(tmp_path / "b", "2/2", [row("G1.y")])
    out = tmp_path / "out"

    arguments = [str(first), str(second), "--baseline", str(whole), "--out", str(out)]
    assert main(["merge", *arguments]) == 1

    found, summary = read(out / "report.jsonl")
    assert [each.excused for each in found] == [True, False]
    assert summary.limits_broken == ["--baseline: 1 row got worse"]
    said = capsys.readouterr().out
    assert "1 worse, 0 better, 0 new, 1 as bad as there" in said
    assert "was upheld and is not judged" in said


def test_shards_of_a_narrowed_run_miss_nothing(tmp_path: Path, whole: Path) -> None:
    """The names that narrowed it are not known: rows that were judged are compared."""
    first = written(tmp_path / "a", "1/2", [row("G1.x", Verdict.VIOLATED)], narrowed=True)
    second = written(tmp_path / "b", "2/2", [row("G1.y")], narrowed=True)

    older = load(whole)

    assert merge([first, second], tmp_path / "out", KNOWN, older=older)[1].exit_code == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"depth": "full"}, "the depth is 'core' there and 'full' here"),
        ({"design_versions": {"spark": "1"}}, "is no baseline of spark: it judged plain"),
    ],
)
def test_shards_of_another_run_than_the_baseline(
    tmp_path: Path, whole: Path, changes: dict[str, object], says: str
) -> None:
    """They are refused, and nothing is written."""
    only = written(tmp_path / "a", "1/1", [row("G1.x")], **changes)
    out = tmp_path / "out"

    with pytest.raises(UsageProblem, match=says):
        merge([only], out, KNOWN, older=load(whole))
    assert not out.exists()


def test_what_each_machine_built_for_itself_is_unknown(tmp_path: Path) -> None:
    """Shards of one version may have judged other bytes, and no digest names them all."""
    for case, digest in {"alike": "sha256:ab", "other": "sha256:cd"}.items():
        first = written(
            tmp_path / case / "a", "1/2", [row("G1.x")], subjects={"plain": "sha256:ab"}
        )
        second = written(tmp_path / case / "b", "2/2", [row("G1.y")], subjects={"plain": digest})

        summary = merge([first, second], tmp_path / case / "out", KNOWN)[1]

        assert summary.subjects == {"plain": digest if case == "alike" else ""}


def test_merge_prints_the_summary(
    shards: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table and what was counted for a person, the summary for a script."""
    assert main(["merge", *map(str, shards), "--out", str(tmp_path / "out")]) == 0
    assert (
        "3 upheld; judged of promised rows: plain 3 of 203 (core in 2 shards)"
        in capsys.readouterr().out
    )

    assert main(["merge", *map(str, shards), "--json", "--out", str(tmp_path / "again")]) == 0
    assert json.loads(capsys.readouterr().out)["shards"] == 2


@pytest.mark.parametrize("asked", ["0/3", "4/3", "a/b", "1", "1/99999999999"])
def test_no_shard(asked: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It is said before anything is started or written."""
    out = tmp_path / "out"

    assert (
        main(["run", "--design", "plain", "--seed", "1", "--shard", asked, "--out", str(out)]) == 4
    )
    assert f"--shard '{asked}' is not K/N" in capsys.readouterr().err
    assert not out.exists()


def test_shards_share_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    """A seed of its own for each shard would make reports that do not fit together."""
    assert main(["run", "--design", "plain", "--shard", "1/2"]) == 4
    assert "--shard needs a --seed" in capsys.readouterr().err


def test_an_older_row_that_the_machine_could_not_judge_is_known_by_its_text() -> None:
    """A row of a report without codes has the code that the tools leave rows out by."""
    said = "this machine has no Redis to keep a state in: there is no redis-server on PATH"
    old = {"kind": "row", "design": "plain", "id": "G4.x", "guarantee": "G4", "name": "a claim"}

    row = RowResult.model_validate(old | {"verdict": "unsupported", "reason": said, "seconds": 0.1})

    assert row.code is Reason.MACHINE_LACKS


@pytest.mark.parametrize(
    ("number", "depth", "chosen"),
    [(1, "full", 203), (2, "core", 146), (3, "core", 146), (4, "core", 146)],
)
def test_an_older_report_is_read(number: int, depth: str, chosen: int) -> None:
    """A report is read as the version wrote it that had its format.

    The first one promised all the rows that it chose.
    """
    rows, summary = read(REPORTS / f"format-{number}.jsonl")

    assert [row.id for row in rows] == ["G22.dies-after-a-commit[ledger-exactly_once]"]
    assert (summary.format, summary.upheld, summary.depth) == (number, "0.1.0", depth)
    assert (summary.promised, summary.chosen) == ({"plain": 203}, {"plain": chosen})
