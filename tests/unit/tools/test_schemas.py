"""The shipped schemas are those of the models."""

from pathlib import Path

import pytest
import schemas

from upheld.spec.schemas import ENVELOPE, SCHEMAS


def test_the_schemas_are_up_to_date() -> None:
    """`python tools/schemas.py` writes them anew."""
    assert list(schemas.out_of_date()) == []
    assert [*schemas.schemas()] == [name for name in SCHEMAS if name != ENVELOPE]


def test_a_schema_that_is_not_up_to_date_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is missing, says something else, or is of no schema."""
    monkeypatch.setattr(schemas, "FOLDER", tmp_path)
    monkeypatch.setattr(schemas, "path_of", lambda name: tmp_path / f"{name}.schema.json")
    assert schemas.main(["--check"]) == 1
    assert schemas.main([]) == 0
    assert schemas.main(["--check"]) == 0

    (tmp_path / "design.schema.json").write_text("{}")
    (tmp_path / "old.schema.json").write_text("{}")

    assert list(schemas.out_of_date()) == [
        f"{tmp_path}/design.schema.json is out of date",
        f"{tmp_path}/old.schema.json is of no schema",
    ]
