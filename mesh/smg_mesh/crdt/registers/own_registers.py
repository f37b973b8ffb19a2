"""Own registers: writes of this node's registers, at once, but none more often than every so often.

A write that comes too early waits, and a newer write of the same register takes its place: what is
spread is always the latest write.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from smg_mesh.crdt.deadline_heap import Deadlines
from smg_mesh.crdt.registers.register_codec import Register, encode_write

Place: TypeAlias = tuple[str, str]
Say: TypeAlias = Callable[[str, str, bytes], None]
"""Spreads (kind, key, content); nobody may answer by writing a register."""


class _Own:
    """The last word about one register, and when it was said last."""

    __slots__ = ("latest", "said_ms", "waits")

    def __init__(self, latest: Register) -> None:
        self.latest = latest
        self.said_ms: int | None = None
        self.waits = False


class OwnRegisters:
    """This node's own registers: latest writes that were spread, and those that wait."""

    def __init__(self, say: Say, *, apart_ms: int) -> None:
        self._say: Final = say
        self._apart_ms: Final = apart_ms
        self._own: dict[Place, _Own] = {}
        self._due: Final[Deadlines[Place, int]] = Deadlines()
        """Of those that wait, and of those that are no more and may be forgotten."""

    def __len__(self) -> int:
        return len(self._own)

    def write(self, register: Register, *, now_ms: int) -> None:
        """Say it now, or as soon as the last saying of this register is long enough ago."""
        place = (register.kind, register.key)
        own = self._own.get(place)
        if own is None:
            own = self._own[place] = _Own(register)
        own.latest = register
        if own.said_ms is None or now_ms - own.said_ms >= self._apart_ms:
            self._speak(place, own, now_ms)
        elif not own.waits:
            own.waits = True
            self._due.put(place, own.said_ms + self._apart_ms)

    def forget(self, place: Place) -> None:
        """Say nothing more about a register whose time is over."""
        self._own.pop(place, None)
        self._due.forget(place)

    def tick(self, now_ms: int) -> None:
        """Say what has waited long enough."""
        while (first := self._due.first()) is not None and first[0] <= now_ms:
            place = first[1]
            own = self._own[place]
            if own.waits:
                self._speak(place, own, now_ms)
            else:
                self.forget(place)

    def due_ms(self) -> int | None:
        """Return when `tick` has something to do."""
        first = self._due.first()
        return None if first is None else first[0]

    def _speak(self, place: Place, own: _Own, now_ms: int) -> None:
        own.said_ms = now_ms
        own.waits = False
        if own.latest.ttl_ms:
            self._due.forget(place)
        else:
            self._due.put(place, now_ms + self._apart_ms)
        self._say(place[0], place[1], encode_write(own.latest))
