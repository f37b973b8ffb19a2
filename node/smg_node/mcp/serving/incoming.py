"""Incoming messages of MCP clients: a request's body and headers to checked messages of either era. Pure.

The era is that of the revision a request names in its header or `_meta`; a request that names none is of the handshake
era. There, a batch is taken where the revision had batches (2025-03-26, also assumed where none is named). In the
modern era a body is one message, and what its headers repeat must be equal to it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from smg_node.mcp.failures import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    plain_text,
)
from smg_node.mcp.revisions import NEWEST_HANDSHAKE, REVISIONS, Revision, revision_named
from smg_node.mcp.serving.header_values import decoded_header
from smg_node.mcp.serving.replies import INVALID_REQUEST, Refusal
from smg_node.mcp.wire.headers import VERSION

BATCH_MAX: Final = 32
"""Messages of one batch: each may be a call that takes minutes."""
ID_BYTES_MAX: Final = 1024
"""An id is given back as it came."""
DEPTH_MAX: Final = 128
"""Levels of parameters: what is decoded here is encoded again later, deeper in the stack."""
META: Final = "io.modelcontextprotocol/"
MODERN_NAMES: Final = tuple(one.name for one in REVISIONS if one.modern)
_BATCHED: Final = ("", "2025-03-26")
_NAMED: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
}
"""Methods whose object stands in `mcp-name`, and its parameter."""
_METHODS: Final[Mapping[bool, frozenset[str]]] = {
    False: frozenset(("initialize", "ping", "tools/list", "tools/call")),
    True: frozenset(("server/discover", "tools/list", "tools/call")),
}
_BLANKS: Final = b" \t\r\n"
_INTEGER: Final = re.compile(rb"-?[0-9]{1,40}")


class Incoming(msgspec.Struct, frozen=True):
    """One request. `id` is JSON, `params` and `meta` are objects; `capabilities` are those of a modern client."""

    id: bytes
    method: str
    params: Mapping[str, Any]
    revision: Revision
    arguments: bytes = b""
    """JSON text of the arguments of a call, exactly as it came; b"" where there is none."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """What stands in `_meta`."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What its client can do; of the handshake era nothing is known here."""
        said = self.meta.get(META + "clientCapabilities")
        return said if isinstance(said, dict) else {}

    @property
    def progress_token(self) -> str | int | None:
        """By which its client wants to hear of progress."""
        token = self.meta.get("progressToken")
        usable = isinstance(token, str | int) and not isinstance(token, bool)
        return token if usable and len(str(token)) <= ID_BYTES_MAX else None

    def refusal(self, code: int, message: str, about: Mapping[str, Any] | None = None) -> Refusal:
        """Return an error as its answer."""
        return Refusal(code, message, self.id, about, modern=self.revision.modern)


Message: TypeAlias = Incoming | Refusal | None
"""A request; why it is none; None for what wants no answer."""


class Messages(NamedTuple):
    """What a body holds; a batch is answered by a list."""

    all: Sequence[Message]
    is_batch: bool = False


class _Envelope(msgspec.Struct):
    jsonrpc: Any = None
    id: Raw | UnsetType = UNSET
    method: Any = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Params(msgspec.Struct):
    arguments: Raw | UnsetType = UNSET


_decode_any: Final = msgspec.json.Decoder().decode
_decode_raw: Final = msgspec.json.Decoder(Raw).decode
_decode_many: Final = msgspec.json.Decoder(list[Raw]).decode
_decode: Final = msgspec.json.Decoder(_Envelope).decode
_decode_params: Final = msgspec.json.Decoder(_Params).decode
_BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_messages(body: bytes, headers: Mapping[str, str]) -> Messages:
    """Return the messages in a body; `headers` are those of its request, names in lower case."""
    named = headers.get(VERSION, "").strip()
    if not body.lstrip(_BLANKS).startswith(b"["):
        return Messages((_read(body, headers, named),))
    if named not in _BATCHED:
        return _one(Refusal(INVALID_REQUEST, "a body is one message in this revision, no batch"))
    try:
        parts = _decode_many(body)
    except _BROKEN as error:
        return _one(Refusal(PARSE_ERROR, f"the body is no JSON: {plain_text(str(error), 200)}"))
    if not 1 <= len(parts) <= BATCH_MAX:
        return _one(Refusal(INVALID_REQUEST, f"a batch has from 1 to {BATCH_MAX} messages"))
    read = [_read(bytes(part), headers, named) for part in parts]
    return Messages([_in_batch(one) for one in read], is_batch=True)


def _one(refusal: Refusal) -> Messages:
    return Messages((refusal,))


def _in_batch(message: Message) -> Message:
    if isinstance(message, Incoming) and message.method == "initialize":
        return message.refusal(INVALID_REQUEST, "initialize is not part of a batch")
    return message


def _read(text: bytes, headers: Mapping[str, str], named: str) -> Message:
    try:
        envelope = _decode(text)
        id_ = b"" if envelope.id is UNSET else bytes(envelope.id)
    except _BROKEN as error:
        return _unreadable(text, error)
    modern = bool(named) and _is_modern(named)
    if envelope.method is UNSET:
        answers = envelope.result is not UNSET or envelope.error is not UNSET
        if answers and not modern:
            # An answer to what this server never asks; earlier servers of this era take it without a word.
            return None
        return Refusal(INVALID_REQUEST, "method: a message has one", modern=modern)
    if envelope.jsonrpc != "2.0" or not isinstance(envelope.method, str) or not _is_id(id_):
        what = "id" if not _is_id(id_) else "method" if envelope.jsonrpc == "2.0" else "jsonrpc"
        why = {
            "id": f"is a string or an integer of at most {ID_BYTES_MAX} bytes",
            "method": "is a string",
            "jsonrpc": 'is "2.0"',
        }[what]
        return Refusal(INVALID_REQUEST, f"{what} {why}", modern=modern)
    params = _read_params(envelope.params)
    if params is None:
        why = f"params is an object of at most {DEPTH_MAX} levels"
        refused = Refusal(INVALID_PARAMS, why, id_, modern=modern)
        return refused if id_ else None
    modern = modern or _names_modern(params[0])
    if not id_:
        return _noticed(named) if modern else None
    if modern:
        return _modern(id_, envelope.method, params, headers)
    revision = revision_named(named) or NEWEST_HANDSHAKE
    return _known(Incoming(id_, envelope.method, params[0], revision, params[1]))


def _unreadable(text: bytes, error: Exception) -> Refusal:
    """Return the refusal of a text that is no JSON, or JSON of another kind."""
    try:
        _decode_raw(text)
    except _BROKEN:
        return Refusal(PARSE_ERROR, f"the body is no JSON: {plain_text(str(error), 200)}")
    return Refusal(INVALID_REQUEST, "the body is one JSON-RPC request or notification")


def _is_id(id_: bytes) -> bool:
    """Whether an id, or its absence, is one that a message may have."""
    return len(id_) <= ID_BYTES_MAX and (id_[:1] in (b'"', b"") or bool(_INTEGER.fullmatch(id_)))


def _read_params(params: Raw | UnsetType) -> tuple[dict[str, Any], bytes] | None:
    """Return parameters and the text of their arguments, None where they are no object, or too deep."""
    if params is UNSET:
        return {}, b""
    try:
        values = _decode_any(params)
        if not isinstance(values, dict) or _is_deep(params, values):
            return None
        arguments = _decode_params(params).arguments
    except _BROKEN:
        return None
    return values, b"" if arguments is UNSET else bytes(arguments)


def _is_deep(text: Raw, values: dict[str, Any]) -> bool:
    """Whether values nest deeper than they may; looked at only where the text has brackets enough."""
    spelled = bytes(text)
    if spelled.count(b"[") + spelled.count(b"{") <= DEPTH_MAX:
        return False
    level: list[Any] = [values]
    for _ in range(DEPTH_MAX):
        level = [
            part
            for one in level
            for part in (one.values() if isinstance(one, dict) else one)
            if isinstance(part, dict | list)
        ]
        if not level:
            return False
    return True


def _is_modern(named: str) -> bool:
    """Whether a revision is none of the handshake era: what is not known is newer."""
    known = revision_named(named)
    return known is None or known.modern


def _names_modern(params: Mapping[str, Any]) -> bool:
    meta = params.get("_meta")
    named = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
    return isinstance(named, str) and _is_modern(named)


def _noticed(named: str) -> Refusal | None:
    """Return why a notification of the modern era is refused, None where it is not."""
    return None if named in MODERN_NAMES else _unsupported(b"null", named)


def _modern(
    id_: bytes, method: str, params: tuple[dict[str, Any], bytes], headers: Mapping[str, str]
) -> Message:
    values, arguments = params
    meta = values.get("_meta")
    version = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
    wrong = _wrong_meta(meta)
    if wrong:
        return Refusal(INVALID_PARAMS, wrong, id_, modern=True)
    differs = _differing_header(method, values, str(version), headers)
    if differs:
        return Refusal(HEADER_MISMATCH, f"{differs} does not match the body", id_, modern=True)
    revision = revision_named(version)
    if revision is None or not revision.modern:
        return _unsupported(id_, str(version))
    return _known(Incoming(id_, method, values, revision, arguments))


def _wrong_meta(meta: Any) -> str:
    """Return what is wrong with the `_meta` that every request of the modern era has, "" for nothing."""
    if not isinstance(meta, dict):
        return (
            "params._meta is missing: it names the protocol version and the client's capabilities"
        )
    if not isinstance(meta.get(META + "protocolVersion"), str):
        return f"params._meta.{META}protocolVersion is missing, or no string"
    if not isinstance(meta.get(META + "clientCapabilities"), dict):
        return f"params._meta.{META}clientCapabilities is missing, or no object"
    return ""


def _differing_header(
    method: str, params: Mapping[str, Any], version: str, headers: Mapping[str, str]
) -> str:
    """Return the header that is not equal to the body, "" for none."""
    if headers.get(VERSION, "").strip() != version:
        return VERSION
    if headers.get("mcp-method", "").strip() != method:
        return "mcp-method"
    named = params.get(_NAMED.get(method, ""))
    if named is not None and decoded_header(headers.get("mcp-name", "").strip()) != named:
        return "mcp-name"
    return ""


def _unsupported(id_: bytes, version: str) -> Refusal:
    about = {"supported": list(MODERN_NAMES), "requested": plain_text(version, 100)}
    return Refusal(UNSUPPORTED_VERSION, "unsupported protocol version", id_, about, modern=True)


def _known(request: Incoming) -> Incoming | Refusal:
    if request.method in _METHODS[request.revision.modern]:
        return request
    shown = plain_text(request.method, 100)
    return request.refusal(METHOD_NOT_FOUND, f"there is no method {shown!r} here")
