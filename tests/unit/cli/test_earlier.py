"""Earlier reports that a run looks at: its baseline, and the last of its folder.

No Kafka is started.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import DockerException, ImageNotFound
from reports import summary

from upheld import extras
from upheld.brokers import engine
from upheld.cli import main, run
from upheld.cli.machine import subjects_of
from upheld.errors import MachineProblem, UsageProblem
from upheld.protocol.manifest import load
from upheld.report import RowResult, Writer
from upheld.runner.choice import Choice
from upheld.spec import catalogue
from upheld.supervisor.subjects import subject_of
from upheld.verdicts import Verdict


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Choice, Any]]:
    """Return choice and arguments of runs in turn; each run is interrupted at once."""
    found: list[tuple[Choice, Any]] = []

    def judge(arguments: object, choice: Choice, *_: object) -> Any:
        found.append((choice, arguments))
        return SimpleNamespace(summary=None, interrupted=True)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "judge_in_turn", judge)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        monkeypatch.setenv(name, "")  # a run takes them away, and here they come back
    return found


Judged = Callable[..., Path]


@pytest.fixture
def judged(chosen: list[tuple[Choice, Any]], tmp_path: Path) -> Judged:
    """Return what writes the report of a run of `plain`, and returns its folder.

    All its rows but the first were upheld.
    """
    assert main(["run", "--design", "plain", "--program", "relay", "--depth", "core"]) == 130
    keys = chosen.pop()[0].keys()

    def write(name: str, verdict: Verdict = Verdict.VIOLATED, **changes: Any) -> Path:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        writer = Writer(tmp_path / name)
        for number, key in enumerate(keys):
            row = RowResult(
                design=changes.get("design", "plain"),
                id=key.row_id,
                guarantee=key.row_id.partition(".")[0],
                name="a claim",
                verdict=Verdict.UPHELD if number else verdict,
                seconds=1.0,
            )
            writer.write(row)
        others = {name: value for name, value in changes.items() if name != "design"}
        subjects = {"plain": subject_of(load("plain"))}
        writer.write(summary(**({"subjects": subjects} | others)))
        writer.close()
        return Path(name)

    return write


RUN = ["run", "--design", "plain", "--program", "relay", "--depth", "core"]


def test_a_baseline_reaches_the_run_with_its_seed(
    chosen: list[tuple[Choice, Any]], judged: Judged
) -> None:
    """Its seed is that of the run, and the row that failed there comes first."""
    old = judged("old", seed=99)

    for path in (old, old / "report.jsonl"):
        assert main([*RUN, "--baseline", str(path)]) == 130

        choice, arguments = chosen.pop()
        assert choice.baseline
        assert (choice.baseline.name, arguments.seed) == (str(path), 99)
        assert choice.keys()[0].row_id == next(iter(choice.baseline.rows))[1]
        assert arguments.judged_first == f"; first the row that failed in {path}"
        # What the design has promised and what is missed are the same, as long as it gives up
        # nothing.
        assert choice.baseline.expected["plain"] >= choice.rows["plain"]


LESS = """
name = "plain"
version = "2"
command = ["{python}"]
extends = "plain"
modes = ["exactly_once"]
"""


def test_a_promise_that_is_given_up_is_missed(
    chosen: list[tuple[Choice, Any]],
    judged: Judged,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A row of a mode that the design has no more was upheld, and is not judged."""
    old = judged("old")
    (tmp_path / "design.toml").write_text(LESS)
    options = ["--program", "relay", "--depth", "core", "--baseline", str(old)]
    assert main(["run", ".", *options]) == 4
    assert "the subject of plain is 'sha256:" in capsys.readouterr().err
    assert main(["run", ".", *options, "--across", "subject"]) == 130
    choice = chosen.pop()[0]
    assert choice.baseline
    upheld = [row for row in choice.baseline.rows.values() if row.verdict is Verdict.UPHELD]

    kept = [row for row in upheld if row.id in choice.rows["plain"]]
    found = choice.baseline.compared(kept, choice.alike(7))

    gone = {row.id for row in upheld} - {row.id for row in kept}
    assert gone
    assert {change.id for change in found.worse} == gone


def test_what_the_options_leave_out_is_not_missed(
    chosen: list[tuple[Choice, Any]], judged: Judged
) -> None:
    """A run of one guarantee misses no row of another one."""
    old = judged("old")
    options = ["--guarantee", "G22", "--depth", "core", "--baseline", str(old)]
    assert main(["run", "--design", "plain", *options]) == 130
    choice = chosen.pop()[0]
    assert choice.baseline

    found = choice.baseline.compared([], choice.alike(7))

    assert found.worse
    assert {change.id.partition(".")[0] for change in found.worse} == {"G22"}


def test_a_seed_that_is_given_has_to_be_that_of_the_baseline(
    chosen: list[tuple[Choice, Any]], judged: Judged, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless --across says otherwise, for all or by name."""
    old = judged("old")
    asked = [*RUN, "--baseline", str(old), "--seed", "8"]

    assert main(asked) == 4
    assert "the seed is 7 there and 8 here" in capsys.readouterr().err
    assert main([*asked, "--across", "version,depth"]) == 4
    assert main([*asked, "--across", "seed"]) == 130
    assert main([*asked, "--across"]) == 130
    assert not Path("upheld-out").joinpath("latest", "report.jsonl").read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--baseline", "gone"], "gone cannot be read: No such file"),
        (["--baseline", "cut"], "is cut: it does not end with a summary"),
        (["--baseline", "two"], "holds a line that is none of a report"),
        (["--baseline", "theirs"], "theirs is no baseline of plain: it judged theirs."),
        (["--baseline", "full"], "the depth is 'full' there and 'core' here"),
        (["--baseline", "next"], "the version of upheld is '9.9.9' there and '0.1.0' here"),
        (["--baseline", "part"], "part is the report of shard 1/2 alone"),
        (["--across"], "--across says what may differ from a --baseline, and none is given"),
        (
            ["--baseline", "old", "--across", "sead"],
            "'sead' is none of version, depth, seed, subject",
        ),
        (["--baseline", "old", "--across", ""], "'' is none of version, depth, seed, subject"),
        (["--baseline", ""], "the name of a file or a folder is not empty"),
        (
            ["--baseline", "old", "--shard", "1/2", "--seed", "7"],
            "--baseline is compared with a whole run, and --shard judges a part",
        ),
    ],
)
def test_what_is_no_baseline_is_refused(
    chosen: list[tuple[Choice, Any]],
    judged: Judged,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    says: str,
) -> None:
    """One sentence, exit code 4, and nothing is judged or written."""
    judged("old")
    for name, changes in {
        "theirs": {"design": "theirs"},
        "full": {"depth": "full"},
        "next": {"upheld": "9.9.9"},
        "part": {"shard": "1/2"},
    }.items():
        judged(name, **changes)
    whole = (judged("two") / "report.jsonl").read_text()
    Path("two/report.jsonl").write_text(whole + whole)
    (judged("cut") / "report.jsonl").write_text(whole[: len(whole) // 2].rpartition("\n")[0])
    chosen.clear()
    before = set(Path().rglob("*"))
    capsys.readouterr()

    assert main([*RUN, *options]) == 4

    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert not chosen
    assert set(Path().rglob("*")) == before


def test_what_failed_last_time_is_judged_first(
    chosen: list[tuple[Choice, Any]], judged: Judged
) -> None:
    """The last report is `latest`, or the one in the folder that is named."""
    judged("gate")
    assert main(RUN) == 130
    assert not chosen.pop()[0].first.rows
    assert main([*RUN, "--out", "gate"]) == 130
    first = chosen.pop()[0].first
    assert (first.report, list(first.rows)) == ("gate/report.jsonl", ["plain"])

    judged("upheld-out/latest")
    assert main(RUN) == 130
    choice, arguments = chosen.pop()
    assert arguments.judged_first == "; first the row that failed in upheld-out/latest/report.jsonl"
    assert {choice.keys()[0].row_id} == choice.first.rows["plain"]


@pytest.mark.parametrize("text", ["", "no report", '{"kind":"summary"}\n', "\x00"])
def test_a_last_report_that_cannot_be_read_changes_nothing(
    chosen: list[tuple[Choice, Any]], judged: Judged, text: str
) -> None:
    """The order of the rows is a help alone."""
    (judged("upheld-out/latest") / "report.jsonl").write_text(text)

    assert main(RUN) == 130

    assert not chosen.pop()[0].first.rows


def test_rows_that_are_not_chosen_are_not_judged_first(
    chosen: list[tuple[Choice, Any]], judged: Judged
) -> None:
    """The first line of a run counts no row that it does not judge."""
    judged("upheld-out/latest")

    assert main(["run", "--design", "plain", "--only", "@G22"]) == 130

    assert not chosen.pop()[1].judged_first


def test_a_known_failure_is_not_judged_first(
    chosen: list[tuple[Choice, Any]], judged: Judged
) -> None:
    """It failed no run."""
    file = judged("upheld-out/latest") / "report.jsonl"
    first, *others = file.read_text().splitlines(keepends=True)
    known = json.dumps(json.loads(first) | {"known": "hard link"}) + "\n"
    file.write_text("".join([known, *others]))

    assert main(RUN) == 130

    assert not chosen.pop()[0].first.rows


JAR = """
name = "mine"
version = "2"
command = ["true"]
programs = ["relay"]
modes = ["exactly_once"]
"""
EMPTY = "sha256:" + hashlib.sha256(b"").hexdigest()


def test_a_run_names_what_it_judges(chosen: list[tuple[Choice, Any]], tmp_path: Path) -> None:
    """A jar that `prepare` makes is looked at once it is made."""
    (tmp_path / "design.toml").write_text(f'{JAR}subject = "app.jar"\n')
    assert main(["run", "."]) == 4
    (tmp_path / "design.toml").write_text(f'{JAR}subject = "app.jar"\nprepare = ["true"]\n')
    assert main(["run", "."]) == 130
    choice = chosen.pop()[0]
    assert choice.subjects == {}

    (tmp_path / "app.jar").touch()
    run.note_subjects(choice, choice.manifests, 7)

    assert choice.subjects == {"mine": EMPTY}


def test_a_baseline_of_another_jar_is_refused_once_it_is_made(
    chosen: list[tuple[Choice, Any]], judged: Judged, tmp_path: Path
) -> None:
    """The other parts are compared before anything is made."""
    old = judged("old", design="mine", subjects={"mine": "sha256:ab"})
    (tmp_path / "design.toml").write_text(f'{JAR}subject = "app.jar"\nprepare = ["true"]\n')
    options = ["--program", "relay", "--depth", "core", "--baseline", str(old)]
    assert main(["run", ".", *options, "--seed", "8"]) == 4
    assert main(["run", ".", *options]) == 130
    choice = chosen.pop()[0]
    (tmp_path / "app.jar").touch()

    with pytest.raises(UsageProblem, match=f"is 'sha256:ab' there and '{EMPTY}' here"):
        run.note_subjects(choice, choice.manifests, 7)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({}, "no container engine answers."),
        ({"app:1": "sha256:ab"}, ""),
        ({"app:2": "sha256:cd"}, "the container engine has no image app:1."),
    ],
)
def test_the_image_of_a_container_has_the_digest_of_its_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, str], says: str
) -> None:
    """Without an engine, or without the image, one sentence says so."""

    def get(name: str) -> Any:
        if name not in found:
            raise ImageNotFound(name)
        return SimpleNamespace(id=found[name])

    def engine_of(**_: object) -> Any:
        if not found:
            raise DockerException("no socket")
        return SimpleNamespace(images=SimpleNamespace(get=get))

    monkeypatch.setattr(engine.docker, "from_env", engine_of)
    (tmp_path / "design.toml").write_text(f'{JAR}subject = "image:app:1"\n')
    design = load(str(tmp_path))

    if says:
        with pytest.raises(MachineProblem) as refused:
            subjects_of([design])
        assert str(refused.value) == (f"{design.file}: `subject` is the image 'app:1', and {says}")
    else:
        assert subjects_of([design]) == {"mine": "sha256:ab"}


def test_an_image_without_the_extra_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence names what installs it."""
    monkeypatch.setitem(extras.MODULES, "container", ("no_such_module",))
    (tmp_path / "design.toml").write_text(f'{JAR}subject = "image:app:1"\n')

    with pytest.raises(MachineProblem, match="no_such_module is not installed"):
        subjects_of([load(str(tmp_path))])


def test_rows_after_a_pin_are_not_missed(
    chosen: list[tuple[Choice, Any]], judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run names them, and a baseline that upheld one misses nothing."""
    old = judged("old", design="mine", subjects={"mine": EMPTY})
    found = catalogue.load()
    later = found.guarantees["G11"].model_copy(update={"since": "0.2.0"})
    found = replace(found, guarantees={**found.guarantees, "G11": later})
    monkeypatch.setattr(catalogue, "load", lambda: found)
    Path("app.jar").touch()
    Path("design.toml").write_text(f'{JAR}subject = "app.jar"\nspec = "0.1"\n')
    new = "G11.envelope-survives[relay-exactly_once]"

    assert main(["run", ".", "--depth", "core", "--baseline", str(old)]) == 130

    choice = chosen.pop()[0]
    assert choice.newer == {"mine": [new]}
    assert new not in choice.rows["mine"]
    assert choice.baseline
    assert ("mine", new) in choice.baseline.rows
    assert new not in choice.baseline.expected["mine"]
