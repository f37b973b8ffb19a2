"""Statement reader: takes thousands of small statements about workers out of a few registers.

What a register says as a whole is compared with what it said before, so that a reader hears of single
statements. A statement that moved to another register of its owner is in both for a moment when
rumors overtake each other: the later register counts.
"""

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

from smg_mesh.crdt.registers.register_codec import Register
from smg_mesh.sync.bound_views import BoundRegisters

V = TypeVar("V")


class Statement(Generic[V]):
    """Contents of one register."""

    __slots__ = ("register", "values", "whole")

    def __init__(self, register: Register) -> None:
        self.register = register
        self.values: Mapping[str, V] = {}
        self.whole = True
        """None of its statements gave way to one of a later register."""


class Statements(Generic[V]):
    """Statements of the other nodes about workers, under one kind of register."""

    def __init__(
        self,
        registers: BoundRegisters,
        kind: str,
        me: str,
        *,
        decode: Callable[[bytes], Mapping[str, V]],
        changed: Callable[[str, V | None, V | None], None],
        settled: Callable[[list[str]], None] = lambda worker_ids: None,
    ) -> None:
        """`decode` raises ValueError for what makes no sense.

        `changed(worker_id, before, after)` hears of each statement of each node, `settled` once per register of all.
        """
        self._me: Final = me
        self._decode: Final = decode
        self._changed: Final = changed
        self._settled: Final = settled
        self._said: dict[tuple[str, str], Statement[V]] = {}
        self._about: dict[str, dict[str, Statement[V]]] = {}
        self._speakers: dict[str, int] = {}
        self.garbage = 0
        """Registers heard that made no sense."""
        for register in registers.items(kind):
            self._hear(register, False)
        registers.watch(kind, self._hear)

    @property
    def speakers(self) -> int:
        """How many other nodes say something."""
        return len(self._speakers)

    def about(self, worker_id: str) -> Mapping[str, Statement[V]]:
        """Return which nodes say something about a worker, and where."""
        return self._about.get(worker_id, {})

    def _hear(self, register: Register, gone: bool) -> None:
        if register.owner == self._me:
            return
        place = (register.owner, register.key)
        said = self._said.get(place)
        if gone:
            if said is not None:
                self._replace(said, {})
                self._forget(place)
            return
        if said is None:
            said = self._said[place] = Statement(register)
            self._speakers[register.owner] = self._speakers.get(register.owner, 0) + 1
        elif said.whole and said.register.content == register.content:
            said.register = register
            return
        said.register = register
        try:
            values = self._decode(register.content)
        except ValueError:
            self.garbage += 1
            values = {}
        self._replace(said, values)

    def _forget(self, place: tuple[str, str]) -> None:
        del self._said[place]
        left = self._speakers[place[0]] - 1
        if left:
            self._speakers[place[0]] = left
        else:
            del self._speakers[place[0]]

    def _replace(self, said: Statement[V], values: Mapping[str, V]) -> None:
        before, said.values, said.whole = said.values, values, True
        told: list[str] = []
        for worker_id, value in before.items():
            if worker_id not in values and self._withdraw(said, worker_id):
                self._changed(worker_id, value, None)
                told.append(worker_id)
        for worker_id, value in values.items():
            if self._state(said, worker_id, before.get(worker_id), value):
                told.append(worker_id)
        if told:
            self._settled(told)

    def _withdraw(self, said: Statement[V], worker_id: str) -> bool:
        """Return whether that register was the one that counted."""
        owner = said.register.owner
        about = self._about.get(worker_id, {})
        if about.get(owner) is not said:
            return False
        del about[owner]
        if not about:
            del self._about[worker_id]
        return True

    def _state(self, said: Statement[V], worker_id: str, before: V | None, value: V) -> bool:
        """Let it count, unless a later register says something else; return whether it is new."""
        about = self._about.setdefault(worker_id, {})
        owner = said.register.owner
        other = about.get(owner)
        if other is None:
            before = None
        elif other is not said:
            if other.register.order > said.register.order:
                said.whole = False
                return False
            other.whole = False
            before = other.values.get(worker_id)
        about[owner] = said
        if before == value:
            return False
        self._changed(worker_id, before, value)
        return True
