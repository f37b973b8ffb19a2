"""Split rule: which side of a route's split a key is on; the same on all nodes and after every restart. Pure.

    in  <=>  hash(route, split name, key) / 2^64 < share

A larger share keeps all keys that were in. Targets carry the rule as a label, so that placement needs no definitions.
"""

from functools import lru_cache
from typing import Final, Literal, TypeAlias

import msgspec
from xxhash import xxh3_64_intdigest

from smg_node.providers.routes.route_ways import Split

Side: TypeAlias = Literal["in", "out", ""]
"""On the split's targets, on the others; "" once it is over."""
_SPAN: Final = float(2**64)


class SplitRule(msgspec.Struct, frozen=True):
    """A split as its targets carry it. `until_ms` is wall-clock time, None for no end."""

    name: str
    share: float
    key: str
    until_ms: int | None = None

    def side(self, route: str, key: str, now_ms: int) -> Side:
        """Return the side of a key of the route with that public name."""
        if self.until_ms is not None and now_ms >= self.until_ms:
            return ""
        # Lengths keep the parts apart.
        whole = f"{len(route)}:{route}{len(self.name)}:{self.name}{key}"
        drawn = xxh3_64_intdigest(whole.encode("utf-8", "surrogatepass")) / _SPAN
        return "in" if drawn < self.share else "out"


def split_label(split: Split) -> str:
    """Return the rule of a split as a label of its targets."""
    until_ms = split.until_ms
    end = "" if until_ms is None else str(until_ms)
    return f"{split.name} {split.share!r} {split.key} {end}".rstrip()


@lru_cache(maxsize=256)
def rule_of(label: str) -> SplitRule | None:
    """Return the rule in such a label; None for a label that somebody else wrote."""
    name, share, key, end = (*label.split(" "), "", "", "", "")[:4]
    try:
        return SplitRule(name, float(share), key, int(end) if end else None)
    except ValueError:
        return None
