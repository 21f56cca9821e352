"""The manifest: what a design says of itself in its `design.toml`, before it runs.

It is read once and never changed. Every mistake that a user can make in it is found here, before a
broker is started. One sentence names the file and the field.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
)

import upheld
from upheld.commands import PYTHON, filled
from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.protocol import refusals, subject, waivers
from upheld.protocol.capabilities import Capability
from upheld.protocol.limits import Limit
from upheld.protocol.messages import ComparedWith, Mode, OffsetsMean
from upheld.protocol.model_file import Loaded, model_of
from upheld.protocol.refusals import short
from upheld.protocol.subject import (
    FIXED,
    GROUP,
    ITSELF,
    OF_APPLICATIONS,
    PLAINTEXT,
    Secured,
    Subject,
)
from upheld.protocol.waivers import Waiver
from upheld.reading import exists, is_file, is_folder, read_toml
from upheld.shapes import INSTANCES
from upheld.text import sentence

FILE_NAME = "design.toml"
WRONG: Final = "broken/"  # so begin the names of designs that are wrong on purpose
SHIPPED = Path(upheld.__file__).parent / "impl"
INHERITED = (
    "environment",
    "programs",
    "modes",
    "capabilities",
    "cannot",
    "atomic",
    "local_state",
    "progress",
    "emits",
    "bytes_beside_table",
)


MUTANT_KEYS = ("sin", "mutant")  # of the table of a design that is wrong on purpose
MOST_CHARS: Final = 100  # of a name or a version: they are parts of the names of files
# Of an argument or a variable, and of all of them: Linux starts no program with more.
MOST_BYTES: Final = 100_000
MOST_BYTES_IN_ALL: Final = 1_000_000
# Fields of a manifest that no file has.
HIDDEN: Final = ("folder", "application", "compared_with", "timeouts", "previous")
OF_ADAPTERS: Final = ("command", "programs", "local_state")
ALONE: Final = (Capability.SCALE,)  # what an application can offer without an adapter
BRIDGE: Final = "upheld.bridge"  # the adapter of an application that has none
FOLLOWS: Final = "the release before it: a file beside this one, or the name of a shipped design"
Item = TypeVar("Item")


def _listed_once(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Refuse a list that names something twice."""
    counts = Counter(items)
    for item, count in counts.items():
        if count > 1:
            raise ValueError(f"{item} is listed twice")
    return items


def _without_nul(text: str) -> str:
    """Refuse a text that no program can be started with."""
    if "\0" in text:
        raise ValueError("it holds a NUL, which ends a text for the operating system")
    if len(text.encode()) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    return text


def _variable(name: str) -> str:
    """Refuse a name that no variable can have."""
    if not name or "=" in name:
        raise ValueError("the name of a variable is not empty, and holds no =")
    return _without_nul(name)


def _none_such(what: str, name: str, known: Iterable[str]) -> str:
    """Return the sentences that refuse a name which is none of the known ones."""
    names = list(known)
    return f"there is no {what} {name}; there are {', '.join(names)}.{did_you_mean(name, names)}"


def _known(name: str) -> str:
    """Refuse a capability that the protocol does not have."""
    if name not in set(Capability):
        raise ValueError(_none_such("capability", name, Capability))
    return name


def _limit(name: str) -> str:
    """Refuse a limit that is not in the closed list."""
    if name not in set(Limit):
        raise ValueError(_none_such("limit", name, Limit))
    return name


def _path_inside(name: str) -> str:
    """Refuse a name that leads out of a folder."""
    if not all(part.strip(".") for part in name.split("/")):
        raise ValueError("each part of it between slashes is a name")
    return name


Emits = Literal["every-state"]
Timeouts = Literal["shortened", "deployed"]
Argument = Annotated[str, AfterValidator(_without_nul)]


class ExpectedViolation(BaseModel):
    """The anomaly with which a wrong design has to be caught, and on which scenarios.

    Its control is a scenario that the design must still pass.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenarios: tuple[str, ...] = Field(
        min_length=1, description="scenarios or rows, each of which has to catch it"
    )
    core: tuple[str, ...] = Field(
        default=(), description="the rows that are enough below full depth"
    )
    anomaly: str = Field(description="the name of the anomaly, such as lost")
    control: str | None = Field(
        default=None, description="a scenario or row that the design must still pass"
    )
    follows: str | None = Field(default=None, description=FOLLOWS)


class WrongLine(BaseModel):
    """The one line in which a twin differs from its wrong design.

    Right and wrong are written without the spaces before them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    right: str = Field(min_length=1, description="a line that stands once in the twin's files")
    wrong: str = Field(description="what the wrong design has instead; empty if it lacks the line")
    anomaly: str = Field(description="what the wrong design is caught as, such as lost")


class Twin(BaseModel):
    """A right design once judged wrong, and the line that tells it from a wrong one.

    A twin is judged on its rows alone. At least one row has to catch its wrong design.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: tuple[str, ...] = Field(min_length=1, description="each row has to have the verdict")
    verdict: Literal["upheld", "unsupported"] = Field(
        default="upheld", description="the verdict of each row"
    )
    was: str = Field(description="what it was called before, such as stuck or harness-error")
    line: WrongLine = Field(description="the one line in which its wrong design differs")
    follows: str | None = Field(default=None, description=FOLLOWS)


class Manifest(BaseModel):
    """A design as declared.

    `command` and `prepare` have their placeholders filled in, and run in `folder` with no shell.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: Path
    name: Annotated[str, AfterValidator(_path_inside)] = Field(
        min_length=1,
        max_length=MOST_CHARS,
        pattern=r"^[\w./-]+$",
        description="the name in reports and in names of files",
    )
    version: str = Field(
        min_length=1,
        max_length=MOST_CHARS,
        pattern=r"^\P{Cc}+$",
        description="the version in reports; a design says the same in `hello`",
    )
    command: tuple[Argument, ...] = Field(
        min_length=1,
        description="the program and its arguments, run in the folder of this file without a shell;"
        " {python} is the interpreter of the harness, {dir} the folder",
    )
    prepare: tuple[Argument, ...] = Field(
        default=(),
        description="run to its end once before a run: what it builds no instance has to",
    )
    environment: dict[Annotated[str, AfterValidator(_variable)], Argument] = Field(
        default={}, description="variables of the command's environment"
    )
    programs: Annotated[tuple[str, ...], AfterValidator(_listed_once)] = Field(
        min_length=1, description="the programs that it can run"
    )
    modes: Annotated[tuple[Mode, ...], AfterValidator(_listed_once)] = Field(
        min_length=1, description="the values of Kafka's processing.guarantee that it offers"
    )
    capabilities: Annotated[
        tuple[Annotated[str, AfterValidator(_known)], ...], AfterValidator(_listed_once)
    ] = Field(default=(), description=", ".join(f"{each}: {each.sentence}" for each in Capability))
    cannot: Annotated[
        tuple[Annotated[str, AfterValidator(_limit)], ...], AfterValidator(_listed_once)
    ] = Field(
        default=(),
        description=", ".join(f"{each}: it cannot {each.cannot}" for each in Limit),
    )
    atomic: Literal["batch", "shard"] = Field(
        default="batch",
        description="a batch is made visible by one transaction, or by several, one a shard",
    )
    local_state: bool = Field(
        default=True, description="whether anything is kept in state_dir, the instance's own disk"
    )
    progress: OffsetsMean = Field(
        default="group",
        description=(
            "what the offsets of its consumer group say: group: outputs are done to here; "
            "group-leads: input is read to here, and its outputs come later; none: they are "
            "information, and the truth is elsewhere"
        ),
    )
    emits: Emits | None = Field(
        default=None,
        description="every-state: the outputs skip no state; else they may, if the program says so",
    )
    bytes_beside_table: float = Field(
        default=1.0,
        ge=0,
        allow_inf_nan=False,
        description="in topics of its own, keys and values, for each byte of the rows of its table",
    )
    spec: str | None = Field(
        default=None,
        pattern=r"^\d{1,4}\.\d{1,4}(\.\d{1,4})?$",
        description="a version of upheld: rows that are newer are shown, and not judged",
    )
    subject: Annotated[str, AfterValidator(_without_nul)] | None = Field(
        default=None,
        min_length=1,
        description="what is judged: a file or a folder, or image: and the name of an image",
    )
    known_failures: dict[str, Waiver] = Field(
        default={}, description="id of a scenario or a row -> its waiver"
    )
    application: Subject | None = Field(
        default=None, description="an application without an adapter, from its own tables"
    )
    compared_with: ComparedWith | None = Field(
        default=None,
        description="whose run without a fault says what is right, if --oracle asks for one",
    )
    timeouts: Timeouts = Field(
        default="shortened",
        description="of an application that is not told its timeouts: whether the proxy shortens "
        "those that it asks for, as --timeouts says",
    )
    previous: "Manifest | None" = Field(
        default=None, description="the release before it, if two releases are judged"
    )
    sin: ExpectedViolation | None = Field(
        default=None,
        validation_alias=AliasChoices(*MUTANT_KEYS),
        description="of a design that is wrong on purpose: how it has to be caught",
    )
    twin: Twin | None = Field(
        default=None, description="of a right design once judged wrong: what it has to be called"
    )

    @property
    def file(self) -> Path:
        """The design.toml that was read."""
        return self.folder / FILE_NAME

    @property
    def releases(self) -> "tuple[Manifest, ...]":
        """The release before it, if there is one, and itself."""
        return (self.previous, self) if self.previous else (self,)

    @property
    def answering(self) -> "Manifest":
        """The design whose run without a fault says what is right, if any does."""
        return self.previous if self.previous and self.compared_with == "previous" else self

    @property
    def called(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}"

    @property
    def identity(self) -> str:
        """A text that no other design has, nor another release of the same name."""
        return f"{self.folder} {self.called}"

    def waivers(self, *names: str) -> Iterator[Waiver]:
        """Go through the waivers of these ids, in their order."""
        return (self.known_failures[name] for name in names if name in self.known_failures)

    @property
    def model(self) -> Loaded | None:
        """The model that its application is judged by; None if it has none."""
        if self.application is None or self.application.oracle == ITSELF or self.compared_with:
            return None
        return model_of(self.file, self.application.oracle)

    @property
    def images(self) -> dict[str, str]:
        """The image of each process that runs in a container, by the name of the process."""
        return self.application.images if self.application else {}

    @property
    def untold(self) -> tuple[str, ...]:
        """The timeouts that it asks for by itself, whatever a row sets."""
        return self.application.untold if self.application else ()

    @property
    def security(self) -> Literal["plaintext"] | Secured:
        """How it reaches its broker, as clients name it; an adapter is told by `start`."""
        return self.application.security if self.application else PLAINTEXT

    @property
    def asks_for_a_door(self) -> bool:
        """Whether it reaches a broker in plain text through the proxy alone."""
        return bool(self.untold) or self.security != PLAINTEXT

    @property
    def has_fixed_names(self) -> bool:
        """Whether two rows on one broker would share topics, group and transactional ids."""
        return self.application is not None and self.application.names == FIXED

    def topics(self, application_id: str, roles: Iterable[str]) -> dict[str, str]:
        """Return the names of the topics that take these roles for an application."""
        own = self.application.topics(application_id) if self.application else {}
        return {role: own.get(role, f"{application_id}-{role}") for role in roles}

    def as_deployed(self) -> "Manifest":
        """Return the same design, whose timeouts stay as they are.

        It cannot take the transaction timeout that a row sets, if it is not told.
        """
        lost = [Limit.TRANSACTION_TIMEOUT] if "transaction timeout" in self.untold else []
        update = {
            "timeouts": "deployed",
            "cannot": tuple(dict.fromkeys([*self.cannot, *lost])),
            "previous": self.previous.as_deployed() if self.previous else None,
        }
        return self.model_copy(update=update)

    def may_build(self, program: str) -> bool:
        """Return whether `prepare` may make a program that a command names by a path."""
        return bool(self.prepare) and "/" in program


# The tables of a manifest that only designs of this project have.
TABLES: Final[dict[str, type[BaseModel]]] = {
    **dict.fromkeys(MUTANT_KEYS, ExpectedViolation),
    "twin": Twin,
}


def load(spec: str, assumed: Mapping[str, object] | None = None) -> Manifest:
    """Read the manifest at a path, in a folder, or of a shipped design.

    Shipped are `spark`, `plain` and `broken/…`. A design that `extends` another one has the other
    one's value of each of the `INHERITED` fields that it leaves out.

    Args:
        spec: The path or the name.
        assumed: Fields with their values, in case the file does not have them.

    Raises:
        UsageProblem: There is no such design, or its manifest breaks a rule.
    """
    file = _find(spec)
    fields = {**(assumed or {}), **_fields(file)}
    _demand_fields(file, fields)
    if "process" in fields:
        fields = _with_a_bridge(file, fields)
    if "known_failures" in fields:
        fields["known_failures"] = _known_failures(file, fields["known_failures"])
    for name in ("command", "prepare"):
        command = fields.get(name)
        if isinstance(command, list):
            fields[name] = [_filled(argument, file.parent) for argument in command]
    try:
        manifest = Manifest.model_validate({"folder": file.parent, **fields})
    except ValidationError as error:
        raise UsageProblem(f"{file}: {sentence(_first(error))}") from None
    waivers.demand_comparable(manifest.known_failures, manifest.version, called=str(file))
    for field, command in commands_of(manifest):
        _demand_size(manifest, field, command)
        if field == "prepare" or not manifest.may_build(command[0]):
            demand_program(manifest, field, command)
    return _with_the_release_before(manifest)


def _demand_fields(file: Path, fields: Mapping[str, object]) -> None:
    """Refuse fields that no file has, and one that stands in another table.

    Raises:
        UsageProblem: There is one.
    """
    for name in HIDDEN:
        if name in fields:
            raise UsageProblem(f"{file}: `{name}` is not a field of a design; remove it.")
    if "image" in fields:
        raise UsageProblem(
            f"{file}: `image` is a field of [process.X], of an application without an adapter; an "
            "adapter starts its containers itself."
        )


def _with_the_release_before(manifest: Manifest) -> Manifest:
    """Return a manifest with the release that its [sin] or [twin] says it follows."""
    earlier = next((each.follows for each in (manifest.sin, manifest.twin) if each), None)
    if earlier is None:
        return manifest
    beside = manifest.folder / earlier
    previous = load(str(beside) if is_file(beside) else earlier)
    return manifest.model_copy(update={"previous": previous})


def commands_of(manifest: Manifest) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Go through the commands of a design, each with its field."""
    yield "command", manifest.command
    if manifest.prepare:
        yield "prepare", manifest.prepare
    for name, process in manifest.application.process.items() if manifest.application else ():
        if process.image:  # its command is what the entrypoint of the image is told
            continue
        arguments = (str(_filled(argument, manifest.folder)) for argument in process.command)
        yield f"process.{name}.command", tuple(arguments)


def _with_a_bridge(file: Path, fields: dict[str, object]) -> dict[str, object]:
    """Return the fields of an application without an adapter, which a bridge answers for.

    Raises:
        UsageProblem: A table breaks a rule, or a field belongs to a design with an adapter.
    """
    for name in OF_ADAPTERS:
        if name in fields:
            raise UsageProblem(
                f"{file}: `{name}` is a field of a design with an adapter, and the tables of an "
                "application without one are here too; remove one of them."
            )
    for name in _texts(fields.get("capabilities")):
        if name not in ALONE:
            raise UsageProblem(
                f"{file}: `capabilities` names {name}, which an application cannot offer without "
                f"an adapter; it can offer {', '.join(ALONE)}."
                f"{' [query.X] says how it answers queries.' if name == Capability.QUERY else ''}"
            )
    read = subject.read(file, {name: fields.pop(name) for name in subject.FIELDS if name in fields})
    _demand_group(file, read, fields)
    used = set(read.placeholders())
    cannot = fields.get("cannot", [])
    if isinstance(cannot, list):
        cannot = [*cannot, *(each for each in _limits_of(read) if each not in cannot)]
    programs = tuple(INSTANCES[shape] for shape in OF_APPLICATIONS)
    offered = fields.get("capabilities", [])
    if read.query and isinstance(offered, list):
        fields["capabilities"] = [*offered, Capability.QUERY]
    return fields | {
        "application": read,
        "command": [PYTHON, "-m", BRIDGE, str(file), *programs],
        "programs": programs,
        "cannot": cannot,
        "local_state": "state_dir" in used,
    }


def _limits_of(read: Subject) -> Iterator[Limit]:
    """Go through what an application cannot do by the kind of its names."""
    if read.names == FIXED:
        yield Limit.TOPIC_NAMES
    if read.group is None:
        yield Limit.STATIC_MEMBERSHIP


def _demand_group(file: Path, read: Subject, fields: Mapping[str, object]) -> None:
    """Refuse an application without a group, unless its progress is in none.

    Raises:
        UsageProblem: It names no group, and something in the file is known by a group alone.
    """
    if read.group is not None:
        return
    if fields.get("progress", GROUP) != "none":
        raise UsageProblem(
            f'{file}: the field `group` is missing. Only progress = "none" goes without one: how '
            "far the outputs are is kept elsewhere then, such as in a checkpoint."
        )
    if read.signals.ready == GROUP:
        raise UsageProblem(
            f"{file}: no `group` is named, by which it could be ready; say in [signals] another "
            'sign, such as ready = "log:started".'
        )
    if Capability.SCALE in _texts(fields.get("capabilities")):
        raise UsageProblem(
            f"{file}: `capabilities` names {Capability.SCALE}, and no `group` is named, by which "
            "instances are seen to share the input; remove one, or name the other."
        )


def _texts(value: object) -> list[str]:
    """Return the texts of a list; what is none is refused elsewhere."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def shipped() -> list[str]:
    """Return the names of the designs that come with the package."""
    return sorted(str(file.parent.relative_to(SHIPPED)) for file in SHIPPED.glob(f"**/{FILE_NAME}"))


def _fields(file: Path) -> dict[str, object]:
    """Read the fields of a manifest, with those that it has from another one."""
    fields = read_toml(file)
    if "extends" not in fields:
        return fields
    extended = fields.pop("extends")
    if not isinstance(extended, str):
        raise UsageProblem(f"{file}: `extends` is {short(extended)}: it names one design.")
    base = read_toml(_find(extended))
    return {name: base[name] for name in INHERITED if name in base} | fields


def _find(spec: str) -> Path:
    """Find the manifest at a path, in a folder, or of a shipped design."""
    try:
        given = Path(spec).expanduser().absolute()
    except RuntimeError:
        raise UsageProblem(f"There is no design at {short(spec)}: nobody has that home.") from None
    for file in (given, given / FILE_NAME, SHIPPED / spec / FILE_NAME):
        if is_file(file):
            return file
    if is_folder(given):
        raise UsageProblem(
            f"{given} holds no {FILE_NAME}; `upheld new DIR` writes a complete design."
        )
    names = shipped()
    wrong = [name for name in names if name.startswith(WRONG)]
    right = [name for name in names if name not in wrong]
    raise UsageProblem(
        f"There is no design at {given}, and none shipped as {short(spec)}; shipped are "
        f"{', '.join(right)} and {len(wrong)} that are wrong on purpose, {WRONG}NAME."
        f"{did_you_mean(spec, names)}"
    )


def _filled(argument: object, folder: Path) -> object:
    """Fill in the two placeholders of a design's command."""
    if not isinstance(argument, str):
        return argument
    return filled(argument, {"python": PYTHON, "dir": str(folder)})


def _first(error: ValidationError) -> str:
    """Return the first thing that is wrong: the field, and what it must be."""
    wrong = refusals.first(error)
    field = wrong.field
    match wrong.kind:
        case "missing":
            return f"the field `{field}` is missing"
        case "extra_forbidden":
            table, _, inner = field.partition(".")
            model = TABLES.get(table, Manifest) if inner else Manifest
            known = [name for name in (*model.model_fields, "extends") if name not in HIDDEN]
            guess = did_you_mean(inner or field, known)
            return f"`{field}` is not a field of a design; known are {', '.join(known)}.{guess}"
        case _:
            must = wrong.must.replace("tuple", "list")
            guess = did_you_mean(str(wrong.given), _words(wrong.place))
            return f"`{field}` is {short(wrong.given)}: {sentence(must)}{guess}"


def _words(place: tuple[str, ...]) -> Iterator[str]:
    """Go through the words that a field may have; there are none of a field that is free."""
    table, *inner = place
    if table in TABLES and inner:
        model: type[BaseModel] = TABLES[table]
        table = inner[0]
    else:
        model = Manifest
    if table in model.model_fields:
        yield from _literals(model.model_fields[table].annotation)


def _literals(annotation: object) -> Iterator[str]:
    """Go through the literals of a type."""
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for inner in get_args(annotation):
            yield from _literals(inner)


def _known_failures(manifest_file: Path, name: object) -> dict[str, Waiver]:
    """Read the file of waivers that a manifest names."""
    if not isinstance(name, str):
        raise UsageProblem(
            f"{manifest_file}: `known_failures` is the name of a file of lines “id, reason, link”."
        )
    file = manifest_file.parent / name
    return waivers.read(file, called=f"{manifest_file}: `known_failures` names {file}, which")


def _demand_size(manifest: Manifest, field: str, command: Sequence[str]) -> None:
    """Refuse a command that is too long to be run with its variables."""
    texts = (*command, *manifest.environment, *manifest.environment.values())
    if sum(map(len, map(str.encode, texts))) > MOST_BYTES_IN_ALL:
        raise UsageProblem(
            f"{manifest.file}: `{field}` and `environment` have more than {MOST_BYTES_IN_ALL} "
            "bytes together, with which no program can be started."
        )


def demand_program(manifest: Manifest, field: str, command: tuple[str, ...]) -> None:
    """Refuse a command that cannot be run, while the user still looks at the screen.

    Raises:
        UsageProblem: Its program, or the script that it runs, is not there.
    """
    program, *arguments = command
    if "/" in program:
        file = manifest.folder / program
        found = is_file(file) and os.access(file, os.X_OK)
    else:
        path = manifest.environment.get("PATH", os.environ.get("PATH"))
        found = shutil.which(program, path=path) is not None
    if not found:
        named = program or "no name"
        raise UsageProblem(
            f"{manifest.file}: `{field}` starts with {named}, which cannot be run here."
        )
    script = arguments[0] if program == PYTHON and arguments else "-"
    if not script.startswith("-") and not exists(manifest.folder / script):
        raise UsageProblem(
            f"{manifest.file}: `{field}` runs {script}, which does not exist in its folder."
        )
