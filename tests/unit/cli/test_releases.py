"""Two releases are named by `--from` and `--to`, or refused in a sentence."""

from pathlib import Path

import pytest

from upheld.cli import main, run
from upheld.runner.choice import Choice

DESIGN = """
name = "mine"
version = "1"
command = ["true"]
programs = ["{program}"]
modes = ["{mode}"]
"""
APPLICATION = """
name = "shop"
version = "1"
modes = ["at_least_once"]
shape = "map"
group = "{application_id}"

[input.orders]
sample = "orders.jsonl"

[output.costs]

[process.app]
command = ["true", "{bootstrap}", "{application_id}", "{input.orders}", "{output.costs}"]
"""
ALERTING = APPLICATION.replace("{output.costs}", "{output.costs} {output.alerts}").replace(
    "[process.app]", "[output.alerts]\n[process.app]"
)


@pytest.fixture(autouse=True)
def judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Choice]:
    """Keep what would be judged, in a folder of its own."""
    chosen: list[Choice] = []

    def judge(_arguments: object, choice: Choice, *_: object) -> None:
        chosen.append(choice)
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "judge_in_turn", judge)
    return chosen


def design(folder: str, text: str = DESIGN, **fields: str) -> str:
    """Write a design, and return its folder."""
    Path(folder).mkdir()
    for name, value in fields.items():
        text = text.replace(f"{{{name}}}", value)
    Path(folder, "design.toml").write_text(text)
    Path(folder, "orders.jsonl").write_text('{"id": 1}\n')
    return folder


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("run --from plain", "add --to"),
        ("run --to plain", "add --from"),
        ("run --from plain --to plain --design plain", "plain is a third design; leave it out"),
        ("run spark --from plain --to plain", "spark is a third design; leave it out"),
        ("run --from plain --to plane", "There is no design at"),
        ("run --from plane --to plain", "There is no design at"),
        ("run --design plain --oracle previous", "name both, as --from N --to N+1"),
        ("run --from plain --to relays", "have no program in common"),
        ("run --from plain --to exact", "have no mode in common"),
        ("run --from plain --to shop", "has no [input.orders], which "),
        ("run --from shop --to alerting", "shop/design.toml has no [output.alerts], which "),
        ("run --from alerting --to shop", "shop/design.toml has no [output.alerts], which "),
    ],
)
def test_what_makes_no_sense(
    line: str, says: str, judged: list[Choice], capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence says what is wrong, the exit code is 4, and nothing is judged."""
    design("plain", program="ledger", mode="at_least_once")
    design("relays", program="relay", mode="at_least_once")
    design("exact", program="ledger", mode="exactly_once")
    design("shop", APPLICATION)
    design("alerting", ALERTING)

    assert main(line.split()) == 4

    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) == 1
    assert not judged


def test_the_rows_on_two_releases(judged: list[Choice]) -> None:
    """They alone are chosen, and the report says what came before, by its digest."""
    main(["run", "--from", "plain", "--to", "plain"])

    (choice,) = judged
    assert choice.rows["plain"]
    assert all(row.startswith("G81.") for row in choice.rows["plain"])
    assert choice.earlier == "plain"
    assert (choice.follows["plain"].name, choice.follows["plain"].version) == ("plain", "1")
    assert choice.follows["plain"].subject == choice.subjects["plain"]


def test_the_release_before_says_what_is_right(judged: list[Choice]) -> None:
    """All rows are judged, beside those on two releases."""
    main(["run", "--from", "plain", "--to", "plain", "--oracle", "previous"])

    (choice,) = judged
    rows = choice.rows["plain"]
    assert {row.startswith("G81.") for row in rows} == {True, False}


def test_a_guarantee_of_two_releases_of_one_design(capsys: pytest.CaptureFixture[str]) -> None:
    """A list says which options judge it."""
    assert main(["list", "--design", "plain", "--guarantee", "G81"]) == 0

    assert "upheld run --from N --to N+1" in " ".join(capsys.readouterr().out.split())
