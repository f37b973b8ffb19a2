"""Remote store messages (msgpack): requests and replies of store operations between nodes.

A question is one operation of a store with its arguments by name; operations and types are derived
from the protocol of stores itself, so that there is no second list of them. The answer is the
operation's result or its error. Either may be too large for one message between nodes, and is then
sent in parts.

An unknown operation or argument is refused, never ignored: an argument that only one side knows may
be what keeps a write from being done twice.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, get_type_hints

import msgspec

from smg_node.history.ports import Keeper
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.store import HistoryStore

OF_KEEPERS: Final = ("commit", "write")
"""Not of the store, but of what keeps: a turn that may wait on the holder's disk, and one that may not."""
PARCEL_BYTES: Final = 16
_RAW_NOTHING: Final = msgspec.Raw(msgspec.msgpack.encode(None))


class MessageError(ValueError):
    """Bytes that are no valid message."""


class Operation(msgspec.Struct, frozen=True):
    """Signature of an operation: its name, its arguments after the access, in order, and its result
    type.
    """

    name: str
    arguments: tuple[str, ...]
    form: type[msgspec.Struct]
    result: Any

    def bound(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return arguments by name."""
        return {**dict(zip(self.arguments, given, strict=False)), **named}


class StoreRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One operation, for a tenant, with its time limit."""

    operation: str
    tenant: str
    timeout_s: float
    arguments: msgspec.Raw
    request_id: str = ""


class StoreReply(msgspec.Struct, frozen=True):
    """Result of an operation, or the kind and text of its error."""

    result: msgspec.Raw = _RAW_NOTHING
    failed: StoreErrorKind | None = None
    message: str = ""
    missing: str = ""


class Question(msgspec.Struct, frozen=True, array_like=True):
    """One message to the holder: a request, a part of one, or a fetch of a further part of an
    answer.

    `parcel` names a payload of several parts, `count` of them; it is empty where there is one. A
    fetch has no count.
    """

    content: bytes = b""
    parcel: bytes = b""
    index: int = 0
    count: int = 1


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """One message back: an answer, or its first part. `busy`: nothing was done, and it may be asked
    again.
    """

    content: bytes = b""
    parcel: bytes = b""
    count: int = 1
    busy: bool = False


@cache
def operations() -> Mapping[str, Operation]:
    """Return all operations that may be asked of another node, by name."""
    known = {
        name: _operation(name, found)
        for name, found in sorted(inspect.getmembers(HistoryStore, inspect.isfunction))
        if not name.startswith("_") and "access" in inspect.signature(found).parameters
    }
    known |= {name: _operation(name, getattr(Keeper, name)) for name in OF_KEEPERS}
    return MappingProxyType(known)


def _operation(name: str, found: Callable[..., Any]) -> Operation:
    hints = get_type_hints(found)
    result = hints.pop("return")
    parameters = list(inspect.signature(found).parameters.values())[2:]
    fields: list[Any] = [
        (one.name, hints[one.name])
        if one.default is inspect.Parameter.empty
        else (one.name, hints[one.name], one.default)
        for one in parameters
    ]
    form = msgspec.defstruct(f"Of_{name}", fields, kw_only=True, forbid_unknown_fields=True)
    return Operation(name, tuple(one.name for one in parameters), form, result)


# ── There and back ───────────────────────────────────────────────────────────

_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def read_question(payload: bytes) -> Question:
    """Return the message in these bytes; MessageError if it is none."""
    found: Question = _read(payload, Question)
    return found


def read_answer(payload: bytes) -> Answer:
    """Return the answer in these bytes; MessageError if it is none."""
    found: Answer = _read(payload, Answer)
    return found


def write(message: Question | Answer) -> bytes:
    """Return the bytes of a message."""
    return msgspec.msgpack.encode(message)


def write_request(
    operation: str,
    arguments: Mapping[str, Any],
    *,
    tenant: str,
    timeout_s: float,
    request_id: str = "",
) -> bytes:
    """Return the bytes of a request."""
    packed = msgspec.Raw(msgspec.msgpack.encode(arguments))
    return msgspec.msgpack.encode(StoreRequest(operation, tenant, timeout_s, packed, request_id))


def read_request(content: bytes) -> tuple[StoreRequest, Mapping[str, Any]]:
    """Return a request and its arguments by name; MessageError if this version does not know it."""
    asked = _read(content, StoreRequest)
    known = operations().get(asked.operation)
    if known is None:
        raise MessageError("no operation is called so")
    form = _read(bytes(asked.arguments), known.form)
    return asked, {name: getattr(form, name) for name in known.arguments}


def write_result(result: Any) -> bytes:
    """Return the bytes of an operation's result."""
    return msgspec.msgpack.encode(StoreReply(msgspec.Raw(msgspec.msgpack.encode(result))))


def write_failure(error: StoreError) -> bytes:
    """Return the bytes of an operation's error."""
    return msgspec.msgpack.encode(
        StoreReply(_RAW_NOTHING, error.kind, error.message, error.missing)
    )


def read_reply(content: bytes, operation: str) -> Any:
    """Return that operation's result on the other node, or raise its error; MessageError for
    invalid bytes.
    """
    said = _read(content, StoreReply)
    if said.failed is not None:
        raise StoreError(said.failed, said.message, missing=said.missing)
    return _read(bytes(said.result), operations()[operation].result)


def _read(content: bytes, form: Any) -> Any:
    try:
        return msgspec.msgpack.decode(content, type=form)
    except _UNREADABLE as error:
        # What it says of the place may be a piece of somebody's document.
        raise MessageError("it says nothing that is understood here") from error
