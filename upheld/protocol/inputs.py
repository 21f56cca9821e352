"""The description of an input: where its records come from, and their spread.

Records are drawn from samples, a file of JSON lines. Every mistake that a user can make in a
description is found here, before a broker is started. One sentence names the field.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.protocol.json_path import JsonPath
from upheld.reading import is_file
from upheld.text import sentence

Format = Literal["json", "bytes"]
Lines = Literal["values", "records"]
FORMATS: Final[tuple[str, ...]] = get_args(Format)
LINES: Final[tuple[str, ...]] = get_args(Lines)
MOST_RECORDS: Final = 1_000_000
MOST_PARTITIONS: Final = 1_000
MOST_KEYS: Final = 100_000
_SHOWN_CHARS: Final = 100  # of a value that is refused


def _path(given: object) -> object:
    """Read a path; what is no text is left to its own refusal."""
    return JsonPath.read(given) if isinstance(given, str) else given


def _format(given: object) -> object:
    """Refuse a format that there is not, with a guess."""
    if isinstance(given, str) and given not in FORMATS:
        guess = did_you_mean(given, FORMATS)
        raise ValueError(f"there is no such format; there are {', '.join(FORMATS)}.{guess}")
    return given


Place = Annotated[JsonPath, BeforeValidator(_path)]


class Input(BaseModel):
    """An input topic, and what its records are made of.

    The same description and seed make the same bytes in any process.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    topic: str = Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")
    partitions: int = Field(default=4, ge=1, le=MOST_PARTITIONS, strict=True)
    format: Annotated[Format, BeforeValidator(_format)] = Field(
        default="json", description="how a value is written as bytes"
    )
    sample: Path = Field(description="a file of JSON lines, from which records are drawn")
    lines: Lines | None = Field(
        default=None,
        description=(
            "what a line of the sample is: a value, or a record with key, value and headers; else "
            "lines are records if the first one is an object of key and value, perhaps with headers"
        ),
    )
    key: Place | None = Field(
        default=None,
        description="the field that is the key, such as $.account; else the key of the sample",
    )
    keys: int | None = Field(
        default=None,
        ge=1,
        le=MOST_KEYS,
        strict=True,
        description="how many keys there are; those of the sample by default",
    )
    skew: float = Field(
        default=1.1,
        ge=0,
        le=10,
        allow_inf_nan=False,
        description="the exponent of Zipf's law by which keys are drawn; 0 draws all alike",
    )
    unique: Place | None = Field(
        default=None, description="a field that has another value in each record, such as $.id"
    )
    count: int = Field(default=4_000, ge=1, le=MOST_RECORDS, strict=True)
    rate: float = Field(
        default=500.0, gt=0, le=1e6, allow_inf_nan=False, description="records a second"
    )
    aborted_transactions: int = Field(
        default=0,
        ge=0,
        le=1_000,
        strict=True,
        description="how many transactions in between come to nothing; their records come on top",
    )

    @model_validator(mode="after")
    def _demand_sense(self) -> Self:
        """Refuse fields that contradict each other."""
        for is_wrong, said in self._contradictions():
            if is_wrong:
                raise ValueError(said)
        return self

    def _contradictions(self) -> tuple[tuple[bool, str], ...]:
        is_bytes = self.format == "bytes"
        return (
            (is_bytes and self.key is not None, "the format bytes has no field for `key`"),
            (is_bytes and self.unique is not None, "the format bytes has no field for `unique`"),
            (
                self.key is not None and self.key == self.unique,
                "`key` and `unique` are one field; a key of each record has no second record",
            ),
            (
                self.keys is not None and self.key is None,
                "`keys` needs `key`, the field in which keys stand",
            ),
        )


def described(table: Mapping[str, Any], *, where: str, folder: Path) -> Input:
    """Return the description that a table of a file holds.

    Args:
        table: The fields, as TOML or JSON has them.
        where: The file and the table, for a refusal.
        folder: The folder from which the paths of files lead.

    Raises:
        UsageProblem: A field is wrong, fields contradict each other, or a file is not there.
    """
    try:
        found = Input.model_validate(dict(table))
    except ValidationError as error:
        raise UsageProblem(f"{where}: {_first(error)}") from None
    file = folder / found.sample
    if not is_file(file):
        raise UsageProblem(f"{where}: `sample` is {file}, and there is no such file.")
    return found.model_copy(update={"sample": file})


def _first(error: ValidationError) -> str:
    """Return a sentence on the first thing that is wrong."""
    errors = error.errors(include_url=False)
    # A field that is misspelt is missing too: its name says more.
    found = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    field = str(found["loc"][0])[:_SHOWN_CHARS] if found["loc"] else ""
    said = found["msg"].removeprefix("Value error, ")
    match found["type"]:
        case "missing":
            return f"the field `{field}` is missing."
        case "extra_forbidden":
            known = [*Input.model_fields]
            guess = did_you_mean(field, known)
            return f"`{field}` is not a field of an input; known are {', '.join(known)}.{guess}"
    if not field:
        return sentence(said)
    return f"`{field}` is {_short(found['input'])}: {sentence(said[0].lower() + said[1:])}"


def _short(value: object) -> str:
    """Return a value as it may stand in a sentence."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
