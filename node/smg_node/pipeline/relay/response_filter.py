"""Response filter: reads a passing answer's usage, corrects its model and cached tokens. Pure.

It searches for `"usage": {…}` as JSON spells it; inside a text the quotes would be escaped. Of
several the last one counts, as in a stream that repeats it with every chunk.
"""

import re
from typing import Final

import msgspec

from smg_node.dialects.worker_usage import worker_usage
from smg_node.pipeline.relay.json_rewrite import Recounter, Renamer, Replacer

USAGE_MAX_BYTES: Final = 4_096
"""No server says so much about so little."""
_START: Final = re.compile(rb'(?<!\\)"usage"[ \t\r\n]{0,64}:[ \t\r\n]{0,64}\{')
_KEY: Final = b'"usage"'
_TAIL_BYTES: Final = len(_KEY) + 131
_decode: Final = msgspec.json.Decoder().decode


class UsageReader:
    """Reads usage from an answer fed in any pieces; its counts are 0 where the answer has none."""

    def __init__(self) -> None:
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.completion_tokens = 0
        self.tells_cached = False
        """Whether it said how much was cached."""
        self._held = b""
        self._open = False
        """Whether what is held begins with the brace of a usage."""

    def feed(self, data: bytes) -> None:
        """Feed the next piece."""
        held = self._held + data if self._held else data
        while True:
            if not self._open:
                # The expression looks behind itself, which is slow; the key is rare, and found fast.
                found = _START.search(held) if _KEY in held else None
                if found is None:
                    self._held = held[-_TAIL_BYTES:]
                    return
                held = held[found.end() - 1 :]
                self._open = True
            end = _end_of_object(held)
            if end is None and len(held) <= USAGE_MAX_BYTES:
                self._held = held
                return
            self._open = False
            if end is None:
                held = held[1:]
                continue
            self._take(held[:end])
            held = held[end:]

    def _take(self, text: bytes) -> None:
        try:
            told = _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if not isinstance(told, dict):
            return
        used = worker_usage(told)
        self.prompt_tokens, self.completion_tokens = used.prompt, used.answer
        self.cached_tokens, self.tells_cached = used.cached, used.tells_cached


class ResponseFilter:
    """Filter of one answer's bytes.

    An `opaque` (compressed) answer passes unread.
    """

    def __init__(self, theirs: str, ours: str) -> None:
        """Rename the model to `ours` where a worker calls it `theirs`."""
        self.usage = UsageReader()
        self.opaque = False
        self._replacers: list[Replacer] = [Renamer(theirs, ours)] if theirs != ours else []

    def feed(self, piece: bytes) -> bytes:
        """Return the bytes to pass to the client now."""
        if self.opaque:
            return piece
        self.usage.feed(piece)
        for one in self._replacers:
            piece = one.feed(piece)
        return piece

    def finish(self) -> bytes:
        """Return the remaining bytes."""
        rest = b""
        if not self.opaque:
            for one in self._replacers:
                rest = one.feed(rest) + one.finish()
        return rest

    def recount(self, cached: int) -> None:
        """Replace the number of cached tokens from here on."""
        self._replacers.append(Recounter(cached))


def _end_of_object(text: bytes) -> int | None:
    """Return the end of the object that `text` begins with, None if it goes on. Usages hold no
    texts with braces.
    """
    depth = 0
    for at, byte in enumerate(text[: USAGE_MAX_BYTES + 1]):
        if byte == 0x7B:
            depth += 1
        elif byte == 0x7D:
            depth -= 1
            if depth == 0:
                return at + 1
    return None
