"""Errors that the proxy gives in a broker's place, and the answers that say so.

Kafka gives some errors before it has applied a request, and some after. The table was looked up in
the source of Kafka 4:

- Transactions: TransactionStateManager.appendTransactionToLog. Its record may be in the log when
  the coordinator is no longer the coordinator.
- Offsets: CoordinatorOperationExceptionHelper, with the errors by which CoordinatorRuntime fails
  writes that are not replicated yet.
- Records: Partition.checkEnoughReplicasReachOffset, called by DelayedProduce.
"""

from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Any, Final, Literal, NamedTuple, get_args, get_type_hints

from kio.schema.errors import ErrorCode
from kio.static.primitive import i32, i32Timedelta
from kio.static.protocol import Entity

from upheld.injectors.proxy.frames import Request, encode, parts, schemas

Moment = Literal["before", "after"]

MOVED: Final = {ErrorCode.coordinator_not_available, ErrorCode.not_coordinator}
LOADING: Final = ErrorCode.coordinator_load_in_progress
NOT_LEADER: Final = ErrorCode.not_leader_or_follower
ALL_REPLICAS: Final = -1  # the acks of a produce
LEADER_ALONE: Final = 1
UNKNOWN: Final = -1
OF_A_TRANSACTION: dict[Moment, set[ErrorCode]] = {
    "before": {*MOVED, LOADING, ErrorCode.concurrent_transactions},
    "after": {*MOVED, LOADING},
}
GIVEN: dict[str, dict[Moment, set[ErrorCode]]] = {  # API -> moment -> errors
    "produce": {
        "before": {NOT_LEADER, ErrorCode.not_enough_replicas},
        "after": {
            NOT_LEADER,
            ErrorCode.not_enough_replicas_after_append,
            ErrorCode.request_timed_out,
        },
    },
    "init_producer_id": OF_A_TRANSACTION,
    "add_partitions_to_txn": OF_A_TRANSACTION,
    "add_offsets_to_txn": OF_A_TRANSACTION,
    "txn_offset_commit": {"before": OF_A_TRANSACTION["before"], "after": MOVED},
    "end_txn": OF_A_TRANSACTION,
    "offset_commit": {"before": {*MOVED, LOADING}, "after": MOVED},
}


class Newer(NamedTuple):
    """An error that older versions of a request do not know."""

    first_version: int
    before_it: ErrorCode  # what a broker says to an older one


NEWER: Final = {
    ("txn_offset_commit", LOADING): Newer(2, ErrorCode.coordinator_not_available),
}
# The last version that clients send: brokers send later ones to each other.
LAST: Final = {"add_partitions_to_txn": 3}
# The fields of an answer that repeat what was asked.
REPEATED: Final = (
    "name",
    "topic_id",
    "index",
    "partition_index",
    "base_offset",
    "log_append_time",
    "log_start_offset",
)


def demand(api: str, moment: Moment, error: ErrorCode) -> None:
    """Raise ValueError if Kafka gives no such error."""
    if error not in GIVEN.get(api, {}).get(moment, ()):
        raise ValueError(f"no broker could make this: {error.name} to {api}, {moment} it is done")


def is_given(request: Request, moment: Moment, error: ErrorCode) -> bool:
    """Return whether Kafka might answer this request with the error.

    It depends on the request's version, and on what it asks for. To an old version a broker may say
    it by another error, which is `translated`.
    """
    if request.version > LAST.get(request.api, request.version):
        return False
    # With acks=1 the answer comes before the replicas have the records.
    if request.api == "produce":
        return request.acks == ALL_REPLICAS or (
            request.acks == LEADER_ALONE and (moment, error) == ("before", NOT_LEADER)
        )
    # Without a transactional id no coordinator is involved.
    if request.api == "init_producer_id" and _has_no_id(request):
        return (moment, error) == ("before", LOADING)
    return True


def translated(request: Request, error: ErrorCode) -> ErrorCode:
    """Return the error by which a broker says this one to a request of that version."""
    newer = NEWER.get((request.api, error))
    return newer.before_it if newer and request.version < newer.first_version else error


def _has_no_id(request: Request) -> bool:
    """Return whether an InitProducerId names no transactional id."""
    return getattr(request.decoded(), "transactional_id", None) is None


def refusal(request: Request, moment: Moment, error: ErrorCode, own: Entity | None = None) -> bytes:
    """Return the frame that refuses all of a request.

    After a request is applied, the broker's own answer says where records are, and the refusal
    repeats that.

    Raises:
        ValueError: Kafka gives no such error to this request.
    """
    demand(request.api, moment, error)
    if not is_given(request, moment, error):
        raise ValueError(
            f"no broker could make this: {error.name} to this {request.api} of version "
            f"{request.version}"
        )
    schema = schemas(request.api_key, request.version)[1]
    header = schema.__header_schema__(correlation_id=i32(request.correlation_id))
    said = translated(request, error)
    return encode(header, _refusing(schema, own or request.decoded(), said))


def _refusing(schema: type[Entity], asked: Any, error: ErrorCode) -> Entity:
    """Return an answer, or a part of one, with the error for each place that was asked for.

    It repeats the places and nothing else.
    """
    kinds = get_type_hints(schema)
    said: dict[str, object] = {}
    for field in fields(schema):
        name = field.name
        kind = kinds[name]
        if kind is ErrorCode:
            said[name] = error
        elif name in REPEATED and hasattr(asked, name):
            said[name] = getattr(asked, name)
        elif name == "partition_index":
            said[name] = asked  # AddPartitionsToTxn has bare numbers
        elif field.default is not MISSING:
            continue
        elif kind is i32Timedelta:
            said[name] = i32Timedelta.parse(timedelta(0))
        elif inner := get_args(kind):
            repeats = {each.name for each in fields(inner[0])} & {*REPEATED}
            said[name] = (
                tuple(_refusing(inner[0], part, error) for part in parts(asked)) if repeats else ()
            )
        else:
            said[name] = kind(UNKNOWN)
    return schema(**said)
