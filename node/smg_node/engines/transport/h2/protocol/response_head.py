"""Response head: reads headers and trailers of an answer: whether it goes on, and the status it
ended with. Pure.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote_to_bytes

from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.transport import StatusCode

_TRAILERS_MAX: Final = 32
_TRAILER_MAX_CHARACTERS: Final = 2048
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_GRPC: Final = b"application/grpc"
_HTTP_STATUSES: Final = {
    400: StatusCode.INTERNAL,
    401: StatusCode.UNAUTHENTICATED,
    403: StatusCode.PERMISSION_DENIED,
    404: StatusCode.UNIMPLEMENTED,
    429: StatusCode.UNAVAILABLE,
    502: StatusCode.UNAVAILABLE,
    503: StatusCode.UNAVAILABLE,
    504: StatusCode.UNAVAILABLE,
}
"""gRPC's own table; what is not in it is UNKNOWN."""
_RESETS: Final = {
    frames.REFUSED_STREAM: StatusCode.UNAVAILABLE,
    frames.CANCEL: StatusCode.CANCELLED,
    frames.ENHANCE_YOUR_CALM: StatusCode.RESOURCE_EXHAUSTED,
    frames.INADEQUATE_SECURITY: StatusCode.PERMISSION_DENIED,
}
"""What a RST_STREAM means in gRPC; every other code is INTERNAL."""


class Ending:
    """Status, message and trailers with which a call has ended."""

    __slots__ = ("message", "status", "trailers")

    def __init__(
        self, status: StatusCode, message: str = "", trailers: Mapping[str, str] = _NOTHING
    ) -> None:
        self.status = status
        self.message = message
        self.trailers = trailers


FINE: Final = Ending(StatusCode.OK)


class Section:
    """One block of headers of an answer, read once however often it comes.

    `passing` says that the real headers still come (1xx). `refusal` is why what follows is not an answer
    of gRPC's; None where it is. `ending` is how the call has ended if these are its last headers.
    """

    __slots__ = ("ending", "passing", "refusal")

    def __init__(self, *, passing: bool, refusal: Ending | None, ending: Ending) -> None:
        self.passing = passing
        self.refusal = refusal
        self.ending = ending


def read_section(headers: Sequence[tuple[bytes, bytes]]) -> Section:
    """Return the meaning of a block of an answer's headers, whichever place it stands at."""
    found = dict(headers)
    status = _number(found.get(b":status", b""))
    return Section(
        passing=status is not None and 100 <= status < 200,
        refusal=_refusal(status, found.get(b"content-type", _GRPC)),
        ending=_ending(status, found),
    )


def reset_by(code: int) -> Ending:
    """Return how a call has ended that its server reset."""
    return Ending(
        _RESETS.get(code, StatusCode.INTERNAL), f"the server reset the call (HTTP/2 error {code})"
    )


def _refusal(status: int | None, content_type: bytes) -> Ending | None:
    if status is None:
        return Ending(StatusCode.INTERNAL, "the answer has no :status")
    if status != 200:
        return _of_http(status)
    if not content_type.lower().startswith(_GRPC):
        said = content_type[:80].decode("ascii", "replace")
        return Ending(StatusCode.UNKNOWN, f"the answer is {said}, not gRPC")
    return None


def _ending(status: int | None, found: dict[bytes, bytes]) -> Ending:
    said = found.get(b"grpc-status")
    if said is None:
        if status is not None and status != 200:
            return _of_http(status)
        return Ending(StatusCode.UNKNOWN, "the answer ended without a status", _trailers(found))
    if said == b"0" and len(found) == 1:
        return FINE
    code = _number(said)
    known = code is not None and code <= StatusCode.UNAUTHENTICATED
    raw = unquote_to_bytes(found.get(b"grpc-message", b""))
    return Ending(
        StatusCode(code) if known and code is not None else StatusCode.UNKNOWN,
        raw.decode("utf-8", "replace"),
        _trailers(found),
    )


def _of_http(status: int) -> Ending:
    meant = _HTTP_STATUSES.get(status, StatusCode.UNKNOWN)
    return Ending(meant, f"the server answered with HTTP status {status}")


def _trailers(found: dict[bytes, bytes]) -> Mapping[str, str]:
    kept: dict[str, str] = {}
    for key, value in found.items():
        # Binary ones are no text, and the rest has been read already.
        ours = key.startswith(b":") or key in (b"grpc-status", b"grpc-message", b"content-type")
        if not (ours or key.endswith(b"-bin")) and len(kept) < _TRAILERS_MAX:
            text = value.decode("utf-8", "replace")
            kept[key.decode("utf-8", "replace")] = text[:_TRAILER_MAX_CHARACTERS]
    return kept


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() and len(text) <= 9 else None
