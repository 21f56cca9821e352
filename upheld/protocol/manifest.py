"""The manifest: what a design says of itself in its `design.toml`, before it runs.

It is read once and never changed. Every mistake that a user can make in it is found here, before a
broker is started. One sentence names the file and the field.
"""

import os
import shutil
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

import upheld
from upheld.commands import PYTHON
from upheld.errors import UsageProblem
from upheld.protocol.capabilities import Capability
from upheld.protocol.messages import Mode

FILE_NAME = "design.toml"
SHIPPED = Path(upheld.__file__).parent / "impl"
INHERITED = (
    "environment",
    "programs",
    "modes",
    "capabilities",
    "atomic",
    "local_state",
    "bytes_beside_table",
)


MUTANT_KEYS = ("sin", "mutant")  # of the table of a design that is wrong on purpose


class ExpectedViolation(BaseModel):
    """The anomaly with which a wrong design has to be caught, and on which scenarios.

    Its control is a scenario that the design must still pass.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenarios: tuple[str, ...] = Field(min_length=1)
    core: tuple[str, ...] = Field(
        default=(), description="the rows that are enough below full depth"
    )
    anomaly: str
    control: str | None = None


class Manifest(BaseModel):
    """A design as declared.

    `command` and `prepare` have their placeholders filled in, and run in `folder` with no shell.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: Path
    name: str = Field(min_length=1, pattern=r"^[\w./-]+$")
    version: str = Field(min_length=1)
    command: tuple[str, ...] = Field(min_length=1)
    prepare: tuple[str, ...] = Field(
        default=(),
        description="run to its end once before a run: what it builds no instance has to",
    )
    environment: dict[str, str] = {}
    programs: tuple[str, ...] = Field(min_length=1)
    modes: tuple[Mode, ...] = Field(min_length=1)
    capabilities: tuple[str, ...] = Field(
        default=(), description=", ".join(f"{each}: {each.sentence}" for each in Capability)
    )
    atomic: Literal["batch", "shard"] = "batch"
    local_state: bool = True
    bytes_beside_table: float = Field(
        default=1.0,
        ge=0,
        description="in topics of its own, keys and values, for each byte of the rows of its table",
    )
    known_failures: dict[str, tuple[str, str]] = Field(
        default={}, description="scenario id -> (reason, link)"
    )
    sin: ExpectedViolation | None = Field(default=None, validation_alias=AliasChoices(*MUTANT_KEYS))

    @property
    def file(self) -> Path:
        """The design.toml that was read."""
        return self.folder / FILE_NAME


def load(spec: str) -> Manifest:
    """Read the manifest at a path, in a folder, or of a shipped design.

    Shipped are `spark`, `plain` and `broken/…`. A design that `extends` another one has the other
    one's value of each of the `INHERITED` fields that it leaves out.

    Raises:
        UsageProblem: There is no such design, or its manifest breaks a rule.
    """
    file = _find(spec)
    fields = _fields(file)
    if "extends" in fields:
        base = _fields(_find(str(fields.pop("extends"))))
        fields = {name: base[name] for name in INHERITED if name in base} | fields
    if "folder" in fields:
        raise UsageProblem(f"{file}: `folder` is not a field of a design; remove it.")
    named = fields.get("known_failures")
    if isinstance(named, str):
        fields["known_failures"] = _known_failures(file, named)
    elif "known_failures" in fields:
        raise UsageProblem(
            f"{file}: `known_failures` is the name of a file of lines “id, reason, link”."
        )
    for name in ("command", "prepare"):
        command = fields.get(name)
        if isinstance(command, list):
            fields[name] = [_filled(argument, file.parent) for argument in command]
    try:
        manifest = Manifest.model_validate({"folder": file.parent, **fields})
    except ValidationError as error:
        raise UsageProblem(f"{file}: {_first(error)}.") from None
    _demand_program(manifest, "command", manifest.command)
    if manifest.prepare:
        _demand_program(manifest, "prepare", manifest.prepare)
    return manifest


def shipped() -> list[str]:
    """Return the names of the designs that come with the package."""
    return sorted(str(file.parent.relative_to(SHIPPED)) for file in SHIPPED.glob(f"**/{FILE_NAME}"))


def _fields(file: Path) -> dict[str, object]:
    """Read the fields of a manifest, as they are written."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{file} is not TOML: {error}.") from None
    except OSError as error:
        raise UsageProblem(f"{file} cannot be read: {error.strerror}.") from None


def _find(spec: str) -> Path:
    """Find the manifest at a path, in a folder, or of a shipped design."""
    given = Path(spec).expanduser().absolute()
    for file in (given, given / FILE_NAME, SHIPPED / spec / FILE_NAME):
        if file.is_file():
            return file
    if given.is_dir():
        raise UsageProblem(
            f"{given} holds no {FILE_NAME}; `upheld new DIR` writes a complete design."
        )
    names = ", ".join(shipped()) or "none"
    raise UsageProblem(
        f"There is no design at {given}, and none shipped as {spec!r}; shipped are: {names}."
    )


def _filled(argument: object, folder: Path) -> object:
    """Fill in the two placeholders.

    Every other brace stays: an argument may be JSON.
    """
    if not isinstance(argument, str):
        return argument
    return argument.replace("{python}", PYTHON).replace("{dir}", str(folder))


def _first(error: ValidationError) -> str:
    """Return the first thing that is wrong: the field, and what it must be."""
    found = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in found["loc"])
    match found["type"]:
        case "missing":
            return f"the field `{field}` is missing"
        case "extra_forbidden":
            is_of_mutant = field.partition(".")[0] in MUTANT_KEYS and "." in field
            known = ExpectedViolation.model_fields if is_of_mutant else Manifest.model_fields
            names = ", ".join(name for name in (*known, "extends") if name != "folder")
            return f"`{field}` is not a field of a design; known are {names}"
        case _:
            must = (found["msg"][0].lower() + found["msg"][1:]).replace("tuple", "list")
            return f"`{field}` is {found['input']!r}: {must}"


def _known_failures(manifest_file: Path, name: str) -> dict[str, tuple[str, str]]:
    """Read a file of lines *id, reason, link* into id -> (reason, link).

    A reason may hold commas.
    """
    file = manifest_file.parent / name
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise UsageProblem(
            f"{manifest_file}: `known_failures` names {file}, which cannot be read."
        ) from None
    known: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        first, _, rest = line.partition(",")
        middle, _, last = rest.rpartition(",")
        scenario = first.strip()
        reason = middle.strip()
        link = last.strip()
        if not (scenario and reason and link):
            raise UsageProblem(
                f"{file}, line {number}: expected “id, reason, link”, this is {line!r}."
            )
        if scenario in known:
            raise UsageProblem(f"{file}, line {number}: {scenario} is listed twice.")
        known[scenario] = (reason, link)
    return known


def _demand_program(manifest: Manifest, field: str, command: tuple[str, ...]) -> None:
    """Refuse a command that cannot be run, while the user still looks at the screen."""
    program, *arguments = command
    if "/" in program:
        file = manifest.folder / program
        found = file.is_file() and os.access(file, os.X_OK)
    else:
        path = manifest.environment.get("PATH", os.environ.get("PATH"))
        found = shutil.which(program, path=path) is not None
    if not found:
        raise UsageProblem(
            f"{manifest.file}: `{field}` starts with {program}, which cannot be run here."
        )
    script = arguments[0] if program == PYTHON and arguments else "-"
    if not script.startswith("-") and not (manifest.folder / script).exists():
        raise UsageProblem(
            f"{manifest.file}: `{field}` runs {script}, which does not exist in its folder."
        )
