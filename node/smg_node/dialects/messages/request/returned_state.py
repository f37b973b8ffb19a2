"""Returned state: opaque state that clients send back in thoughts, and blocks of a turn in their order with it.

A signature that this node did not make is Anthropic's. An envelope holds what any issuer wants back; it says whether
that stands on its own thought, on the call behind it, on the block before it, or on a text that was not shown.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

from msgspec.structs import replace

from smg_node.core.generation.opaque import REDACTED, SIGNATURE, Opaque
from smg_node.core.generation.request import ToolCall, TurnBlock
from smg_node.dialects.messages.carried_state import ISSUER, OWN
from smg_node.dialects.opaque_envelope import Envelope, unpack

Spoken: TypeAlias = str | ToolCall | TurnBlock | Envelope
"""What an assistant said, in its order: a text, a call, a thought, or state of what stands beside it."""
_NEXT: Final = "next"
_TEXT: Final = "text"


def state_in(signature: str) -> Envelope | None:
    """Return the state in a thought's signature; None for this node's own, which carries none."""
    found = unpack(signature)
    if found is not None:
        return found
    if signature.startswith(OWN):
        return None
    return Envelope((Opaque(ISSUER, SIGNATURE, signature),))


def redacted_thought(data: str) -> TurnBlock:
    """Return a thought that was not shown at all."""
    return TurnBlock("reasoning", "", opaque=(Opaque(ISSUER, REDACTED, data),))


def blocks_in_order(spoken: Iterable[Spoken]) -> tuple[TurnBlock, ...]:
    """Return the blocks of a turn, each with its state; state of what the client left out is left out."""
    blocks: list[TurnBlock] = []
    waiting: tuple[Opaque, ...] = ()
    for one in spoken:
        if isinstance(one, str):
            if one and not one.isspace():
                blocks.append(TurnBlock("text", one))
        elif isinstance(one, ToolCall):
            blocks.append(TurnBlock("call", one.arguments, one.name, one.call_id, waiting))
            waiting = ()
        elif isinstance(one, TurnBlock):
            blocks.append(one)
        elif one.place == _NEXT:
            waiting += one.opaque
        elif one.place == _TEXT:
            blocks.append(TurnBlock("text", one.thought, opaque=one.opaque))
        elif blocks:
            blocks[-1] = replace(blocks[-1], opaque=blocks[-1].opaque + one.opaque)
    return tuple(blocks)
