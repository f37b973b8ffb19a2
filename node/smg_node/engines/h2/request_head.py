"""The headers of a call, packed: what is the same for every call of a method is packed once."""

from collections.abc import Mapping
from typing import Final

from smg_node.engines.h2.hpack import indexed, length_of, literal
from smg_node.engines.transport import metadata_of

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
_DIGITS_MAX: Final = 8  # of a timeout, by gRPC's grammar


class RequestHeads:
    """The headers of the calls to one server."""

    __slots__ = ("_authority", "_methods", "_scheme")

    def __init__(self, authority: str, *, secure: bool) -> None:
        self._authority = authority.encode("ascii", "replace")
        self._scheme = _HTTPS if secure else _HTTP
        self._methods: dict[str, bytes] = {}

    def block(self, method: str, headers: Mapping[str, str] | None, timeout_s: float) -> bytes:
        """Return the whole header block of one call of `/package.Service/Method`."""
        same = self._methods.get(method)
        if same is None:
            same = self._packed(method)
        timeout = _timeout(timeout_s)
        block = b"%b%b%c%b" % (same, _TIMEOUT, len(timeout), timeout)
        if headers:
            for key, value in metadata_of(headers):
                name, text = key.encode(), value.encode()
                block += b"\x00%b%b%b%b" % (length_of(name), name, length_of(text), text)
        return block

    def _packed(self, method: str) -> bytes:
        if len(self._methods) >= _METHODS_MAX:
            self._methods.clear()
        packed = (
            _POST
            + self._scheme
            + indexed(_PATH, method.encode())
            + indexed(_AUTHORITY, self._authority)
            + _SAME
        )
        self._methods[method] = packed
        return packed


def _timeout(timeout_s: float) -> bytes:
    """Return a time as gRPC writes it: at most eight digits and a unit, never none at all."""
    value = b"%d" % max(int(timeout_s * 1000), 1)
    if len(value) <= _DIGITS_MAX:
        return value + b"m"
    return b"%dS" % min(int(timeout_s), 10**_DIGITS_MAX - 1)
