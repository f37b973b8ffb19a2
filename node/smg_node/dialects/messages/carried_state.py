"""Carried state: opaque state of an answer's blocks in what blocks of Messages have room for. Pure.

    a thought signed by Anthropic              its own signature
    a thought of Anthropic that is not shown   redacted_thinking
    any other thought with state               an envelope as its signature, with the thought if that is not shown
    a call                                     an envelope on a thought without text before it
    a text; a call signed after its start      the same behind it
    a text that is not shown                   the same in its place

So a client sees types that it knows, and a thought is the last block only where it must be. An envelope says what its
state stands on.
"""

from typing import Final, Literal, TypeAlias

from smg_node.core.generation.events import BlockEnd
from smg_node.core.generation.opaque import REDACTED, SIGNATURE, Opaque
from smg_node.dialects.opaque_envelope import pack

ISSUER: Final = "anthropic"
OWN: Final = "smg1"
"""How whatever this node puts in a signature begins."""
Place: TypeAlias = Literal["", "next", "last", "text"]
"""What the state of an envelope stands on: its own thought, the call behind it, the block before it, or a text that
was not shown.
"""


def redaction(block: BlockEnd) -> str:
    """Return what a thought that is not shown at all has instead; "" for any other block."""
    if len(block.opaque) != 1 or block.text:
        return ""
    [opaque] = block.opaque
    return (
        opaque.data if (opaque.issuer, opaque.kind, opaque.label) == (ISSUER, REDACTED, "") else ""
    )


def carried_signature(block: BlockEnd, shown: str) -> str:
    """Return the signature that carries the state of a thought of which so much was `shown`; "" for too much of it."""
    if len(block.opaque) == 1 and shown == block.text:
        [opaque] = block.opaque
        own = (opaque.issuer, opaque.kind, opaque.label) == (ISSUER, SIGNATURE, "")
        if own and not opaque.data.startswith(OWN):
            return opaque.data
    return pack(block.opaque, "" if shown == block.text else block.text)


def envelope_at(place: Place, opaque: tuple[Opaque, ...], text: str = "") -> str:
    """Return an envelope with the state of another block; "" for too much of it."""
    return pack(opaque, text, place)
