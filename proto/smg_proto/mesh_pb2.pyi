from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PingRequest(_message.Message):
    __slots__ = ("name", "boot")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BOOT_FIELD_NUMBER: _ClassVar[int]
    name: str
    boot: int
    def __init__(self, name: _Optional[str] = ..., boot: _Optional[int] = ...) -> None: ...

class PingReply(_message.Message):
    __slots__ = ("here",)
    HERE_FIELD_NUMBER: _ClassVar[int]
    here: bool
    def __init__(self, here: _Optional[bool] = ...) -> None: ...

class ExchangeFrame(_message.Message):
    __slots__ = ("ignorable", "opening", "rows", "holdings", "request", "update", "declined", "done")
    IGNORABLE_FIELD_NUMBER: _ClassVar[int]
    OPENING_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    HOLDINGS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    DECLINED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    ignorable: bool
    opening: Opening
    rows: Rows
    holdings: Holdings
    request: Request
    update: Update
    declined: Declined
    done: Done
    def __init__(self, ignorable: _Optional[bool] = ..., opening: _Optional[_Union[Opening, _Mapping]] = ..., rows: _Optional[_Union[Rows, _Mapping]] = ..., holdings: _Optional[_Union[Holdings, _Mapping]] = ..., request: _Optional[_Union[Request, _Mapping]] = ..., update: _Optional[_Union[Update, _Mapping]] = ..., declined: _Optional[_Union[Declined, _Mapping]] = ..., done: _Optional[_Union[Done, _Mapping]] = ...) -> None: ...

class Opening(_message.Message):
    __slots__ = ("name", "boot", "label", "digest", "full", "wire_version", "ring_version", "pieces", "stale", "joining", "history")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BOOT_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    RING_VERSION_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    JOINING_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    name: str
    boot: int
    label: str
    digest: bytes
    full: bool
    wire_version: int
    ring_version: int
    pieces: bool
    stale: bool
    joining: bool
    history: bytes
    def __init__(self, name: _Optional[str] = ..., boot: _Optional[int] = ..., label: _Optional[str] = ..., digest: _Optional[bytes] = ..., full: _Optional[bool] = ..., wire_version: _Optional[int] = ..., ring_version: _Optional[int] = ..., pieces: _Optional[bool] = ..., stale: _Optional[bool] = ..., joining: _Optional[bool] = ..., history: _Optional[bytes] = ...) -> None: ...

class Rows(_message.Message):
    __slots__ = ("claims", "last")
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    claims: bytes
    last: bool
    def __init__(self, claims: _Optional[bytes] = ..., last: _Optional[bool] = ...) -> None: ...

class Holdings(_message.Message):
    __slots__ = ("pieces", "last")
    PIECES_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    pieces: bytes
    last: bool
    def __init__(self, pieces: _Optional[bytes] = ..., last: _Optional[bool] = ...) -> None: ...

class Request(_message.Message):
    __slots__ = ("pieces",)
    PIECES_FIELD_NUMBER: _ClassVar[int]
    pieces: _containers.RepeatedCompositeFieldContainer[Asked]
    def __init__(self, pieces: _Optional[_Iterable[_Union[Asked, _Mapping]]] = ...) -> None: ...

class Asked(_message.Message):
    __slots__ = ("name", "epoch", "summary")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    name: str
    epoch: int
    summary: Packed
    def __init__(self, name: _Optional[str] = ..., epoch: _Optional[int] = ..., summary: _Optional[_Union[Packed, _Mapping]] = ...) -> None: ...

class Update(_message.Message):
    __slots__ = ("name", "epoch", "summary", "chunk", "last")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    name: str
    epoch: int
    summary: Packed
    chunk: Packed
    last: bool
    def __init__(self, name: _Optional[str] = ..., epoch: _Optional[int] = ..., summary: _Optional[_Union[Packed, _Mapping]] = ..., chunk: _Optional[_Union[Packed, _Mapping]] = ..., last: _Optional[bool] = ...) -> None: ...

class Declined(_message.Message):
    __slots__ = ("name", "epoch")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    name: str
    epoch: int
    def __init__(self, name: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ("refused",)
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    refused: bool
    def __init__(self, refused: _Optional[bool] = ...) -> None: ...

class Packed(_message.Message):
    __slots__ = ("content", "plain_bytes")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    PLAIN_BYTES_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    plain_bytes: int
    def __init__(self, content: _Optional[bytes] = ..., plain_bytes: _Optional[int] = ...) -> None: ...

class AskRequest(_message.Message):
    __slots__ = ("caller", "target", "label", "topic", "payload")
    CALLER_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    caller: str
    target: str
    label: str
    topic: str
    payload: bytes
    def __init__(self, caller: _Optional[str] = ..., target: _Optional[str] = ..., label: _Optional[str] = ..., topic: _Optional[str] = ..., payload: _Optional[bytes] = ...) -> None: ...

class AskReply(_message.Message):
    __slots__ = ("payload", "failure")
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    failure: AskFailure
    def __init__(self, payload: _Optional[bytes] = ..., failure: _Optional[_Union[AskFailure, _Mapping]] = ...) -> None: ...

class AskFailure(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...
