"""Body reader: reads JSON request bodies whole, with limits on size, pace and inflation.

A body that says it is too large is refused before any of it is read; one that turns out to be is
refused at the first byte too many. Compressed bodies are inflated in steps, and cut as well when they
grow suspiciously: 200 times their size is more than any text a person or program wrote.
"""

import asyncio
import zlib
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.message.body_stream import ArrivedBody
from smg_node.http.message.http_request import Headers, HttpRequest
from smg_node.http.message.large_bodies import LargeBodies
from smg_node.http.message.request_head import FramingError

_JSON_TYPES: Final = frozenset({"", "application/json", "text/json"})
_WINDOW_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_JOINED_BYTES: Final = 1_048_576
_INFLATE_STEP_BYTES: Final = 262_144
_INFLATE_RATIO_MAX: Final = 200
_INFLATE_FREE_BYTES: Final = 1_048_576


class BodyReader:
    """Reads bodies under one set of limits."""

    def __init__(self, *, max_bytes: int, stall_s: float) -> None:
        self._max_bytes = max_bytes
        self._stall_s = stall_s
        self.large = LargeBodies()

    def retune(self, *, max_bytes: int, stall_s: float) -> None:
        """Apply other limits, to bodies whose reading has not begun."""
        self._max_bytes = max_bytes
        self._stall_s = stall_s

    def arrived(self, request: HttpRequest) -> bytes:
        """Return the body as `json` would if it is here and plain; b"" otherwise, use `json` then.

        TOO_LARGE over the limit.
        """
        if not request.standing.plain_body:
            return b""
        body = request.body
        if isinstance(body, ArrivedBody):
            # `take`, in here: nearly every body comes so.
            data = body.left
            body.left = b""
        elif body.whole:
            data = body.take()
        else:
            return b""
        if len(data) > self._max_bytes:
            raise self._too_large()
        return data

    async def json(self, request: HttpRequest) -> bytes:
        """Return the whole body of a request that must be JSON, inflated.

        INVALID_REQUEST with status 415 for another type or encoding, 408 for a client that stalls,
        417 for an odd Expect; TOO_LARGE over the limit.
        """
        arrived = self.arrived(request)
        if arrived:
            return arrived
        headers = request.headers
        kind = headers.get("content-type", "")
        if kind != "application/json":
            _check_type(kind)
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity" and encoding not in _WINDOW_BITS:
            raise _refused(
                415, "unsupported_media_type", "content-encoding must be gzip, deflate or absent"
            )
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._max_bytes:
            raise self._too_large()
        if "expect" in headers:
            self._answer_expectation(request)
        # Mostly it came with the head, and nothing has to be waited for.
        body = self._whole(request) if request.body.whole else await self._read(request)
        return body if encoding == "identity" else await self._inflate(body, encoding)

    def _answer_expectation(self, request: HttpRequest) -> None:
        expect = request.headers.get("expect", "")
        if not expect:
            return
        if expect.strip().lower() != "100-continue":
            raise _refused(417, "expectation_failed", "the only expectation met is 100-continue")
        if not request.body.whole:
            request.wire.interim()

    async def _read(self, request: HttpRequest) -> bytes:
        body = request.body
        try:
            parts: list[bytes] = []
            size = 0
            while True:
                async with asyncio.timeout(self._stall_s):
                    part = await body.more()
                if not part:
                    if size <= _JOINED_BYTES:
                        return b"".join(parts)
                    # Without the interpreter's lock, from this size on.
                    return await self.large.made(size, lambda: b"".join(parts))
                size += len(part)
                if size > self._max_bytes:
                    raise self._too_large()
                parts.append(part)
        except TimeoutError as error:
            raise _refused(
                408, "request_timeout", f"the body stalled for {self._stall_s:g} seconds"
            ) from error
        except FramingError as error:
            raise _refused(400, "invalid_body", "the body is not framed as HTTP demands") from error

    def _whole(self, request: HttpRequest) -> bytes:
        body = request.body.take()
        if len(body) > self._max_bytes:
            raise self._too_large()
        return body

    async def _inflate(self, packed: bytes, encoding: str) -> bytes:
        growth_max = max(_INFLATE_FREE_BYTES, len(packed) * _INFLATE_RATIO_MAX)
        limit = min(self._max_bytes, growth_max)
        inflater = zlib.decompressobj(_window_bits(packed, encoding))
        parts: list[bytes] = []
        size = 0
        left = packed
        try:
            while not inflater.eof:
                part = inflater.decompress(left, _INFLATE_STEP_BYTES)
                left = inflater.unconsumed_tail
                size += len(part)
                if size > limit:
                    raise self._too_large()
                if not part and not left and not inflater.eof:
                    raise _not_packed(encoding)
                parts.append(part)
                # Other requests get their turn between two steps of about 0.2 ms.
                await asyncio.sleep(0)
        except zlib.error as error:
            raise _not_packed(encoding) from error
        if inflater.unused_data:
            raise _not_packed(encoding)
        return b"".join(parts)

    def _too_large(self) -> SmgError:
        return SmgError(
            ErrorKind.TOO_LARGE,
            f"the body is larger than {self._max_bytes} bytes",
            code="request_too_large",
        )


def is_plain(headers: Headers) -> bool:
    """Whether such a body is uncompressed JSON sent without Expect: then only its size is checked."""
    packed = headers.get("content-encoding", "identity").strip().lower() != "identity"
    return (
        headers.get("content-type") == "application/json" and not packed and "expect" not in headers
    )


def _check_type(said: str) -> None:
    kind = said.partition(";")[0].strip().lower()
    if kind not in _JSON_TYPES and not kind.endswith("+json"):
        raise _refused(415, "unsupported_media_type", "the body must be application/json")


def _window_bits(packed: bytes, encoding: str) -> int:
    # "deflate" means zlib (RFC 9110 8.4.1.2), but some clients send it raw: without the zlib header,
    # whose low four bits are always 8.
    if encoding == "deflate" and packed and packed[0] & 0x0F != 8:
        return -15
    return _WINDOW_BITS[encoding]


def _not_packed(encoding: str) -> SmgError:
    return _refused(400, "invalid_body", f"the body is not valid {encoding}")


def _refused(status: int, code: str, message: str) -> SmgError:
    error = invalid(message, None, code)
    error.status = status
    return error
