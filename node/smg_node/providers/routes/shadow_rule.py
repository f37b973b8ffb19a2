"""Shadow rule: which requests of a route are copied, and how many a day; a target carries it as a label. Pure."""

from functools import lru_cache
from typing import Final

import msgspec

from smg_node.providers.routes.route_ways import Shadow

_TEXT: Final = "text"


class ShadowRule(msgspec.Struct, frozen=True):
    """A share (0 to 1) of the requests, at most `per_day` a UTC day in the whole cluster; with texts kept or not."""

    share: float
    per_day: int
    keep_text: bool = False


def shadow_label(shadow: Shadow) -> str:
    """Return the rule of a shadow as the label of its target."""
    return f"{shadow.share!r} {shadow.per_day} {_TEXT if shadow.keep_text else ''}".rstrip()


@lru_cache(maxsize=256)
def shadow_rule_of(label: str) -> ShadowRule | None:
    """Return the rule in such a label; None for a label that somebody else wrote."""
    share, per_day, text = (*label.split(" "), "", "", "")[:3]
    try:
        return ShadowRule(float(share), int(per_day), text == _TEXT)
    except ValueError:
        return None
