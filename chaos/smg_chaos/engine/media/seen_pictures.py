"""Seen pictures: what an engine makes of the pictures of a request, by which its answers may differ.

A trusting engine looks a picture up by the hash that it was sent before it looks at the picture, as vLLM's encoder
cache does: the same hash with another picture is the first one.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final

from smg_chaos.engine.media.media_checks import Mistake, Trusted
from smg_chaos.engine.media.media_inputs import SentMedia

KEPT_MAX: Final = 1024
"""Pictures that the cache remembers."""


class EncoderCache:
    """What pictures are, by their hashes; `trusting` is whether hashes are believed."""

    def __init__(self, *, trusting: bool) -> None:
        self._trusting = trusting
        self._known: OrderedDict[str, str] = OrderedDict()
        self.hits = 0

    def mistakes(self, batches: Sequence[SentMedia]) -> Iterator[Mistake]:
        """Yield each picture that is sent under the hash of another one."""
        for media in batches:
            for name, content in zip(media.hashes, media.contents(), strict=False):
                if self._known.get(name, content) != content:
                    yield Mistake(
                        Trusted.OTHER_ANSWER, f"another picture under the hash {name[:16]}"
                    )

    def seen(self, batches: Sequence[SentMedia], found: Sequence[Mistake]) -> list[str]:
        """Return a digest of each picture as the engine sees it; `found` is what was wrong and not refused."""
        odd = [one.message for one in found if one.trusted is Trusted.OTHER_ANSWER]
        seen: list[str] = []
        for media in batches:
            for at, content in enumerate(media.contents()):
                what = _mixed(content, odd) if odd else content
                seen.append(
                    self._looked_up(media.hashes[at], what) if at < len(media.hashes) else what
                )
        return seen

    def _looked_up(self, name: str, content: str) -> str:
        known = self._known
        if name not in known:
            known[name] = content
            if len(known) > KEPT_MAX:
                known.popitem(last=False)
            return content
        self.hits += 1
        known.move_to_end(name)
        return known[name] if self._trusting else content


def _mixed(content: str, odd: Sequence[str]) -> str:
    return hashlib.sha256("\0".join([content, *odd]).encode()).hexdigest()
