"""Truth: what a recorded answer says, read straight out of the vendor's JSON and by no code of the product.

Texts, calls, tokens, and why it ended. Streams are put together as the vendor's documents say: by index, by concatenation,
or from the whole that the last event has.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Tokens(NamedTuple):
    """What an answer cost. `cached` and `written` are parts of the prompt, `thought` one of the answer."""

    prompt: int
    answer: int
    cached: int = 0
    thought: int = 0
    written: int = 0
    written_long: int = 0


@dataclass
class Truth:
    """One answer. `finish` is what ended it, as events name it; `tokens` is None where nothing is said of them.

    `error`: it is an error, sent with a good status. `calls` have their arguments as JSON. `state` is what the vendor
    wants back with thoughts, texts and calls: signatures, redacted and encrypted thoughts, in their order.
    """

    text: str = ""
    thought: str = ""
    refusal: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    finish: str = ""
    tokens: Tokens | None = None
    error: bool = False
    state: list[str] = field(default_factory=list)


def event_objects(stream: bytes) -> Iterator[Any]:
    """Yield the JSON of every event of a stream."""
    text = stream.decode().replace("\r\n", "\n").replace("\r", "\n")
    for block in re.split(r"\n\n+", text):
        lines = [line[5:].removeprefix(" ") for line in block.split("\n") if line[:5] == "data:"]
        data = "\n".join(lines)
        if data and data.strip() != "[DONE]":
            yield json.loads(data)


def number(told: Any, *path: str) -> int:
    """Return a number inside of objects, 0 for none."""
    for name in path:
        told = told.get(name) if isinstance(told, dict) else None
    return told if isinstance(told, int) else 0


def arguments(text: str) -> Any:
    """Return arguments, {} for none; text that was cut as it is."""
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return text
