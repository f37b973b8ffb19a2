"""Prompt cache of a vendor: beginnings of prompts by their chain of hashes, with a time to live and a least length.

Marked: the client says where a beginning ends, and only such ends are written; reading looks back over the last 20
pieces before a mark. Automatic: every block of 128 tokens is an end. Below the least length nothing is cached, and
nobody says so.
"""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from smg_chaos.vendor.answers.conversation import Segment

LOOK_BACK: Final = 20
BLOCK_TOKENS: Final = 128
_BLOCK_BYTES: Final = BLOCK_TOKENS * 4
ENTRIES_MAX: Final = 200_000
LONG_S: Final = 3_600


class CacheUse(NamedTuple):
    """Tokens that one prompt read from the cache and wrote to it, of them those that live for an hour."""

    read: int = 0
    written: int = 0
    written_long: int = 0


class _End(NamedTuple):
    digest: bytes
    tokens: int
    ttl_s: int | None


class PromptCache:
    """The beginnings of one account."""

    def __init__(self) -> None:
        self._ends_s: OrderedDict[bytes, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._ends_s)

    def clear(self) -> None:
        """Forget everything."""
        self._ends_s.clear()

    def marked(
        self, scope: str, segments: Sequence[Segment], least_tokens: int, now_s: float
    ) -> CacheUse:
        """Look a prompt with the client's marks up, and write what it marks."""
        ends = _ends(scope, segments)
        marks = [at for at, end in enumerate(ends) if end.ttl_s is not None]
        marks = [at for at in marks if ends[at].tokens >= least_tokens]
        if not marks:
            return CacheUse()
        read_at = self._longest(ends, marks, now_s)
        read = ends[read_at].tokens if read_at >= 0 else 0
        written = long = at_tokens = 0
        for at in marks:
            end = ends[at]
            assert end.ttl_s is not None
            if at > read_at:
                new = end.tokens - max(read, at_tokens)
                written += new
                long += new if end.ttl_s >= LONG_S else 0
            at_tokens = end.tokens
            self._keep(end.digest, now_s + end.ttl_s)
        if read_at >= 0:
            ttl_s = ends[next((at for at in marks if at >= read_at), marks[-1])].ttl_s
            self._keep(ends[read_at].digest, now_s + (ttl_s or 0))
        return CacheUse(read, written, long)

    def automatic(
        self,
        scope: str,
        segments: Sequence[Segment],
        least_tokens: int,
        ttl_s: float,
        now_s: float,
    ) -> CacheUse:
        """Look a prompt up by its blocks, and write all of them."""
        digest = blake2b(scope.encode(), digest_size=16)
        text = b"\0".join(segment.content for segment in segments)
        blocks = len(text) // _BLOCK_BYTES
        if blocks * BLOCK_TOKENS < least_tokens:
            return CacheUse()
        read, reading = 0, True
        for at in range(blocks):
            digest.update(text[at * _BLOCK_BYTES : (at + 1) * _BLOCK_BYTES])
            key = digest.digest()
            reading = reading and self._ends_s.get(key, 0.0) > now_s
            if reading:
                read = (at + 1) * BLOCK_TOKENS
            self._keep(key, now_s + ttl_s)
        read = read if read >= least_tokens else 0
        return CacheUse(read, blocks * BLOCK_TOKENS - read)

    def _longest(self, ends: Sequence[_End], marks: Sequence[int], now_s: float) -> int:
        for mark in reversed(marks):
            for at in range(mark, max(-1, mark - LOOK_BACK), -1):
                if self._ends_s.get(ends[at].digest, 0.0) > now_s:
                    return at
        return -1

    def _keep(self, digest: bytes, until_s: float) -> None:
        self._ends_s[digest] = max(until_s, self._ends_s.get(digest, 0.0))
        self._ends_s.move_to_end(digest)
        if len(self._ends_s) > ENTRIES_MAX:
            self._ends_s.popitem(last=False)


def _ends(scope: str, segments: Sequence[Segment]) -> list[_End]:
    """Return the end of every piece."""
    digest, tokens, ends = blake2b(scope.encode(), digest_size=16), 0, []
    for segment in segments:
        digest.update(len(segment.content).to_bytes(4, "big") + segment.content)
        tokens += segment.tokens
        ends.append(_End(digest.digest(), tokens, segment.ttl_s))
    return ends
