"""The file of a model is found and run, or refused in one sentence."""

import sys
from pathlib import Path

import pytest

from upheld.errors import UsageProblem
from upheld.models import Map
from upheld.protocol.model_file import load_model, models_in

RIGHT = """
from upheld.models import Fold, Map
ORDERS = Map(lambda order: [])
TOTALS = Fold(lambda total, order: (total, []), initial=0)
LIMIT = 7
"""


def written(folder: Path, text: str, name: str = "orders.py") -> Path:
    """Write a file of a model."""
    file = folder / name
    file.write_text(text)
    return file


def refused(folder: Path, place: str = "orders.py:ORDERS") -> str:
    """Return the sentence with which a model is refused, without the folder."""
    with pytest.raises(UsageProblem) as problem:
        load_model(place, folder, where="`oracle`")
    return str(problem.value).replace(f"{folder}/", "")


def test_a_model(tmp_path: Path) -> None:
    """A model has its shape, its place and the digest of its file."""
    written(tmp_path, RIGHT)

    found = load_model("orders.py:ORDERS", tmp_path, where="`oracle`")

    assert isinstance(found.model, Map)
    assert (found.shape, found.place, found.source) == ("map", "orders.py:ORDERS", RIGHT)
    assert load_model("orders.py:TOTALS", tmp_path, where="`oracle`").shape == "fold"
    assert found.sha256 == load_model("orders.py:TOTALS", tmp_path, where="`oracle`").sha256


def test_another_text_has_another_digest(tmp_path: Path) -> None:
    """A file that has changed is loaded anew."""
    written(tmp_path, RIGHT)
    first = load_model("orders.py:ORDERS", tmp_path, where="`oracle`")
    written(tmp_path, RIGHT + "# more\n")

    assert first.sha256 != load_model("orders.py:ORDERS", tmp_path, where="`oracle`").sha256


def test_every_model_of_a_file(tmp_path: Path) -> None:
    """All models of a file are found by their names."""
    file = written(tmp_path, RIGHT)

    found = [each.place for each in models_in(file, where="--model")]

    assert found == ["orders.py:ORDERS", "orders.py:TOTALS"]


def test_a_file_without_a_model(tmp_path: Path) -> None:
    """A file of which no name is a model is refused."""
    file = written(tmp_path, "LIMIT = 7")

    with pytest.raises(UsageProblem, match="no name of it is a model"):
        models_in(file, where="--model")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RIGHT.replace("ORDERS", "ORDER"), "has no ORDERS; its models are ORDER, TOTALS. Did you"),
        ("ORDERS = 7", "and ORDERS is a int: a model is a Map or a Fold of upheld.models."),
        ("x = 1\n1 / 0", "which cannot be run (line 2): ZeroDivisionError: division by zero."),
        ("def (", "which cannot be run (line 1): SyntaxError: invalid syntax"),
        ("raise SystemExit(3)", "which cannot be run (line 1): SystemExit: 3."),
        ("import app", "which cannot be run (line 1): ModuleNotFoundError: No module named 'app'."),
        (
            "from upheld.models import Map\nORDERS = Map(7)",
            "(line 2): TypeError: `step` of a Map is 7, and no function.",
        ),
    ],
)
def test_a_file_that_is_no_model(tmp_path: Path, text: str, said: str) -> None:
    """The sentence names the file, and what is wrong with it."""
    written(tmp_path, text)
    written(tmp_path, "", "app.py")

    assert said in refused(tmp_path)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("none.py:ORDERS", "`oracle` names none.py, which cannot be read: No such file or dir"),
        ("orders.py", "`oracle` is 'orders.py': a model is named as FILE.py:NAME."),
        ("orders.py:a b", "`oracle` is 'orders.py:a b': a model is named as FILE.py:NAME."),
    ],
)
def test_a_place_that_is_none(tmp_path: Path, place: str, said: str) -> None:
    """A file that is not there, and a text that names none, are refused."""
    assert refused(tmp_path, place).startswith(said)


def test_a_file_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is no place to import from, and what it prints is no output."""
    monkeypatch.syspath_prepend(tmp_path)
    written(tmp_path, "", "beside_it.py")
    written(tmp_path, RIGHT + "print('here')\n")
    modules = set(sys.modules)
    places = list(sys.path)

    load_model("orders.py:ORDERS", tmp_path, where="`oracle`")

    assert set(sys.modules) == modules
    assert sys.path == places
    assert capsys.readouterr() == ("", "here\n")
    written(tmp_path, "import beside_it")
    assert "No module named 'beside_it'" in refused(tmp_path)
