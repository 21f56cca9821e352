"""The rows that the reference holds back while its cluster stands by."""

import pyarrow as pa
import pytest

from upheld.adapter import Failed
from upheld.generators.envelope_pb2 import Envelope, Hop
from upheld.impl.spark.standby import Standby

PLACE = ("entries", 0)


def rows(**offsets: int) -> "pa.Table":
    """Return a row of each account, whose last entry was read at this offset."""
    headers = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
    return pa.table(
        {
            "key": pa.array([name.encode() for name in offsets], pa.binary()),
            "headers": pa.array([[chain(offset)] for offset in offsets.values()], headers),
        }
    )


def chain(offset: int) -> dict[str, object]:
    """Return the header that says where an entry was read, behind an older hop."""
    hops = [Hop(topic="upstream", offset=99), Hop(topic="entries", offset=offset)]
    return {"key": "chain", "value": Envelope(chain=hops).SerializeToString()}


def keys(table: "pa.Table") -> str:
    """Return the keys of rows."""
    return b"".join(table["key"].to_pylist()).decode()


def test_without_another_cluster() -> None:
    """All rows go."""
    assert keys(Standby(stands_by=False).sift(rows(a=1, b=2), {PLACE: 3})) == "ab"


def test_rows_are_held_back_until_the_switch() -> None:
    """The last row of a key goes then, if its entry is above the other's end."""
    standby = Standby(stands_by=True)
    assert keys(standby.sift(rows(a=1, b=2), {PLACE: 3})) == ""
    assert keys(standby.sift(rows(a=5), {PLACE: 6})) == ""

    assert keys(standby.let_go({PLACE: 5}, held_from={PLACE: 0})) == "a"


def test_a_batch_from_both_sides_of_the_switch() -> None:
    """Rows of the other cluster are left out, until a batch has passed its end."""
    standby = Standby(stands_by=True)
    assert standby.let_go({PLACE: 5}, held_from={}) is None

    assert keys(standby.sift(rows(a=3, b=4), {PLACE: 4})) == ""
    assert keys(standby.sift(rows(a=4, b=5), {PLACE: 6})) == "b"
    assert keys(standby.sift(rows(a=0), {PLACE: 7})) == "a"


def test_a_cluster_that_was_started_again() -> None:
    """It refuses the switch if the other cluster ended before it began to hold back."""
    standby = Standby(stands_by=True)

    with pytest.raises(Failed, match="what it held back before is gone") as failed:
        standby.let_go({PLACE: 5}, held_from={PLACE: 6})

    assert failed.value.kind == "conflict"
