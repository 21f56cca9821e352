from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Hop(_message.Message):
    __slots__ = ("topic", "partition", "offset", "topic_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: int
    topic_id: bytes
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., topic_id: _Optional[bytes] = ...) -> None: ...

class Posting(_message.Message):
    __slots__ = ("account", "amount_cents")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_CENTS_FIELD_NUMBER: _ClassVar[int]
    account: str
    amount_cents: int
    def __init__(self, account: _Optional[str] = ..., amount_cents: _Optional[int] = ...) -> None: ...

class Envelope(_message.Message):
    __slots__ = ("id", "timestamp_ms", "chain", "postings")
    ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    POSTINGS_FIELD_NUMBER: _ClassVar[int]
    id: str
    timestamp_ms: int
    chain: _containers.RepeatedCompositeFieldContainer[Hop]
    postings: _containers.RepeatedCompositeFieldContainer[Posting]
    def __init__(self, id: _Optional[str] = ..., timestamp_ms: _Optional[int] = ..., chain: _Optional[_Iterable[_Union[Hop, _Mapping]]] = ..., postings: _Optional[_Iterable[_Union[Posting, _Mapping]]] = ...) -> None: ...
