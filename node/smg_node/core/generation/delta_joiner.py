"""Delta joiner: merges text deltas that may wait for each other: many tokens become one event.

Only deltas of one block are joined, and only between two events of any other kind: text, log probabilities, ids and
token counts of a block are the same before and after, in the same order, and so is everything that is not a delta.
Between choices order is free: their blocks interleave anyhow, and a joined delta stands where its first part stood.

`take` returns whether events may not wait: any other event than a delta, the first text of a block,
and what would be too much to keep.
"""

from collections.abc import Sequence
from typing import Final

from smg_node.core.generation.events import BlockStart, Delta, Event

HELD_MAX: Final = 512
"""So many deltas are kept at most; who sends more than that at once is not helped by waiting."""


class Joiner:
    """Buffer of one stream's events until they are taken."""

    __slots__ = ("_held", "_unsaid")

    def __init__(self) -> None:
        self._held: list[Event] = []
        self._unsaid: set[int] = set()

    @property
    def empty(self) -> bool:
        """Whether nothing is kept."""
        return not self._held

    def take(self, events: Sequence[Event]) -> bool:
        """Keep events; true if they have to be given now."""
        urgent = False
        for event in events:
            if type(event) is not Delta:
                urgent = True
                if type(event) is BlockStart:
                    self._unsaid.add(event.choice)
            elif event.text and event.choice in self._unsaid:
                self._unsaid.discard(event.choice)
                urgent = True
        self._held.extend(events)
        return urgent or len(self._held) >= HELD_MAX

    def give(self) -> tuple[list[Event], int]:
        """Return what was kept, joined, and how many events that saved; nothing is kept afterwards."""
        held, self._held = self._held, []
        told = joined(held)
        return told, len(held) - len(told)


def joined(events: Sequence[Event]) -> list[Event]:
    """Return these events with the deltas of a block as one, as far as only deltas are between them."""
    told: list[Event] = []
    groups: dict[int, list[Delta]] = {}
    places: dict[int, int] = {}
    for event in events:
        if type(event) is not Delta:
            _settle(told, groups, places)
            told.append(event)
            continue
        group = groups.get(event.choice)
        if group is not None:
            assert group[0].block == event.block, "a block starts with an event of its own"
            group.append(event)
            continue
        groups[event.choice] = [event]
        places[event.choice] = len(told)
        told.append(event)
    _settle(told, groups, places)
    return told


def _settle(told: list[Event], groups: dict[int, list[Delta]], places: dict[int, int]) -> None:
    """Put each group where its first delta stands; there are no groups afterwards."""
    for choice, group in groups.items():
        if len(group) > 1:
            told[places[choice]] = _one(group)
    groups.clear()
    places.clear()


def _one(group: Sequence[Delta]) -> Delta:
    first = group[0]
    return Delta(
        first.choice,
        first.block,
        "".join([delta.text for delta in group]),
        sum([delta.tokens for delta in group]),
        tuple([logprob for delta in group for logprob in delta.logprobs]),
        tuple([token_id for delta in group for token_id in delta.ids]),
    )
