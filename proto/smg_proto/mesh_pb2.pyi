from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
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
    __slots__ = ("ignorable", "opening", "rows")
    IGNORABLE_FIELD_NUMBER: _ClassVar[int]
    OPENING_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ignorable: bool
    opening: Opening
    rows: Rows
    def __init__(self, ignorable: _Optional[bool] = ..., opening: _Optional[_Union[Opening, _Mapping]] = ..., rows: _Optional[_Union[Rows, _Mapping]] = ...) -> None: ...

class Opening(_message.Message):
    __slots__ = ("name", "boot", "label", "digest", "full", "wire_version", "ring_version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BOOT_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    RING_VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    boot: int
    label: str
    digest: bytes
    full: bool
    wire_version: int
    ring_version: int
    def __init__(self, name: _Optional[str] = ..., boot: _Optional[int] = ..., label: _Optional[str] = ..., digest: _Optional[bytes] = ..., full: _Optional[bool] = ..., wire_version: _Optional[int] = ..., ring_version: _Optional[int] = ...) -> None: ...

class Rows(_message.Message):
    __slots__ = ("claims", "last")
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    claims: bytes
    last: bool
    def __init__(self, claims: _Optional[bytes] = ..., last: _Optional[bool] = ...) -> None: ...

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
