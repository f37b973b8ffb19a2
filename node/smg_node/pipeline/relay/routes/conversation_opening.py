"""Conversation opening: digest of how a conversation begins, the same for all turns of it. Pure.

Clients without a routing key send the whole conversation each time, so its beginning names it: the system text and the
turns up to the first of the user. Only text and media count, because clients move marks such as `cache_control` from
turn to turn. A conversation whose client rewrites its beginning is another one.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

CHARACTERS_MAX: Final = 8_192
"""Of each text: what tells two conversations apart stands in less."""
PARTS_MAX: Final = 64
DEPTH_MAX: Final = 4
_MARKS: Final = frozenset({"cache_control", "cachePoint", "prompt_cache_breakpoint"})


def opening_of(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return 32 hex digits for the conversation in a body, whose prompt stands in the fields `names`; "" for none."""
    digest, empty = blake2b(digest_size=16), True
    for name in names:
        if name == "tools":
            continue
        for part in _parts(fields.get(name)):
            empty = False
            digest.update(b"%d:" % len(part))
            digest.update(part)
    return "" if empty else digest.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    """Yield what counts of a field: all of a system text, of turns those up to the first of the user."""
    for at, item in enumerate(value if isinstance(value, list) else [value]):
        if at >= PARTS_MAX:
            return
        turn = isinstance(item, dict) and "role" in item
        yield from _texts(item)
        if turn and item["role"] == "user":
            return


def _texts(item: Any) -> Iterator[bytes]:
    if isinstance(item, str):
        if item:
            yield item[:CHARACTERS_MAX].encode("utf-8", "surrogatepass")
    elif isinstance(item, list):
        for one in item[:PARTS_MAX]:
            yield from _texts(one) if not isinstance(one, list) else ()
    elif isinstance(item, dict):
        inner = item.get("content", item.get("parts", item.get("text")))
        if inner is not None and not isinstance(inner, dict):
            yield from _texts(inner)
        elif "role" not in item:
            yield from _values(item, DEPTH_MAX)


def _values(item: Any, depth: int) -> Iterator[bytes]:
    """Yield the names and values of a part that is no text, such as an image; long ones are cut."""
    if isinstance(item, dict) and depth:
        for key in sorted(item.keys() - _MARKS)[:PARTS_MAX]:
            yield key.encode("utf-8", "surrogatepass")
            yield from _values(item[key], depth - 1)
    elif isinstance(item, list) and depth:
        for one in item[:PARTS_MAX]:
            yield from _values(one, depth - 1)
    elif isinstance(item, str):
        yield item[:CHARACTERS_MAX].encode("utf-8", "surrogatepass")
    elif isinstance(item, int | float | None):
        yield repr(item).encode()
