"""The description of an input: where its records come from, and their spread.

Records come from samples, a file of JSON lines, or are made from a schema. Every mistake that a
user can make in a description is found here, before a broker is started. One sentence names the
field.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.protocol import refusals
from upheld.protocol.json_path import JsonPath
from upheld.protocol.refusals import short
from upheld.reading import is_file
from upheld.text import sentence

Format = Literal["json", "bytes", "avro", "protobuf", "json-schema"]
Lines = Literal["values", "records"]
FORMATS: Final[tuple[str, ...]] = get_args(Format)
LINES: Final[tuple[str, ...]] = get_args(Lines)
MOST_RECORDS: Final = 1_000_000
MOST_PARTITIONS: Final = 1_000
MOST_KEYS: Final = 100_000


def _path(given: object) -> object:
    """Read a path; what is no text is left to its own refusal."""
    return JsonPath.read(given) if isinstance(given, str) else given


def _format(given: object) -> object:
    """Refuse a format that there is not, with a guess."""
    if isinstance(given, str) and given not in FORMATS:
        guess = did_you_mean(given, FORMATS)
        raise ValueError(f"there is no such format; there are {', '.join(FORMATS)}.{guess}")
    return given


def _registry(given: bool | str) -> bool | str:
    """Refuse a registry that is no address."""
    if isinstance(given, str) and not given.startswith(("http://", "https://")):
        raise ValueError("a registry is true, for a built-in one, or an address with http")
    return given


Place = Annotated[JsonPath, BeforeValidator(_path)]


class Input(BaseModel):
    """An input topic, and what its records are made of.

    The same description and seed make the same bytes in any process.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    topic: str = Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")
    partitions: int = Field(default=4, ge=1, le=MOST_PARTITIONS, strict=True)
    format: Annotated[Format, BeforeValidator(_format)] = Field(
        default="json", description="how a value is written as bytes"
    )
    sample: Path | None = Field(
        default=None, description="a file of JSON lines, from which records are drawn"
    )
    lines: Lines | None = Field(
        default=None,
        description=(
            "what a line of the sample is: a value, or a record with key, value and headers; else "
            "lines are records if the first one is an object of key and value, perhaps with headers"
        ),
    )
    schema_file: Path | None = Field(
        default=None,
        alias="schema",
        description="a JSON Schema, an Avro schema, a .proto file or a descriptor set",
    )
    message: str | None = Field(
        default=None, min_length=1, description="the message of a Protobuf schema; else its first"
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
        description="how many keys there are; else those of the sample, or 64 of a schema",
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
    registry: Annotated[bool | str, AfterValidator(_registry)] = Field(
        default=False,
        description="values begin as Confluent's wire format does: true, or a registry's address",
    )

    @model_validator(mode="after")
    def _demand_sense(self) -> Self:
        """Refuse fields that contradict each other."""
        for is_wrong, said in self._contradictions():
            if is_wrong:
                raise ValueError(said)
        return self

    def _contradictions(self) -> tuple[tuple[bool, str], ...]:
        is_sampled = self.sample is not None
        has_schema = self.schema_file is not None
        needs_schema = self.format in {"avro", "protobuf", "json-schema"}
        is_bytes = self.format == "bytes"
        return (
            (not (is_sampled or has_schema), "it needs a `sample` or a `schema`"),
            (needs_schema and not has_schema, f"the format {self.format} needs a `schema`"),
            (is_bytes and not is_sampled, "the format bytes needs a `sample`"),
            (is_bytes and has_schema, "the format bytes has no `schema`"),
            (is_bytes and self.key is not None, "the format bytes has no field for `key`"),
            (is_bytes and self.unique is not None, "the format bytes has no field for `unique`"),
            (
                bool(self.registry) and not needs_schema,
                f"the format {self.format} has no `registry`; avro, protobuf and json-schema have",
            ),
            (
                self.message is not None and self.format != "protobuf",
                "`message` is for the format protobuf alone",
            ),
            (self.lines is not None and not is_sampled, "`lines` is for a `sample` alone"),
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
    files = {"sample": found.sample, "schema_file": found.schema_file}
    placed = {name: folder / file for name, file in files.items() if file is not None}
    for name, file in placed.items():
        if not is_file(file):
            raise UsageProblem(
                f"{where}: `{name.removesuffix('_file')}` is {file}, and there is no such file."
            )
    return found.model_copy(update=placed)


def _first(error: ValidationError) -> str:
    """Return a sentence on the first thing that is wrong."""
    wrong = refusals.first(error)
    field = "".join(wrong.place[:1])
    match wrong.kind:
        case "missing":
            return f"the field `{field}` is missing."
        case "extra_forbidden":
            known = [each.alias or name for name, each in Input.model_fields.items()]
            guess = did_you_mean(field, known)
            return f"`{field}` is not a field of an input; known are {', '.join(known)}.{guess}"
    if not field:
        return sentence(wrong.said)
    return f"`{field}` is {short(wrong.given)}: {sentence(wrong.must)}"
