"""The file of a model that a user wrote.

It is found, read and run before a broker starts. It is run as a module of its own, by no name that
an import would find. It may import modules that are installed, and none that lies beside it. So its
digest says all of it.
"""

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.models import Fold, Map, Model
from upheld.reading import read_text

FORM: Final = "FILE.py:NAME"
READS: Final = ("json", "bytes")  # the formats of the input that a model can be given
_SHOWN_CHARS: Final = 200  # of what an import said


class Loaded(NamedTuple):
    """A model, and what it was loaded from.

    Attributes:
        place: Its file and name, such as `orders.py:ORDERS`, as they were written.
        model: The model itself.
        file: The file.
        source: The text of the file.
    """

    place: str
    model: Model
    file: Path
    source: str

    @property
    def sha256(self) -> str:
        """The digest of the file."""
        return digest(self.source)

    @property
    def shape(self) -> str:
        """Its shape: map or fold."""
        return type(self.model).__name__.lower()


def is_place(text: str) -> bool:
    """Return whether a text names a model in a file."""
    file, _, name = text.rpartition(":")
    return file.endswith(".py") and name.isidentifier()


def load_model(place: str, folder: Path, *, where: str) -> Loaded:
    """Return a model of a file.

    Args:
        place: Its file and name, such as `orders.py:ORDERS`.
        folder: The folder from which the path of the file leads.
        where: The beginning of a refusal: the file and the field, or the option.

    Raises:
        UsageProblem: There is no such file or name, the file cannot be run, or the name is no
            model.
    """
    if not is_place(place):
        raise UsageProblem(f"{where} is {place!r:.100}: a model is named as {FORM}.")
    path, _, name = place.rpartition(":")
    file = folder / path
    source = read_text(file, called=f"{where} names {file}, which")
    names = _run(file, source, where)
    if name not in names:
        models = [known for known, each in names.items() if isinstance(each, Map | Fold)]
        raise UsageProblem(
            f"{where} is {place}, and {file} has no {name}; {_models(models)}."
            f"{did_you_mean(name, models)}"
        )
    model = names[name]
    if not isinstance(model, Map | Fold):
        raise UsageProblem(
            f"{where} is {place}, and {name} is a {type(model).__name__}: a model is a Map or a "
            "Fold of upheld.models."
        )
    return Loaded(place, model, file, source)


def models_in(file: Path, *, where: str) -> list[Loaded]:
    """Return every model of a file.

    Raises:
        UsageProblem: There is no such file, it cannot be run, or it has no model.
    """
    source = read_text(file, called=f"{where} names {file}, which")
    found = [
        Loaded(f"{file.name}:{name}", each, file, source)
        for name, each in _run(file, source, where).items()
        if isinstance(each, Map | Fold)
    ]
    if not found:
        raise UsageProblem(f"{where} names {file}, and no name of it is a model.")
    return found


@cache
def model_of(file: Path, place: str) -> Loaded:
    """Return the model that a `design.toml` names.

    It is that of the first time, also if the file changes during a run.

    Raises:
        UsageProblem: It cannot be loaded.
    """
    return load_model(place, file.parent, where=f"{file}: `oracle`")


def digest(source: str) -> str:
    """Return the digest of the text of a model's file."""
    return sha256(source.encode()).hexdigest()


def _models(names: Iterable[str]) -> str:
    known = ", ".join(sorted(names))
    return f"its models are {known}" if known else "no name of it is a model"


@cache
def _run(file: Path, source: str, where: str) -> dict[str, object]:
    """Run a file, and return its names; one text is run once in a process.

    Raises:
        UsageProblem: It cannot be run.
    """
    called = f"upheld_model_{digest(source)[:12]}"
    spec = importlib.util.spec_from_loader(called, loader=None, origin=str(file))
    assert spec
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(file)
    sys.modules[called] = module  # dataclasses look their module up
    try:
        # What it prints is no part of a report.
        with redirect_stdout(sys.stderr), _without(file.parent):
            exec(compile(source, str(file), "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN_CHARS]
        at = _line(error, file)
        raise UsageProblem(f"{where} names {file}, which cannot be run{at}: {said}.") from error
    finally:
        del sys.modules[called]
    return vars(module)


@contextmanager
def _without(folder: Path) -> Iterator[None]:
    """Leave a folder out of the places that imports look in."""
    before = sys.path
    sys.path = [each for each in before if Path(each).resolve() != folder.resolve()]
    try:
        yield
    finally:
        sys.path = before


def _line(error: BaseException, file: Path) -> str:
    """Return the last line of a file that an error came through; empty if there is none."""
    if isinstance(error, SyntaxError):
        return f" (line {error.lineno})"
    lines = list[int]()
    trace = error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == str(file):
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return f" (line {lines[-1]})" if lines else ""
