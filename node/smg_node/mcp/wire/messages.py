"""JSON-RPC messages as MCP uses them: requests and notifications written, answers and a server's own messages read. Pure.

What a message carries stays JSON text (`msgspec.Raw`) until somebody needs it, so no number of a tool's arguments or
results passes through a float.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from smg_node.mcp.failures import INTERNAL_ERROR, plain_text


class WireError(ValueError):
    """Bytes that are no JSON-RPC message."""


class Answer(msgspec.Struct, frozen=True):
    """A result; `id` is the request's."""

    id: str
    result: Raw


class ErrorAnswer(msgspec.Struct, frozen=True):
    """A JSON-RPC error; `id` is None where the server could not read which request it was."""

    id: str | None
    code: int
    message: str
    data: bytes = b""


class ServerRequest(msgspec.Struct, frozen=True):
    """A request of the server to us; `id` is JSON, to be given back as it came."""

    id: bytes
    method: str
    params: Raw


class Notice(msgspec.Struct, frozen=True):
    """A notification."""

    method: str
    params: Raw


Message: TypeAlias = Answer | ErrorAnswer | ServerRequest | Notice


class _Envelope(msgspec.Struct):
    id: Raw | UnsetType = UNSET
    method: str | None = None
    params: Raw = Raw(b"{}")
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Error(msgspec.Struct):
    code: int | float = INTERNAL_ERROR
    message: Any = ""
    data: Raw = Raw(b"")


_decode: Final = msgspec.json.Decoder(_Envelope).decode
_decode_many: Final = msgspec.json.Decoder(list[_Envelope]).decode
_decode_error: Final = msgspec.json.Decoder(_Error).decode
_decode_any: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
BATCH_MAX: Final = 1000
_BLANKS: Final = b" \t\r\n"


def json_value(text: bytes | Raw) -> Any:
    """Return the value of JSON text, integers exact; WireError for what is none."""
    try:
        return _decode_any(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"no JSON: {error}") from error


def read_messages(text: bytes) -> list[Message]:
    """Return the messages in a body, event or line: one, or a batch of them; WireError for anything else."""
    try:
        if text.lstrip(_BLANKS)[:1] == b"[":
            envelopes = _decode_many(text)
            if len(envelopes) > BATCH_MAX:
                raise WireError(f"a batch of {len(envelopes)} messages")
            return [_message(one) for one in envelopes]
        return [_message(_decode(text))]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError("no JSON-RPC message") from error


def _message(envelope: _Envelope) -> Message:
    if envelope.method is not None:
        if envelope.id is UNSET:
            return Notice(envelope.method, envelope.params)
        return ServerRequest(bytes(envelope.id), envelope.method, envelope.params)
    if envelope.error is not UNSET:
        return _error_answer(envelope.id, envelope.error)
    if envelope.result is UNSET:
        raise WireError("neither method, result nor error")
    answered = _id(envelope.id)
    if answered is None:
        raise WireError("a result without an id")
    return Answer(answered, envelope.result)


def _error_answer(answered: Raw | UnsetType, error: Raw) -> ErrorAnswer:
    read = _decode_error(error)
    message = read.message if isinstance(read.message, str) else ""
    # A server may say 4e2 for 400; what is no integer is no code.
    code = int(read.code) if read.code == read.code // 1 else INTERNAL_ERROR
    return ErrorAnswer(_id(answered), code, plain_text(message), bytes(read.data))


def _id(answered: Raw | UnsetType) -> str | None:
    """Return the id of an answer as text: ours are strings, and what is none is nobody's."""
    if answered is UNSET:
        return None
    value = _decode_any(answered)
    return value if isinstance(value, str) else None if value is None else f"{value!r}"


def write_request(id_: str, method: str, params: Mapping[str, Any]) -> bytes:
    """Return a request in one line."""
    return _encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})


def write_notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """Return a notification in one line."""
    whole: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    return _encode({**whole, "params": params} if params else whole)


def write_result(id_: bytes, result: Mapping[str, Any]) -> bytes:
    """Return our answer to a server's request, in one line."""
    return _encode({"jsonrpc": "2.0", "id": Raw(id_), "result": result})


def write_error(id_: bytes, code: int, message: str) -> bytes:
    """Return our refusal of a server's request, in one line."""
    error = {"code": code, "message": message}
    return _encode({"jsonrpc": "2.0", "id": Raw(id_), "error": error})


def one_line(text: bytes) -> Raw:
    """Return valid JSON text without line ends: in JSON they can only be blanks between values."""
    return Raw(text.translate(_ONE_LINE)) if b"\n" in text or b"\r" in text else Raw(text)


_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")
