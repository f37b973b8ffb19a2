"""Shown state: opaque state of vendors in the messages of Chat Completions, where these vendors' own clients look for it. Pure.

tool_calls[].extra_content.google.thought_signature    signatures of calls, as Google's own OpenAI door has them
reasoning_details[]                                    rows of OpenRouter, as they came
reasoning_details[] of type reasoning.encrypted        all other: the blocks of the answer as one text
"""

from collections.abc import Iterable, Sequence
from typing import Any

from smg_node.core.generation.events import BlockEnd
from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.dialects.chat.state.carried_blocks import (
    GOOGLE,
    CarriedBlock,
    carried,
    has_own_place,
    pack_blocks,
)
from smg_node.dialects.chat.state.thought_details import detail_rows
from smg_node.dialects.chat.view import ChatView


def call_state(opaque: Sequence[Opaque]) -> dict[str, Any] | None:
    """Return the `extra_content` of a call; None if it has none."""
    found = (one.data for one in opaque if one.issuer == GOOGLE and one.kind == SIGNATURE)
    proof = next(found, None)
    return None if proof is None else {GOOGLE: {"thought_signature": proof}}


class ShownState:
    """State of one choice, block after block."""

    __slots__ = ("_blocks", "_carries", "_rows", "_view")

    def __init__(self, view: ChatView) -> None:
        self._view = view
        self._blocks: list[CarriedBlock] = []
        self._carries = False
        self._rows = 0

    def add(self, block: BlockEnd) -> list[dict[str, Any]]:
        """Take the next block; return the rows of `reasoning_details` that are told with it."""
        view = self._view
        shown, apart = view.include_reasoning, view.separate_reasoning
        self._blocks.append(carried(block, shown=shown, apart=apart))
        if not block.opaque:
            return []
        own = has_own_place(block, on_calls=not view.legacy_call)
        self._carries = self._carries or not own
        return self._numbered(detail_rows(block.opaque)) if own else []

    def rest(self) -> list[dict[str, Any]]:
        """Return the rows that are told at the end."""
        packed = pack_blocks(self._blocks) if self._carries else ""
        return self._numbered([{"type": "reasoning.encrypted", "data": packed}]) if packed else []

    def _numbered(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the rows under numbers of their own, because clients join those of one number."""
        told = []
        for row in rows:
            told.append({**row, "index": self._rows})
            self._rows += 1
        return told


def details_of(blocks: Iterable[BlockEnd], view: ChatView) -> list[dict[str, Any]]:
    """Return the `reasoning_details` of a whole answer."""
    state = ShownState(view)
    return [row for block in blocks for row in state.add(block)] + state.rest()
