"""Client connection: HTTP/1.1, one request at a time, with minimal CPU.

Of an answer's body only the end is kept: it has the counts of tokens, of a stream as of a whole
answer.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, milliseconds

_HEAD_BYTES_MAX: Final = 1 << 16
_TAIL_BYTES: Final = 2048
_BODY_BYTES_MAX: Final = 1 << 24
_STREAM_END: Final = b"0\r\n\r\n"
_COUNT: Final = re.compile(rb'"(prompt_tokens|completion_tokens)":\s*(\d+)')
_FINISH: Final = re.compile(rb'"finish_reason":\s*"(\w+)"')
_FAILED: Final = re.compile(rb'"error":\s*\{')
_CODE: Final = re.compile(rb'"code":\s*"(\w+)"')
REASONS: Final = ("used_up", "held_elsewhere", "no_owner")
_MESSAGES: Final = (
    (b"is used up", "used_up"),
    (b"this node has nothing left", "held_elsewhere"),
)
"""Words of messages by which releases without the header name their reason."""
_SECOND_MS: Final = 1_000
_KINDS: Final = ("requests", "tokens")


@dataclass
class Heard:
    """Answer to one request on a connection."""

    status: int = 0
    why: str = "the connection was lost"
    head_us: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    tail: bytes = b""

    def limit(self) -> tuple[int, int, int]:
        """Return limit, remaining and milliseconds to the reset, of requests or else of tokens;
        UNKNOWN where absent.
        """
        for kind in _KINDS:
            said = [self.headers.get(f"x-ratelimit-{what}-{kind}", "") for what in _WHAT]
            if said[0]:
                return _number(said[0]), _number(said[1]), milliseconds(said[2])
        return UNKNOWN, UNKNOWN, UNKNOWN

    def tokens(self) -> tuple[int, int]:
        """Return the answer's counts of tokens, of the prompt and of its own; UNKNOWN where
        absent.
        """
        counts = {name: int(count) for name, count in _COUNT.findall(self.tail)}
        return counts.get(b"prompt_tokens", UNKNOWN), counts.get(b"completion_tokens", UNKNOWN)

    def retry(self) -> tuple[int, int]:
        """Return how many milliseconds a client shall wait, and how many of them may be rounding
        up; UNKNOWN where nothing, or nothing that counts, is said.
        """
        exact_ms = _number(self.headers.get("retry-after-ms", ""))
        if exact_ms >= 0:
            return exact_ms, 0
        seconds = _number(self.headers.get("retry-after", ""))
        return (seconds * _SECOND_MS, _SECOND_MS) if seconds >= 0 else (UNKNOWN, 0)

    def reason(self) -> str:
        """Return why a request was refused, by header, error code or message; "" if nothing says
        it.
        """
        if self.status != 429:
            return ""
        if said := self.headers.get("x-smg-limit-reason", ""):
            return said
        codes = [code.decode() for code in _CODE.findall(self.tail)]
        if found := next((code for code in codes if code in REASONS), ""):
            return found
        return next((reason for words, reason in _MESSAGES if words in self.tail), "")

    def finish(self) -> str:
        """Return the answer's finish reason; `error` for one that ended with an error, "" if it has
        none.
        """
        if self.status == 200 and _FAILED.search(self.tail):
            return "error"
        found = _FINISH.findall(self.tail)
        return found[-1].decode() if found else ""


_WHAT: Final = ("limit", "remaining", "reset")


def _number(text: str) -> int:
    """Return a number of a header; UNKNOWN for anything else, negative numbers included."""
    try:
        return int(text)
    except ValueError:
        return UNKNOWN


class Caller(asyncio.Protocol):
    """One connection. `over` is called once a request has ended, with the answer, or when it never
    can.
    """

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._transport: asyncio.Transport | None = None
        self._over: Callable[[Caller, Heard], None] | None = None
        self._heard = Heard()
        self._head = b""
        self._left = UNKNOWN
        self._received = 0
        self._closes = False

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the open request."""
        self._transport = None
        if self._over is not None:
            self._heard.status = 0
            self._end()

    def ask(self, request: bytes, over: Callable[["Caller", Heard], None]) -> None:
        """Send a request."""
        assert self._over is None, "one request at a time"
        assert self._transport is not None, "the connection is open"
        self._over, self._heard, self._head = over, Heard(), b""
        self._left, self._received = UNKNOWN, 0
        self._transport.write(request)

    def give_up(self, why: str) -> None:
        """Close the connection; a request that is open ends as one that was not answered."""
        self._heard.why = why
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read the head, then count the body and keep its end."""
        heard = self._heard
        if self._over is None:
            self.give_up("it says what nobody asked for")
            return
        if not heard.status:
            self._head += data
            head, found, data = self._head.partition(b"\r\n\r\n")
            if not found:
                if len(head) > _HEAD_BYTES_MAX:
                    self.give_up("the head does not end")
                return
            self._read(head)
        heard.tail = (heard.tail + data)[-_TAIL_BYTES:]
        self._received += len(data)
        if self._received > _BODY_BYTES_MAX:
            self.give_up("the body does not end")
        elif self._received >= self._left >= 0 or (
            self._left < 0 and heard.tail.endswith(_STREAM_END)
        ):
            heard.why = ""
            self._end()

    def _read(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        word = first.split(" ")[1:2]
        heard = self._heard
        heard.head_us = self._now_us()
        heard.status = int(word[0]) if word and word[0].isdigit() else 599
        pairs = (line.partition(":") for line in lines)
        heard.headers = {name.lower(): value.strip() for name, _, value in pairs}
        self._left = _number(heard.headers.get("content-length", ""))
        self._closes = heard.headers.get("connection", "").lower() == "close"

    def _end(self) -> None:
        over, self._over = self._over, None
        assert over is not None
        if self._closes and self._transport is not None:
            self._transport.close()
        over(self, self._heard)
