"""Request log: the last requests as they came over the wire, for judges to compare."""

from base64 import b64encode
from collections import deque
from typing import Any, NamedTuple

from smg_chaos.vendor.access.sigv4 import SignedRequest


class _Row(NamedTuple):
    number: int
    at_s: float
    request: SignedRequest


class RequestLog:
    """The last `kept` requests."""

    def __init__(self, kept: int) -> None:
        self._rows: deque[_Row] = deque(maxlen=kept)
        self.count = 0

    def add(self, request: SignedRequest, at_s: float) -> int:
        """Keep a request; return its number, from 1."""
        self.count += 1
        self._rows.append(_Row(self.count, at_s, request))
        return self.count

    def clear(self) -> None:
        """Forget them, and count anew."""
        self._rows.clear()
        self.count = 0

    def told(self, last: int) -> list[dict[str, Any]]:
        """Return the last so many, oldest first."""
        rows = list(self._rows)[-last:] if last > 0 else []
        return [
            {
                "number": row.number,
                "at_s": row.at_s,
                "method": row.request.method,
                "path": row.request.raw_path,
                "query": row.request.raw_query,
                "headers": dict(row.request.headers),
                "body": b64encode(row.request.body).decode(),
            }
            for row in rows
        ]
