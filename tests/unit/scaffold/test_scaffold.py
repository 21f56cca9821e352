"""The files of `upheld new` are whole, short, and editors know their schema."""

import re
from pathlib import Path

from upheld.generators.inputs import made
from upheld.protocol.manifest import load
from upheld.scaffold import new
from upheld.spec.schemas import text_of

LINES_MAX = 120


def test_the_starter_is_short(tmp_path: Path) -> None:
    """Its module has at most 120 lines, blank ones aside.

    So a reader begins with all of it.
    """
    written = new(tmp_path / "mine")

    assert [path.name for path in written] == ["design.toml", "relay.py", "design.schema.json"]
    lines = written[1].read_text(encoding="utf-8").splitlines()
    assert sum(1 for line in lines if line.strip()) <= LINES_MAX


def test_an_application_is_whole(tmp_path: Path) -> None:
    """Its sample makes records, and the app is told each variable that it reads."""
    written = new(tmp_path / "My Shop", is_application=True)

    assert [path.name for path in written][:3] == ["design.toml", "app.py", "orders.jsonl"]
    manifest = load(str(tmp_path / "My Shop"))
    assert manifest.name == "my-shop"
    assert manifest.application
    sends = made(manifest.application.input["orders"], 7)
    assert len({send.value for send in sends}) == len(sends)
    source = written[1].read_text(encoding="utf-8")
    read = set(re.findall(r'os\.environ\["(\w+)"\]', source))
    assert read == manifest.application.process["app"].environment.keys()
    compile(source, "app.py", "exec")


def test_each_line_of_its_description_is_explained(tmp_path: Path) -> None:
    """A user changes it, so that each table and field says what it is for."""
    file, *_ = new(tmp_path / "shop", is_application=True)

    fields = [line for line in file.read_text().splitlines() if re.match(r"[a-z_]+ = ", line)]
    unexplained = {line.partition(" = ")[0] for line in fields if "  # " not in line}
    assert unexplained == {"name", "version", "stop"}


def test_editors_find_the_schema_of_the_starter(tmp_path: Path) -> None:
    """The first line of its design.toml names the schema beside it.

    Taplo and tombi read such a line.
    """
    manifest, *_, schema = new(tmp_path / "mine")

    assert manifest.read_text(encoding="utf-8").startswith(f"#:schema {schema.name}\n")
    assert schema.read_text(encoding="utf-8") == text_of("design")
    assert load(str(manifest)).name == "mine"
