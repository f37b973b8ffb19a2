"""Random lists of items of every type, with keys that nobody knows, by a seed."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from support.answers.responses import SAMPLES

_TEXTS: Final = (
    "plain", "", "ä€😀", "a\u2028b\u2029c\u0085d", "quote \" and \\ and \n and \t", "nul \0 inside", "e\u0301",
)  # fmt: skip
_NUMBERS: Final = (0, -1, 2**53 + 1, 2**63, -(2**63), 0.1, 1.5e300, -0.0, 1e-7)


def item_lists(seed: int, *, lists: int, items_max: int) -> Iterator[list[dict[str, Any]]]:
    """Yield so many lists of 1 to `items_max` items; among them all types come about equally often."""
    chance = Random(seed)
    kinds: list[str] = []
    for _ in range(lists):
        rows = []
        for _ in range(chance.randint(1, items_max)):
            if not kinds:
                kinds = chance.sample(sorted(SAMPLES), len(SAMPLES))
            rows.append(_item(kinds.pop(), chance))
        yield rows


def _item(kind: str, chance: Random) -> dict[str, Any]:
    row: dict[str, Any] = {"type": kind, **SAMPLES[kind]}
    for name in ("x_one", "x_two"):
        if chance.random() < 0.4:
            row[name] = _value(chance, 3)
    if kind == "message" and chance.random() < 0.5:
        row = _message(chance)
    keys = list(row)
    chance.shuffle(keys)
    return {key: row[key] for key in keys}


def _message(chance: Random) -> dict[str, Any]:
    role = chance.choice(("user", "system", "developer", "assistant"))
    kind = "input_text"
    more: dict[str, Any] = {}
    if role == "assistant":
        kind, more = "output_text", {"annotations": [], "logprobs": []}
    parts = [
        {"type": kind, "text": chance.choice(_TEXTS), **more} for _ in range(chance.randint(1, 3))
    ]
    return {"type": "message", "role": role, "content": parts, "status": "completed"}


def _value(chance: Random, depth: int) -> Any:
    match chance.randrange(7 if depth else 4):
        case 0:
            return chance.choice(_TEXTS)
        case 1:
            return chance.choice(_NUMBERS)
        case 2:
            return chance.choice((None, True, False))
        case 3:
            return chance.getrandbits(chance.randint(1, 64))
        case 4:
            return [_value(chance, depth - 1) for _ in range(chance.randrange(4))]
        case _:
            return {chance.choice("abcdé"): _value(chance, depth - 1) for _ in range(3)}


def sent(row: dict[str, Any]) -> dict[str, Any]:
    """Return what of an item as it was sent must be kept: all of it but its id."""
    return {key: value for key, value in row.items() if key != "id"}
