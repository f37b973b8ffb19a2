"""JSON rewrite: replaces model name and cached tokens in a passing byte stream. Pure.

    the name of the model    where the worker's name for it differs from the cluster's
    the tokens cached        where two workers share the request: the one that answers counts what it was handed over

Any cut of the stream into pieces gives the same bytes. Only values of the key itself are replaced:
inside a text both quotes would be escaped, so no output of a model can look like it. At most a few
hundred bytes are held back, and only where they may be the beginning of a match.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

_MODEL: Final = b'"model"'
_CACHED: Final = b'"cached_tokens"'
_BLANKS: Final = b" \t"
BLANKS_MAX: Final = 64
"""More blanks than that around a colon are not looked through."""
DIGITS_MAX: Final = 15
"""No count has more; a longer number stays as it is."""


class Replacer:
    """Replaces the value after `key` by `new`, where it matches `value`.

    `longest` is how many bytes of a value there can be; `begins` says whether some, or none, may go on to be one.
    """

    def __init__(
        self, key: bytes, value: bytes, new: bytes, longest: int, begins: Callable[[bytes], bool]
    ) -> None:
        blanks = b"[ \\t]{0,%d}" % BLANKS_MAX
        self._key = key
        self._begins = begins
        self._pattern = re.compile(
            b"(?<!\\\\)(" + re.escape(key) + blanks + b":" + blanks + b")" + value
        )
        self._reach = len(key) + 2 * BLANKS_MAX + 1 + longest
        self._new = b"\\g<1>" + new.replace(b"\\", b"\\\\")
        self._held = b""
        self._before = b""
        """The last byte that was given out."""

    def feed(self, data: bytes) -> bytes:
        """Return the bytes that are certain by now."""
        return self._said(self._held + data, last=False)

    def finish(self) -> bytes:
        """Return the bytes that were held back."""
        return self._said(self._held, last=True)

    def _said(self, data: bytes, *, last: bool) -> bytes:
        cut = len(data) if last else self._safe(data)
        self._held = data[cut:]
        ready, before = data[:cut], self._before
        if not ready:
            return b""
        self._before = ready[-1:]
        if self._key not in ready:
            return ready
        # An escape before the first quote may have gone out already.
        return self._pattern.sub(self._new, before + ready)[len(before) :]

    def _safe(self, data: bytes) -> int:
        """Return how much of `data` holds no beginning of a match that may go on in the next piece."""
        if data.endswith(b"\n"):
            # No place goes over the end of a line, and most pieces are whole events.
            return len(data)
        at = max(0, len(data) - self._reach)
        while (at := data.find(b'"', at)) >= 0:
            whole = self._pattern.match(data, at)
            if whole is None and self._may_begin(data[at:]):
                return at
            # The last quote of a whole place may look like the first one of another.
            at = at + 1 if whole is None else whole.end()
        return len(data)

    def _may_begin(self, tail: bytes) -> bool:
        """Whether `tail`, which runs to the end, is the beginning of a match and not a whole one."""
        if len(tail) < len(self._key):
            return self._key.startswith(tail)
        if not tail.startswith(self._key):
            return False
        rest = tail[len(self._key) :].lstrip(_BLANKS)
        if not rest:
            return True
        if not rest.startswith(b":"):
            return False
        return self._begins(rest[1:].lstrip(_BLANKS))


class Renamer(Replacer):
    """Replaces the name `old` of the model by `new`."""

    def __init__(self, old: str, new: str) -> None:
        spelled = msgspec.json.encode(old)

        def begins(value: bytes) -> bool:
            return len(value) < len(spelled) and spelled.startswith(value)

        value = re.escape(spelled)
        super().__init__(_MODEL, value, msgspec.json.encode(new), len(spelled), begins)


class Recounter(Replacer):
    """Replaces the number of cached tokens by `cached`."""

    def __init__(self, cached: int) -> None:
        # Where a number ends is seen by what follows it.
        value = b"[0-9]{1,%d}(?=[^0-9.eE])" % DIGITS_MAX
        super().__init__(_CACHED, value, b"%d" % cached, DIGITS_MAX + 1, _begins_number)


def _begins_number(value: bytes) -> bool:
    return not value or (value.isdigit() and len(value) <= DIGITS_MAX)
