"""The meaning, the usual causes and the first places to look of each anomaly."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from upheld.reading import read_toml

FILE: Final = Path(__file__).parents[1] / "data" / "anomalies.toml"

_Sentence = Annotated[str, Field(pattern=r"^[A-Z].+\.$")]
_Sentences = Annotated[tuple[_Sentence, ...], Field(min_length=2)]


class Described(BaseModel):
    """One anomaly, in sentences for its reader.

    Attributes:
        meaning: What was seen.
        causes: The usual causes, the most frequent first.
        look: Where to look first.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    meaning: _Sentence
    causes: _Sentences
    look: _Sentences


@cache
def anomalies() -> Mapping[str, Described]:
    """Return each anomaly by its name, in the order of the file."""
    return {name: Described.model_validate(said) for name, said in read_toml(FILE).items()}
