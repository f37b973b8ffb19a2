"""Conversations whose prompts a vendor caches: bodies turn by turn, and what one account alone would read of them."""

from collections.abc import Sequence
from typing import Any, Final

from support.providers.stand_ins import Desk

MARK: Final = {"cache_control": {"type": "ephemeral"}}
WORDS: Final = "the quick brown fox jumps over the lazy dog and runs on through the wood "


def messages_body(model: str, talk: int, turn: int, *, system: int = 6_000) -> dict[str, Any]:
    """Return the body of one turn, counted from 0, of one conversation: marked at its end, as clients do it.

    All of a conversation differs from all others, its system prompt of `system` bytes too.
    """
    said: list[dict[str, Any]] = []
    for at in range(turn + 1):
        text = f"question {at} of {talk}: {WORDS * 4}"
        if at < turn:
            said.append({"role": "user", "content": text})
            said.append({"role": "assistant", "content": f"answer {at} of {talk}: {WORDS * 2}"})
        else:
            said.append({"role": "user", "content": [{"type": "text", "text": text, **MARK}]})
    head = f"You are number {talk}. "
    return {
        "model": model,
        "max_tokens": 16,
        "system": head + (WORDS * (system // len(WORDS) + 1))[:system],
        "messages": said,
    }


def chat_body(model: str, talk: int, turn: int, *, system: int = 6_000) -> dict[str, Any]:
    """Return the same turn in Chat Completions, where nobody marks anything."""
    body = messages_body(model, talk, turn, system=system)
    said = [{"role": "system", "content": body["system"]}]
    for message in body["messages"]:
        content = message["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        said.append({"role": message["role"], "content": text})
    return {"model": model, "max_tokens": 16, "messages": said}


def read_alone(kind: str, path: str, bodies: Sequence[dict[str, Any]], **settings: Any) -> int:
    """Return how many tokens one account reads from its cache where all these come to it, in this order, at once."""
    desk = Desk(kind, models=("*",), **settings)
    for body in bodies:
        desk.told(path, body)
    told = desk.vendor.bill.told()
    return sum(row["cached_tokens"] for row in told["rows"])
