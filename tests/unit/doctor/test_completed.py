"""A design.toml gets the lines that it lacks, and loses none that it has."""

import tomllib
from pathlib import Path

import pytest

from upheld.doctor.completed import Addition, additions, assumed, completed, shaped
from upheld.doctor.seen import Commits, Group, Outputs, Seen, Topics
from upheld.errors import UsageProblem
from upheld.protocol.manifest import load

TEXT = """\
# the order service
name = "orders"  # as deployed

# its input
[input.orders]
sample = "a.jsonl"

[output.costs]
ignore = ["$.at"]
"""
ROOT = Path(__file__).parents[3]
FOLDER = Path("/srv/order service")


def seen(**fields: object) -> Seen:
    """Return what was seen of an application with a group of its own."""
    common = {
        "application_id": "doctor-1",
        "ready_by": "group",
        "topics": Topics(given={"orders": "i", "costs": "o"}),
        "groups": {"svc-doctor-1": Group(protocol="classic", members=1)},
    }
    return Seen.model_validate(common | fields)


def test_what_is_missing_is_seen() -> None:
    """The mode is that of its commits, and the group has the application's id in it."""
    added = additions(tomllib.loads(TEXT), FOLDER, seen(commits=Commits(by=("txn_offset_commit",))))

    assert [each.line for each in added] == [
        'version = "1"',
        'modes = ["exactly_once"]',
        'shape = "map"',
        'group = "svc-{application_id}"',
    ]


def test_topics_that_it_makes_are_declared() -> None:
    """The given ones are not, nor one whose name is the same for each row."""
    made = ("doctor-1-totals-changelog", "o")
    topics = Topics(given={"orders": "i", "costs": "o"}, created=made)
    lines = [each.line for each in additions(tomllib.loads(TEXT), FOLDER, seen(topics=topics))]
    fixed = topics.model_copy(update={"created": ("totals",)})
    without = [each.line for each in additions(tomllib.loads(TEXT), FOLDER, seen(topics=fixed))]

    assert lines[-1] == 'internal_topics = ["{application_id}-totals-changelog"]'
    assert len(without) == len(lines) - 1


def test_no_group_is_missing_where_progress_is_elsewhere() -> None:
    """An application with a checkpoint may join a group by chance, and need none."""
    tables = tomllib.loads(f'progress = "none"\n{TEXT}')

    assert "group" not in assumed(tables, FOLDER)
    assert [each.name for each in additions(tables, FOLDER, seen())] == [
        "version",
        "modes",
        "shape",
    ]


def test_the_file_of_the_page_needs_no_more(tmp_path: Path) -> None:
    """A reader who begins with it has an application that can be visited."""
    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    text = page.partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "orders.jsonl").write_bytes((ROOT / "examples/orders/orders.jsonl").read_bytes())
    (tmp_path / "app.py").touch()
    (tmp_path / "design.toml").write_text(text)
    tables = tomllib.loads(text)

    assert load(str(tmp_path), assumed(tables, tmp_path)).application is not None
    with pytest.raises(UsageProblem):
        load(str(tmp_path))


def test_a_folder_names_the_application() -> None:
    """A name is a part of names of files."""
    assert assumed({}, FOLDER)["name"] == "order-service"


def test_a_group_that_is_fixed_is_not_written() -> None:
    """No line of design.toml makes it another one for each row."""
    added = additions({}, FOLDER, seen(groups={"svc": Group(protocol="classic", members=1)}))

    assert "group" not in [each.name for each in added]


@pytest.mark.parametrize(
    ("unreadable", "count", "lines"),
    [(3, 3, ['format = "bytes"']), (1, 3, []), (0, 3, []), (0, 0, [])],
)
def test_outputs_none_of_which_is_json_are_bytes(
    unreadable: int, count: int, lines: list[str]
) -> None:
    """If one of them is JSON, the others are mistakes."""
    outputs = {"costs": Outputs(count=count, unreadable=unreadable)}
    added = additions(tomllib.loads(TEXT), FOLDER, seen(outputs=outputs))

    assert [each.line for each in added if each.table] == lines


def test_each_line_that_was_there_stays() -> None:
    """New lines of the top stand above the comment of the first table."""
    added = [
        Addition((), "version", "1"),
        Addition((), "modes", ["exactly_once"]),
        Addition(("output", "costs"), "format", "bytes"),
    ]
    new = completed(TEXT, added)

    assert [line for line in new.splitlines() if line in TEXT.splitlines()] == TEXT.splitlines()
    assert 'as deployed\nversion = "1"\nmodes = ["exactly_once"]\n\n# its input' in new
    assert '[output.costs]\nformat = "bytes"\n' in new


def test_windows_ends_of_lines_stay() -> None:
    """The file is the user's."""
    new = completed(TEXT.replace("\n", "\r\n"), [Addition((), "version", "1")])

    assert new.count("\n") == new.count("\r\n")


@pytest.mark.parametrize(
    "text",
    [
        'name = "a"',
        "",
        'list = [\n["a"],\n["b"]\n]\n[t]\n',
        'text = """\n[no table]\n"""\n[t]\n',
    ],
)
def test_a_line_is_added_where_it_is_of_the_top(text: str) -> None:
    """Brackets of lists and texts begin no table."""
    new = completed(text, [Addition((), "version", "1")])

    assert tomllib.loads(new) == tomllib.loads(text) | {"version": "1"}


def test_a_table_in_one_line_is_left_to_the_user() -> None:
    """One sentence names the line to add."""
    with pytest.raises(UsageProblem, match='format = "bytes"'):
        completed("output = { costs = {} }\n", [Addition(("output", "costs"), "format", "bytes")])


@pytest.mark.parametrize(
    ("count", "shape"),
    [(60, "map"), (8, "fold")],
)
def test_the_shape_is_the_one_that_was_seen(count: int, shape: str) -> None:
    """The findings are those of an application with that shape."""
    was_seen = seen(commits=Commits(due=60), outputs={"costs": Outputs(count=count)})
    added = additions(tomllib.loads(TEXT), FOLDER, was_seen)
    design = load(str(ROOT / "examples" / "orders"))

    assert [each.value for each in added if each.name == "shape"] == [shape]
    assert shaped(design, []) == design
    application = shaped(design, added).application
    assert application
    assert application.shape == shape
