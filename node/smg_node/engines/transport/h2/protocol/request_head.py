"""Request head: HPACK block of a call's headers; the part that all calls of a method share is
packed once. Pure.
"""

from collections.abc import Mapping
from typing import Final

from smg_node.engines.transport.h2.protocol.hpack import indexed, length_of, literal
from smg_node.engines.transport.transport import is_proper_key, is_proper_value

_POST: Final = b"\x83"  # one byte each, from the static table
_HTTP: Final = b"\x86"
_HTTPS: Final = b"\x87"
_AUTHORITY: Final = 1
_PATH: Final = 4
_SAME: Final = (
    literal(b"te", b"trailers")
    + literal(b"content-type", b"application/grpc")
    # Some servers log it, some proxies tell gRPC by it.
    + literal(b"user-agent", b"grpc-smg-node")
)
_TIMEOUT: Final = b"\x00\x0cgrpc-timeout"
_METHODS_MAX: Final = 64  # a contract has about fifteen
_KEYS_MAX: Final = 64  # those of tracing, and those that an operator lets through
_DIGITS_MAX: Final = 8  # of a timeout, by gRPC's grammar
_MILLISECONDS_MAX: Final = 10**_DIGITS_MAX - 1
_SHORT_MAX: Final = 0x7E  # bytes of a string whose length is one byte
_LENGTHS: Final = tuple(bytes((size,)) for size in range(_SHORT_MAX + 1))


class RequestHeads:
    """The headers of the calls to one server."""

    __slots__ = ("_authority", "_keys", "_methods", "_scheme")

    def __init__(self, authority: str, *, secure: bool) -> None:
        self._authority = authority.encode("ascii", "replace")
        self._scheme = _HTTPS if secure else _HTTP
        self._methods: dict[str, bytes] = {}
        self._keys: dict[str, bytes] = {}
        """Names of headers, packed; nothing for those that may not travel."""

    def block(self, method: str, headers: Mapping[str, str] | None, timeout_s: float) -> bytes:
        """Return the whole header block of one call of `/package.Service/Method`."""
        same = self._methods.get(method)
        if same is None:
            same = self._packed(method)
        timeout_ms = int(timeout_s * 1000)
        if 0 < timeout_ms <= _MILLISECONDS_MAX:
            timeout = b"%dm" % timeout_ms
        else:
            timeout = _odd_timeout(timeout_s)
        pieces = [same, _LENGTHS[len(timeout)], timeout]
        if headers:
            for key, value in headers.items():
                name = self._keys.get(key)
                if name is None:
                    name = self._key(key)
                if name and is_proper_value(value):
                    text = value.encode()
                    size = len(text)
                    pieces += name, _LENGTHS[size] if size <= _SHORT_MAX else length_of(text), text
        return b"".join(pieces)

    def _key(self, key: str) -> bytes:
        if len(self._keys) >= _KEYS_MAX:
            self._keys.clear()
        packed = b""
        if is_proper_key(key):
            name = key.encode()
            packed = b"\x00" + length_of(name) + name
        self._keys[key] = packed
        return packed

    def _packed(self, method: str) -> bytes:
        if len(self._methods) >= _METHODS_MAX:
            self._methods.clear()
        packed = (
            _POST
            + self._scheme
            + indexed(_PATH, method.encode())
            + indexed(_AUTHORITY, self._authority)
            + _SAME
            + _TIMEOUT
        )
        self._methods[method] = packed
        return packed


def _odd_timeout(timeout_s: float) -> bytes:
    """Return a `grpc-timeout` value for a time that is none, or too long for milliseconds of eight
    digits.
    """
    if timeout_s < 1:
        return b"1m"
    return b"%dS" % min(int(timeout_s), 10**_DIGITS_MAX - 1)
