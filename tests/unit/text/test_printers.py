"""Every way out of the harness shows hostile text as data, whoever said it."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from histories import Story
from hostile import HOSTILE, is_plain
from rich.console import Console
from rich.table import Table

from upheld.cli import main
from upheld.errors import MachineProblem, UsageProblem
from upheld.history import History, events
from upheld.judging.evidence import last_words
from upheld.report import RowResult, Writer, card, read
from upheld.report.timeline import Lane, Moment, drawn, picture
from upheld.runner.smoke import Check, Watch
from upheld.sweep.points import CrashPoint, Result
from upheld.sweep.report import card as sweep_card
from upheld.trial.recorder import Recorder
from upheld.ui.console import PlainConsole
from upheld.ui.progress import Progress
from upheld.ui.timeleft import Mean
from upheld.verdicts import AdapterBreach, Anomaly, Inconclusive, Verdict, Violated, judged

Printer = Callable[[str], str]


def row(text: str) -> RowResult:
    """Return a result that quotes a text wherever a row can."""
    return RowResult(
        design="d",
        id="G1.a[relay-exactly_once]",
        guarantee="G1",
        name="claim",
        verdict=Verdict.VIOLATED,
        reason=text,
        known=text,
        anomalies=[Anomaly(name="lost", text=text, key=text, source=text, expected=text, got=text)],
        marks=[{"fault": text, "evidence": {"said": text}}],
        log=[f"a  {text}"],
        shrunk=[text],
        seconds=1.0,
        history="h",
    )


def on_card(text: str) -> str:
    """Show a text in each part of a card."""
    return card(row(text), f"upheld run --design {text}")


def in_a_reason(text: str) -> str:
    """Show a text as the reason of a row."""
    return card(row(text).model_copy(update={"anomalies": []}), "again")


def on_the_card_of_a_sweep(text: str) -> str:
    """Show a text in each part of the card of a crash point."""
    point = CrashPoint(phase="p", api="a", number=1, side="after")
    anomalies = [Anomaly(name="lost", text=text)]
    result = Result(cut=point, verdict=Verdict.VIOLATED, reason=text, anomalies=anomalies)
    return sweep_card(result, f"upheld sweep --design {text}", 1)


def in_the_timeline(text: str) -> str:
    """Draw a lane of that name."""
    return "\n".join(drawn([Lane(text, [Moment(1, text, "F")])]))


def in_a_picture(text: str) -> str:
    """Draw a picture, which any reader of XML takes."""
    root = ElementTree.fromstring(picture([Lane(text, [Moment(1, text, "F")])], text))
    return "\n".join(root.itertext())


def as_progress(text: str) -> str:
    """Show a text in every line that progress prints."""
    said = io.StringIO()
    with Progress(PlainConsole(file=said)) as progress:
        progress.begin(2, lambda: None)
        progress.started(text)
        said.write(progress.under_way() + "\n")
        progress.finished(text, "ok")
    return said.getvalue()


def as_a_check(text: str) -> str:
    """Show a text as what a check saw."""
    said = io.StringIO()
    with Progress(Console(file=said, width=10_000)) as progress:
        Watch("d", progress, Mean(1)).finished(Check("says hello", False, text))
    return said.getvalue()


def in_a_problem(text: str) -> str:
    """Say a text in what ends a command."""
    return f"{UsageProblem(text)} {MachineProblem(text)}"


def in_an_outcome(text: str) -> str:
    """Say a text in what ends a row."""
    ends = AdapterBreach(text), Inconclusive(text), Violated.one("stuck", text)
    return "".join(map(str, ends)) + judged(AdapterBreach(text)).reason


PRINTERS: list[Printer] = [
    on_card,
    in_a_reason,
    on_the_card_of_a_sweep,
    in_the_timeline,
    in_a_picture,
    as_progress,
    as_a_check,
    in_a_problem,
    in_an_outcome,
]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("printer", PRINTERS, ids=[each.__name__ for each in PRINTERS])
def test_every_printer(printer: Printer, text: str) -> None:
    """A text moves no cursor, and makes no more lines than a harmless one does."""
    said = printer(text)

    assert is_plain(said)
    assert said.count("\n") == printer("harmless").count("\n")
    assert len(said) < 50_000


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_console_is_the_last_guard(text: str) -> None:
    """A text that nobody has looked at is plain when it is printed, also in a table."""
    said = io.StringIO()
    grid = Table("a")
    grid.add_row(text[:2000])
    console = PlainConsole(file=said)
    console.print(grid)
    console.print(text[:2000], style="red")

    assert is_plain(said.getvalue())


def test_markup_is_text() -> None:
    """Brackets and colons stay, so no text gets a colour, a link or a face of its own."""
    text = HOSTILE["markup"]
    said = io.StringIO()
    PlainConsole(file=said).print(text)

    assert text in as_progress(text)
    assert said.getvalue() == text + "\n"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_report_line(text: str, tmp_path: Path) -> None:
    """A line of `report.jsonl` is one line, and its texts are plain."""
    writer = Writer(tmp_path)
    writer.write(row(text))
    writer.close()
    (line,) = (tmp_path / "report.jsonl").read_text(encoding="utf-8").splitlines()

    assert is_plain(line)
    found = RowResult(**json.loads(line))
    assert is_plain(found.reason + found.anomalies[0].text + str(found.marks[0]["fault"]))
    assert found.id == row(text).id


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_tail_of_a_log(text: str, tmp_path: Path) -> None:
    """The last words of an instance are lines of a card."""
    story = Story()
    story.start()
    (log,) = {e.detail for e in story.history.of(events.Instance) if e.event == "started"} or {""}
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / (log or "a.stderr")).write_bytes(
        text.encode(errors="surrogatepass")[:8000]
    )

    said = "\n".join(last_words(story.history, tmp_path))

    assert said
    assert is_plain(said)


TYPED = {
    name: text.replace("\ud800", "\udc80")  # an argument that is no UTF-8
    for name, text in HOSTILE.items()
    if len(text) < 256 and "\0" not in text and not text.startswith("-")
}


@pytest.mark.parametrize("argument", TYPED.values(), ids=TYPED)
def test_the_command_line(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An argument of the user is quoted in one plain line."""
    for command in (["run", "--design", argument], ["explain", argument], ["judge", argument]):
        assert main(command) == 4
        said = capsys.readouterr().err
        assert is_plain(said)
        assert said.count("\n") == 1


@pytest.mark.parametrize("argument", TYPED.values(), ids=TYPED)
def test_an_option_that_is_none(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The parser's own sentence quotes it as plainly."""
    code = main(["explain", "G1", argument])

    said = capsys.readouterr().err
    assert code == 4
    assert is_plain(said)
    assert said.count("\n") == 1


def test_the_history_keeps_the_text(tmp_path: Path) -> None:
    """A text of a design is recorded as it was, and read back."""
    text = HOSTILE["forged-line"] + HOSTILE["title-and-clear"]
    history = History(path=tmp_path / "h.jsonl")
    story = Story()
    recorder = Recorder(history, 1.0)
    recorder.happened(story, "a", "failed", text)
    history.close()
    (line,) = (tmp_path / "h.jsonl").read_text(encoding="utf-8").splitlines()

    assert is_plain(line)
    assert json.loads(line)["detail"] == text


def test_a_report_is_read_back(tmp_path: Path) -> None:
    """A merged report is written again, and nothing is escaped twice."""
    text = HOSTILE["forged-line"]
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    writer = Writer(tmp_path / "one")
    writer.write(row(text))
    writer.close()
    first = (tmp_path / "one" / "report.jsonl").read_bytes()
    again = Writer(tmp_path / "two")
    again.write(RowResult(**json.loads(first)))
    again.close()

    assert (tmp_path / "two" / "report.jsonl").read_bytes() == first
    with pytest.raises(UsageProblem):
        read(tmp_path / "two" / "report.jsonl")
