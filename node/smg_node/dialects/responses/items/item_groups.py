"""Item groups: items of a history that stay together in truncation, unmatched tool calls, and where a model spoke last.

Truncating a history must never separate a call from its output, nor an answer from its question. So
the unit is a group: a message of the user and everything up to the next one. System and developer
messages are groups of their own, and never dropped, also where they stand in the middle of a turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from smg_node.core.cooperative_steps import Steps
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.items.item_types import CALL_OUTPUTS, MADE, OUTPUTS


@dataclass(frozen=True, slots=True)
class Group:
    """Indexes in a list of items, ascending, that stay or go together; a `pinned` group always
    stays.
    """

    places: tuple[int, ...]
    pinned: bool


def groups_of(items: Sequence[ItemDoc]) -> tuple[Group, ...]:
    """Return the groups in the order of their first items; every item is in exactly one."""
    groups: list[tuple[list[int], bool]] = []
    turn: list[int] | None = None
    for place, item in enumerate(items):
        if item.type == "message" and item.role in ("system", "developer"):
            groups.append(([place], True))
        elif turn is None or (item.type == "message" and item.role == "user"):
            turn = [place]
            groups.append((turn, False))
        else:
            turn.append(place)
    return tuple(Group(tuple(places), pinned) for places, pinned in groups)


def last_model_item(items: Sequence[ItemDoc]) -> int:
    """Return the index of the last item that a model, or a tool it called, has made; -1 for none."""
    for place in range(len(items) - 1, -1, -1):
        item = items[place]
        if item.type in MADE or (item.type == "message" and item.role == "assistant"):
            return place
    return -1


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Call ids, in order: of outputs without an earlier call, and of calls without an output."""

    orphans: tuple[str, ...]
    unanswered: tuple[str, ...]


def unmatched(items: Sequence[ItemDoc]) -> Steps[Unmatched]:
    """Return the unmatched calls and outputs, in steps."""
    waiting: dict[str, bool] = {}
    called: set[str] = set()
    alone: dict[str, bool] = {}
    for item in items:
        if item.type in CALL_OUTPUTS:
            call_id = str(item.values().get("call_id", ""))
            called.add(call_id)
            waiting[call_id] = True
        elif item.type in OUTPUTS:
            call_id = str(item.values().get("call_id", ""))
            waiting.pop(call_id, None)
            if call_id not in called:
                alone[call_id] = True
        else:
            continue
        yield item.weight
    return Unmatched(tuple(alone), tuple(waiting))
