"""The evidence of marks that checks read, with types."""

from typing import NamedTuple, Self

from pydantic import BaseModel, ConfigDict

from upheld.history.events import Mark, Offsets


class Evidence(BaseModel):
    """The part of a mark's evidence that a check reads; other fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @classmethod
    def of(cls, mark: Mark) -> Self:
        """Read it from a mark.

        Raises:
            ValueError: The mark lacks a field, or has another type in it.
        """
        return cls.model_validate(mark.evidence)


class Writer(NamedTuple):
    """A producer in one epoch."""

    producer_id: int
    producer_epoch: int


class OpenTransaction(Evidence):
    """An instance was paused with a transaction open."""

    writers: frozenset[Writer]
    last_stable: Offsets


class Recovery(Evidence):
    """An output was new, so long after the start."""

    after_ms: int


class Gap(NamedTuple):
    """Offsets that were deleted before they were read.

    ``end`` is the first offset after them.
    """

    begin: int
    end: int


class Truncation(Evidence):
    """Some of the input fell off the log."""

    gaps: dict[str, Gap]  # by topic-partition


class TornFile(Evidence):
    """A file of the design was torn."""

    file: str
