"""Answer body: an origin's answer put together under a limit, inflated where it was sent compressed. Pure."""

import zlib
from collections.abc import Callable
from typing import Final, TypeAlias

Charge: TypeAlias = Callable[[int], None]
"""Told of bytes before they are kept; what it raises ends the fetch."""

_GZIP: Final = 16 + zlib.MAX_WBITS
_WINDOWS: Final = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}
PLAIN: Final = ("", "identity")


class BodyError(Exception):
    """The body is not what its head says; the message is for the client."""


class TooLargeError(Exception):
    """The body has more bytes than it may have."""


class AnswerBody:
    """Body of one answer in `encoding`; at most `bytes_max` bytes, both as it is sent and as it is kept.

    BodyError for an encoding that nobody asked for.
    """

    def __init__(self, encoding: str, bytes_max: int, charge: Charge) -> None:
        window = _WINDOWS.get(encoding)
        if window is None and encoding not in PLAIN:
            raise BodyError("it is sent in an encoding that is not taken")
        self._inflater = None if window is None else zlib.decompressobj(window)
        self._max = bytes_max
        self._charge = charge
        self._received = 0
        self._pieces: list[bytes] = []
        self.size = 0
        """Bytes that are kept."""

    def feed(self, data: bytes) -> None:
        """Take what came; TooLargeError beyond the limit, BodyError for what cannot be inflated."""
        self._received += len(data)
        if self._received > self._max:
            raise TooLargeError
        if self._inflater is None:
            self._keep(data)
            return
        try:
            # One byte more than may be, so that it shows.
            plain = self._inflater.decompress(data, self._max - self.size + 1)
        except zlib.error as error:
            raise BodyError("it cannot be inflated") from error
        self._keep(plain)

    def so_far(self) -> bytes:
        """Return what is kept by now."""
        if len(self._pieces) > 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0] if self._pieces else b""

    def finish(self) -> bytes:
        """Return the whole; BodyError if there is nothing, or its end is missing."""
        if self._inflater is not None and not self._inflater.eof:
            raise BodyError("its end is missing")
        if not self.size:
            raise BodyError("it is empty")
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        if self.size + len(data) > self._max:
            raise TooLargeError
        self._charge(len(data))
        self.size += len(data)
        self._pieces.append(data)
