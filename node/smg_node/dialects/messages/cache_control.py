"""Cache control: `cache_control` of blocks and tools, by which clients mark what Anthropic's API is to keep."""

from typing import Final

from smg_node.core.json_cursor import Cursor

_TTLS: Final = ("5m", "1h")
_EPHEMERAL: Final = {"type": "ephemeral"}


def check_cache_control(place: Cursor) -> None:
    """Check `cache_control`, which has no effect: engines keep prompts by themselves."""
    value = place.values.get("cache_control")
    if value is None or value == _EPHEMERAL:
        return
    control = place.object("cache_control")
    if control is not None:
        control.word("type", ("ephemeral",), required=True)
        control.word("ttl", _TTLS)
