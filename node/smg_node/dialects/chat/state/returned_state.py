"""Returned state: opaque state that a client sends back in an assistant's message, and the blocks that it stands on. Pure.

Whatever does not fit is left out: a client may change its history, and no vendor takes state that was changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.core.generation.request import Part, TextPart, ToolCall, TurnBlock
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.chat.state.carried_blocks import GOOGLE, is_carried, unpack_blocks
from smg_node.dialects.chat.state.thought_details import as_opaque

DETAILS: Final = "reasoning_details"
EXTRA: Final = "extra_content"
_DETAILS_MAX: Final = 1_024


def has_state(message: Mapping[str, Any]) -> bool:
    """Whether a message may have any state."""
    if message.get(DETAILS):
        return True
    calls = message.get("tool_calls")
    return isinstance(calls, list) and any(isinstance(one, dict) and EXTRA in one for one in calls)


def without_carried(extra: dict[str, Any]) -> dict[str, Any]:
    """Return what templates are shown of a message's other keys: blocks that were carried are for us alone."""
    rows = extra.get(DETAILS)
    if not isinstance(rows, list) or not any(map(is_carried, rows)):
        return extra
    own = [row for row in rows if not is_carried(row)]
    rest = {key: value for key, value in extra.items() if key != DETAILS}
    return {**rest, DETAILS: own} if own else rest


def _details(message: Cursor) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of `reasoning_details` that vendors made, and the text of the blocks that were carried."""
    value = message.values.get(DETAILS)
    rows = value if isinstance(value, list) else []
    rows = [row for row in rows[:_DETAILS_MAX] if isinstance(row, dict)]
    packed = next((row["data"] for row in rows if is_carried(row)), "")
    return [row for row in rows if not is_carried(row)], packed


def returned_blocks(
    message: Cursor,
    *,
    content: str | tuple[Part, ...] | None,
    thought: str,
    calls: Sequence[ToolCall],
) -> tuple[TurnBlock, ...]:
    """Return the blocks of a message with state; nothing if none of it counts."""
    rows, packed = _details(message)
    refusal = message.values.get("refusal")
    text = _text(content)
    said_refusal = refusal if isinstance(refusal, str) and refusal and text == refusal else ""
    blocks: tuple[TurnBlock, ...] | None = None
    if packed:
        blocks = unpack_blocks(
            packed,
            content="" if said_refusal else text,
            thought=thought,
            refusal=said_refusal,
            calls=calls,
        )
    if blocks is not None:
        return blocks
    proofs = _proofs(message)
    found = tuple(map(as_opaque, rows))
    if not found and not proofs:
        return ()
    made = [TurnBlock("reasoning", thought, opaque=found)] if thought or found else []
    if text:
        made.append(TurnBlock("text", text))
    made += [
        TurnBlock("call", call.arguments, call.name, call.call_id, proofs.get(call.call_id, ()))
        for call in calls
    ]
    return tuple(made)


def _proofs(message: Cursor) -> dict[str, tuple[Opaque, ...]]:
    """Return the signatures of calls, by their ids."""
    found: dict[str, tuple[Opaque, ...]] = {}
    calls = message.values.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        extra = call.get(EXTRA) if isinstance(call, dict) else None
        google = extra.get(GOOGLE) if isinstance(extra, dict) else None
        proof = google.get("thought_signature") if isinstance(google, dict) else None
        if isinstance(proof, str) and proof and isinstance(call.get("id"), str):
            found[call["id"]] = (Opaque(GOOGLE, SIGNATURE, proof),)
    return found


def _text(content: str | tuple[Part, ...] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.text for part in content if isinstance(part, TextPart))
