"""Puts one model name for another into an answer that passes by. Pure: any cut into pieces gives the same bytes.

Only where it is the value of a key `"model"`: inside a text both quotes would be escaped, so nothing that a
model says can look like it. At most a few hundred bytes are held back, and only where they may be the beginning
of such a place.
"""

import re
from typing import Final

import msgspec

_KEY: Final = b'"model"'
_BLANKS: Final = b" \t"
BLANKS_MAX: Final = 64
"""More blanks than that around a colon are not looked through."""


class Renamer:
    """Replaces the name `old` by `new`."""

    def __init__(self, old: str, new: str) -> None:
        self._spelled = msgspec.json.encode(old)
        new_spelled = msgspec.json.encode(new)
        blanks = b"[ \\t]{0,%d}" % BLANKS_MAX
        self._pattern = re.compile(
            b'(?<!\\\\)("model"' + blanks + b":" + blanks + b")" + re.escape(self._spelled)
        )
        self._reach = len(_KEY) + 2 * BLANKS_MAX + 1 + len(self._spelled)
        self._new = b"\\g<1>" + new_spelled.replace(b"\\", b"\\\\")
        self._held = b""
        self._before = b""
        """The last byte that was given out."""

    def feed(self, data: bytes) -> bytes:
        """Return what can be said of all that came until now."""
        return self._said(self._held + data, last=False)

    def finish(self) -> bytes:
        """Return what was held back."""
        return self._said(self._held, last=True)

    def _said(self, data: bytes, *, last: bool) -> bytes:
        cut = len(data) if last else self._safe(data)
        self._held = data[cut:]
        ready, before = data[:cut], self._before
        if not ready:
            return b""
        self._before = ready[-1:]
        if _KEY not in ready:
            return ready
        # An escape before the first quote may have gone out already.
        return self._pattern.sub(self._new, before + ready)[len(before) :]

    def _safe(self, data: bytes) -> int:
        """Return how much of `data` holds no beginning of a place that may go on in what comes."""
        if data.endswith(b"\n"):
            return len(
                data
            )  # no place goes over the end of a line, and most pieces are whole events
        at = max(0, len(data) - self._reach)
        while (at := data.find(b'"', at)) >= 0:
            whole = self._pattern.match(data, at)
            if whole is None and self._may_begin(data[at:]):
                return at
            # The last quote of a whole place may look like the first one of another.
            at = at + 1 if whole is None else whole.end()
        return len(data)

    def _may_begin(self, tail: bytes) -> bool:
        """Whether `tail`, which runs to the end, is the beginning of a place and not the whole of one."""
        if len(tail) < len(_KEY):
            return _KEY.startswith(tail)
        if not tail.startswith(_KEY):
            return False
        rest = tail[len(_KEY) :].lstrip(_BLANKS)
        if not rest:
            return True
        if not rest.startswith(b":"):
            return False
        value = rest[1:].lstrip(_BLANKS)
        return len(value) < len(self._spelled) and self._spelled.startswith(value)
