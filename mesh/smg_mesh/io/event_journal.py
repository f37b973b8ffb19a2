"""Event journal: what happened in the mesh, in a ring for readers and as lines in the log.

One event, one line of log. The lines are written to be read without the code at hand: who, where, what,
why, and how long it had been silent.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final

from smg_mesh.io.views import EventKind, MeshEvent
from smg_mesh.swim.effects import (
    Member,
    MemberChanged,
    MemberDown,
    MemberLeft,
    MemberRefuted,
    MemberSuspected,
    MemberUp,
)

EVENTS_MAX: Final = 4096

_log = logging.getLogger("smg_mesh")

MemberEffect = MemberUp | MemberSuspected | MemberRefuted | MemberDown | MemberLeft | MemberChanged


class Journal:
    """The last 4096 events of one life of this node."""

    def __init__(self, *, wall_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._events: deque[MeshEvent] = deque(maxlen=EVENTS_MAX)
        self._last_id = 0
        self._more = asyncio.Event()
        self._closed = False

    def events(self, after: int = 0) -> Sequence[MeshEvent]:
        """Return what is kept of the events with a larger id, oldest first."""
        skip = len(self._events) - (self._last_id - after)
        if skip >= len(self._events):
            return ()
        return tuple(self._events)[max(0, skip) :]

    async def watch(self, after: int = 0) -> AsyncIterator[MeshEvent]:
        """Yield events with a larger id as they come, until `close`.

        A reader that is more than 4096 events behind misses the oldest and can tell by the ids.
        """
        while True:
            more = self._more
            for event in self.events(after):
                after = event.id
                yield event
            if self._closed and not self.events(after):
                return
            if not self._closed:
                await more.wait()

    def close(self) -> None:
        """End every watch once it has seen everything."""
        self._closed = True
        self._wake()

    def add(
        self,
        kind: EventKind,
        name: str,
        text: str,
        *,
        level: int = logging.INFO,
        detail: Mapping[str, str | int] | None = None,
    ) -> None:
        """Keep an event and log `text`."""
        self._last_id += 1
        detail = dict(detail or {})
        event = MeshEvent(
            id=self._last_id, time_ms=self._wall_ms(), kind=kind, name=name, detail=detail
        )
        self._events.append(event)
        self._wake()
        _log.log(level, "%s", text, extra={"fields": {"event": kind, "member": name, **detail}})

    def member(self, effect: MemberEffect, *, now_ms: int) -> None:
        """Keep and log what became of a member."""
        member = effect.member
        kind, what, detail = _story(effect, now_ms)
        detail |= {
            "address": str(member.address),
            "boot": member.boot,
            "incarnation": member.incarnation,
        }
        if member.heard_ms is not None:
            detail["heard_ms_ago"] = max(0, now_ms - member.heard_ms)
        level = logging.WARNING if kind == "member_down" else logging.INFO
        text = f"member {member.name} ({member.address}) {what}"
        self.add(kind, member.name, text, level=level, detail=detail)

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()


def _story(effect: MemberEffect, now_ms: int) -> tuple[EventKind, str, dict[str, str | int]]:
    """Return the kind of event, what to say after the member's name, and what it has of its own."""
    member = effect.member
    match effect:
        case MemberUp(returned=returned):
            return "member_up", "is back" if returned else "is up", {"returned": int(returned)}
        case MemberSuspected(why=why):
            what = f"is suspected: {why}; {_silence(member, now_ms)}"
            return "member_suspect", what, {"why": why, "accuser": member.accuser}
        case MemberRefuted():
            return "member_refuted", "answered the suspicion and is alive", {}
        case MemberDown(why=why):
            what = f"is dead: {why}; {_silence(member, now_ms)}"
            return "member_down", what, {"why": why, "accuser": member.accuser}
        case MemberLeft():
            return "member_left", "said goodbye and left", {}
        case MemberChanged(restarted=restarted):
            news = "restarted" if restarted else "changed its address or what it says of itself"
            return "member_changed", news, {"restarted": int(restarted)}


def _silence(member: Member, now_ms: int) -> str:
    if member.heard_ms is None:
        return "this node never heard it directly"
    return f"last heard {max(0, now_ms - member.heard_ms) / 1000:.1f} s ago"
