"""Open state: opaque state of vendors among the items of a response: on a thought, on a message, or in an item of its own. Pure.

a thought           its encrypted content is an envelope
a message's phase   stands in the message, as in the vendor's own API
anything else       a reasoning item without content behind the item, whose envelope says so
"""

from collections.abc import Sequence
from typing import Any

from smg_node.core.generation.opaque import Opaque
from smg_node.dialects.opaque_envelope import pack
from smg_node.dialects.responses.events.numbered_events import NumberedEvent, Script
from smg_node.dialects.responses.items.item_document import ItemDoc, item_from
from smg_node.dialects.responses.items.item_state import LAST, PHASE, PHASES


def phase_in(opaque: Sequence[Opaque]) -> str:
    """Return the phase of a message, "" for none."""
    return next((one.data for one in opaque if one.kind == PHASE and one.data in PHASES), "")


def without_phase(opaque: Sequence[Opaque]) -> tuple[Opaque, ...]:
    """Return the state that has no place in a message or a call."""
    return tuple(one for one in opaque if one.kind != PHASE)


def state_item(
    script: Script, item_id: str, index: int, opaque: tuple[Opaque, ...]
) -> tuple[list[NumberedEvent], ItemDoc] | None:
    """Return the events and the item of state that stands alone; None if it is too large for that."""
    packed = pack(opaque, place=LAST)
    if not packed:
        return None
    bare: dict[str, Any] = {
        "id": item_id,
        "type": "reasoning",
        "summary": [],
        "content": [],
        "status": "in_progress",
    }
    doc = item_from({**bare, "status": "completed", "encrypted_content": packed})
    told = [
        script.say("response.output_item.added", {"output_index": index, "item": bare}),
        script.say("response.output_item.done", {"output_index": index, "item": doc.values()}),
    ]
    return told, doc
