"""Thought rows: tells the log probabilities of a worker's thought apart from those of its answer. Pure.

Many servers have one list for all that a model printed. In a stream a chunk says whose its rows are;
in a whole answer they are found by their text. Where that does not tell, the list stays as it is.
"""

from collections.abc import Sequence
from typing import Any, Final

from smg_node.dialects.openai.logprobs import CONTENT, THOUGHT
from smg_node.pipeline.relay.filters.answer_filter import AnswerFilter, event_of, objects, text_at
from smg_node.pipeline.relay.relay_call import KEPT_MAX_BYTES

THOUGHT_FIELDS: Final = ("reasoning_content", "reasoning")


class ThoughtRows(AnswerFilter):
    """Moves the rows of thoughts to a list of their own."""

    whole_max_bytes = KEPT_MAX_BYTES

    def chunk(self, chunk: dict[str, Any], raw: bytes) -> bytes:
        """See `AnswerFilter`."""
        moved = [move_rows(choice, "delta") for choice in objects(chunk["choices"])]
        return event_of(chunk) if any(moved) else raw

    def whole(self, answer: dict[str, Any]) -> bool:
        """See `AnswerFilter`."""
        moved = [move_rows(choice, "message") for choice in objects(answer["choices"])]
        return any(moved)


def move_rows(choice: dict[str, Any], place: str) -> bool:
    """Move a choice's rows of the thought that it says at `place`; whether there were some."""
    told, said = choice.get("logprobs"), choice.get(place)
    rows = told.get(CONTENT) if isinstance(told, dict) else None
    thought = text_at(said, *THOUGHT_FIELDS)
    if not isinstance(told, dict) or not isinstance(rows, list) or told.get(THOUGHT):
        return False
    if not thought or not rows:
        return False
    if place == "delta" and not text_at(said, "content"):
        choice["logprobs"] = {**told, CONTENT: [], THOUGHT: rows}
        return True
    parts = _parts([text_at(row, "token") for row in rows], thought, text_at(said, "content"))
    if parts is None:
        return False
    (first, behind), (begin, end) = parts
    choice["logprobs"] = {**told, CONTENT: rows[begin:end], THOUGHT: rows[first:behind]}
    return True


def _parts(
    tokens: Sequence[str], thought: str, text: str
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return which of these tokens are the thought's, and which the text's; None where neither is found."""
    printed = "".join(tokens)
    at = printed.find(thought)
    behind = printed.find(text, at + len(thought)) if at >= 0 else -1
    if behind < 0:
        return None
    return _span(tokens, at, at + len(thought)), _span(tokens, behind, behind + len(text))


def _span(tokens: Sequence[str], begin: int, end: int) -> tuple[int, int]:
    """Return the first token that has a character from `begin` on, and the one behind the last before `end`."""
    first, last, at = len(tokens), 0, 0
    for index, token in enumerate(tokens):
        if at < end and at + len(token) > begin:
            first, last = min(first, index), index + 1
        at += len(token)
    return (first, last) if first < last else (0, 0)
