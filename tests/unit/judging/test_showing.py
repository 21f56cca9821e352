"""A violation is shown with its timeline and the few records that show it.

The timeline is drawn in characters and as a picture.
"""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from histories import Story
from stories import duplicated

from upheld.cli import main
from upheld.history.events import Ended, Instance, Mark
from upheld.history.marks import Happening
from upheld.history.reading import read
from upheld.judging.evidence import last_words
from upheld.judging.shrink import SHOWN, shrink
from upheld.report.timeline import COLUMNS, NAMES, drawn, lanes, picture


def crowded() -> Story:
    """Tell fifty entries of two accounts; the last row of one account is there twice."""
    story = Story()
    story.start()
    for number in range(1, 26):
        story.row("bob", number, number, story.entry(bob=1))
        last = story.entry(ada=1)
        story.row("ada", number, number, last)
    story.row("ada", 25, 25, last)
    story.claims("relation")
    return story


class TestTimeline:
    """The timeline shows instances, arrivals, and the place of the anomaly."""

    def test_drawn(self, tmp_path: Path) -> None:
        """Each lane is as wide as any other.

        A death has its sign, and so has the record that the anomaly names.
        """
        history = read(duplicated().recorded(tmp_path / "h.jsonl", "violated"))
        *said, scale = drawn(lanes(history, list(next(history.of(Ended)).anomalies)))

        names = [line[:NAMES].strip() for line in said]
        assert names == ["input", "a", "commits", "output"]
        assert all(len(line) <= NAMES + 1 + COLUMNS for line in [*said, scale])
        assert "X" in said[1]
        assert scale.endswith(" s")

    def test_picture(self, tmp_path: Path) -> None:
        """It is XML that a browser shows, and who points at a death is told."""
        history = read(duplicated().recorded(tmp_path / "h.jsonl", "violated"))
        root = ElementTree.fromstring(picture(lanes(history, []), "G1 <story>"))

        titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
        assert any(title.startswith("killed") for title in titles)
        assert root[0].text == "G1 <story>"

    def test_of_two_applications(self) -> None:
        """Each has lanes of its own."""
        story = Story()
        other = story.beside("at_least_once")
        for each in (story, other):
            each.start()
            each.row("ada", 1, 1, each.entry(ada=1))

        assert [lane.name for lane in lanes(story.history, [])] == [
            *("app input", "app a", "app output"),
            *("other input", "other a", "other output"),
        ]


class TestShrink:
    """The fewest records that show the same anomaly, of the same record."""

    def test_of_many_accounts(self) -> None:
        """Of another account nothing is left; the balance pins all entries of its own."""
        history = crowded().history
        (anomaly,) = crowded().judged("relation")
        shrunk = shrink(history, anomaly, 60)

        assert shrunk
        assert {r.key for r in shrunk.records if r.topic == "app-balances"} == {b"ada"}
        assert len(shrunk.records) == 25 + 2
        head, *lines = shrunk.lines()
        assert head == "27 of 101 records are enough for it, at last"
        assert len(lines) == SHOWN
        assert lines[-1].endswith("shows 25, 25, ('app-entries', 0, 49)")

    def test_nothing_to_leave_out(self) -> None:
        """If every record is needed, or the anomaly concerns none, nothing is said."""
        history = duplicated().history
        (anomaly,) = duplicated().judged("relation")

        assert shrink(history, anomaly, 60) is None
        assert (
            shrink(
                history, anomaly.model_copy(update={"key": None, "source": None, "got": None}), 60
            )
            is None
        )

    def test_a_dead_letter(self) -> None:
        """A record that cannot be read is said to be that, and its letter says why."""
        story = Story(sets_aside=True)
        for _ in range(3):
            record = story.spoiled()
            story.letter(record)
        story.letter(record)
        story.claims("dead-letters")
        shrunk = shrink(story.history, story.judged("dead-letters")[0], 60)

        assert shrunk
        assert [line.split("  ")[-1] for line in list(shrunk.lines())[1:]] == [
            "cannot be read",
            *["is a dead letter: why"] * 2,
        ]

    def test_a_dead_letter_of_kafka_streams(self) -> None:
        """The exception is the reason."""
        story = Story(sets_aside=True)
        for _ in range(3):
            record = story.spoiled()
            story.letter_of_streams(record, exception=b"java.io.IOException")
        story.letter_of_streams(record)
        story.claims("dead-letters")
        shrunk = shrink(story.history, story.judged("dead-letters")[0], 60)

        assert shrunk
        assert "is a dead letter: java.io.IOException" in "\n".join(shrunk.lines())

    def test_an_anomaly_of_another_claim(self) -> None:
        """An anomaly that the claim does not find cannot be shrunk."""
        (anomaly,) = crowded().judged("relation")

        assert shrink(crowded().history, anomaly.model_copy(update={"name": "lost"}), 60) is None


def test_the_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`judge` prints both and the logs' last words, and draws the picture.

    A place that is not there is one sentence, and so are two histories.
    """
    (tmp_path / "history").mkdir()
    path = crowded().recorded(tmp_path / "history" / "h.jsonl", "violated")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.stderr").write_text(
        "first\n" + "\n".join(f"line {n}\n" for n in range(3)) + "sasl.password=x y"
    )

    assert main(["judge", str(path), "--picture", str(tmp_path / "h.svg")]) == 1
    said = capsys.readouterr().out
    assert said.partition("  log       ")[2].startswith(
        "a  line 0\n            a  line 1\n            a  line 2\n"
    )
    assert "a  sasl.password=… y\n" in said
    assert "  shrunk    27 of 101 records are enough for it, at last\n" in said
    assert "  timeline  input" in said
    assert (tmp_path / "h.svg").read_text().startswith("<svg")
    assert main(["judge", str(path), "--picture", str(tmp_path / "nowhere" / "h.svg")]) == 4
    assert main(["judge", str(path), str(path), "--picture", str(tmp_path / "h.svg")]) == 4
    said = capsys.readouterr().err
    assert "cannot be written" in said
    assert "--picture draws one history, and here are 2" in said


def started(log: str) -> Instance:
    """Return the start of an instance that writes to this log."""
    return Instance(at_ms=0, application="app", name="a", event="started", detail=log)


def test_a_log_is_that_of_the_lane(tmp_path: Path) -> None:
    """Lanes number their instances alike, so a history names the folder too."""
    for lane in ("lane-1", "lane-2"):
        (tmp_path / lane / "logs").mkdir(parents=True)
        (tmp_path / lane / "logs" / "a.stderr").write_text(f"of {lane}")
    story = Story()
    story.history.add(started("lane-2/logs/a.stderr"))

    assert list(last_words(story.history, tmp_path)) == ["a  of lane-2"]


def test_a_log_elsewhere_is_not_read(tmp_path: Path) -> None:
    """A history may come from anywhere, and names what it likes."""
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "out").mkdir()
    story = Story()
    story.history.add(started("../secret"))

    assert list(last_words(story.history, tmp_path / "out")) == []


def test_a_log_is_shown_around_the_last_fault(tmp_path: Path) -> None:
    """Its last lines may be of a time when all was over."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.stderr").write_text("".join(f"{n:03}\n" for n in range(100)))
    story = Story()
    story.history.add(started("logs/a.stderr"))
    fault = Happening.DISK_WIPED
    story.history.add(
        Mark(
            at_ms=1,
            code=fault.family,
            happening=fault,
            fault=fault.text,
            evidence={},
            logs={"logs/a.stderr": 200},
        )
    )

    said = [line.removeprefix("a").strip() for line in last_words(story.history, tmp_path)]

    assert " ".join(said) == "048 049 050 051 … 096 097 098 099"
