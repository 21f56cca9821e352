"""Errors in a broker's place: those that Kafka gives before it has done what is asked, or after it
has, and answers that say so.

Looked up in the source of Kafka 4. Transactions: TransactionStateManager.appendTransactionToLog,
whose record may be in the log when the coordinator is not the coordinator any more. Offsets:
CoordinatorOperationExceptionHelper, with what CoordinatorRuntime fails that was written and not yet
replicated. Records: Partition.checkEnoughReplicasReachOffset, by DelayedProduce.
"""

from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Any, Literal, get_args, get_type_hints

from kio.schema.errors import ErrorCode
from kio.static.primitive import i32, i32Timedelta

from upheld.injectors.proxy.frames import Request, encode, parts, schemas

Moment = Literal["before", "after"]

MOVED = {ErrorCode.coordinator_not_available, ErrorCode.not_coordinator}
LOADING, NOT_LEADER = ErrorCode.coordinator_load_in_progress, ErrorCode.not_leader_or_follower
OF_A_TRANSACTION: dict[Moment, set[ErrorCode]] = {
    "before": {*MOVED, LOADING, ErrorCode.concurrent_transactions},
    "after": {*MOVED, LOADING},
}
GIVEN: dict[str, dict[Moment, set[ErrorCode]]] = {  # API -> before it is done, and after
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
FIRST = {("txn_offset_commit", LOADING): 2}  # older clients are told that there is no coordinator
LAST = {"add_partitions_to_txn": 3}  # from the next one on it is what brokers ask each other
REPEATED = (
    "name",
    "topic_id",
    "index",
    "partition_index",
    "base_offset",
    "log_append_time",
    "log_start_offset",
)


def demand(api: str, moment: Moment, error: ErrorCode) -> None:
    """ValueError where Kafka gives no such error."""
    if error not in GIVEN.get(api, {}).get(moment, ()):
        raise ValueError(f"no broker could make this: {error.name} to {api}, {moment} it is done")


def is_given(request: Request, moment: Moment, error: ErrorCode) -> bool:
    """Whether the answer to this request might be that: in its version, and with what it asks
    for.
    """
    if (
        not FIRST.get((request.api, error), 0)
        <= request.version
        <= LAST.get(request.api, request.version)
    ):
        return False
    # Who waits for the leader alone is told before the replicas have it.
    if request.api == "produce":
        return request.acks == -1 or (
            request.acks == 1 and (moment, error) == ("before", NOT_LEADER)
        )
    # No coordinator has to do with it.
    if request.api == "init_producer_id" and request.decoded().transactional_id is None:
        return (moment, error) == ("before", LOADING)
    return True


def refusal(request: Request, moment: Moment, error: ErrorCode, own: Any = None) -> bytes:
    """The answer that refuses all of a request; after it is done, with what the broker's own answer
    says of where records are.
    """
    demand(request.api, moment, error)
    if not is_given(request, moment, error):
        raise ValueError(
            f"no broker could make this: {error.name} to this {request.api} of version "
            f"{request.version}"
        )
    schema = schemas(request.api_key, request.version)[1]
    header = schema.__header_schema__(correlation_id=i32(request.correlation_id))
    return encode(header, _refusing(schema, own or request.decoded(), error))


def _refusing(schema: Any, asked: Any, error: ErrorCode) -> Any:
    """An answer or a part of one: the places of what is asked, the error beside each, and nothing
    else.
    """
    kinds, said = get_type_hints(schema), dict[str, Any]()
    for field in fields(schema):
        name, kind = field.name, kinds[field.name]
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
            said[name] = kind(-1)
    return schema(**said)
