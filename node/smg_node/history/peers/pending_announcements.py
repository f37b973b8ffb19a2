"""Pending announcements: threads that other nodes announced as about to be spooled there.

Gossiped state takes its time, and a node that is cut off right after spooling cannot be asked. So
for a conversation, which any client with its id can continue on any node, every node is told
beforehand, thread by thread: until the node with the turn confirms that it is written, the others
do not continue the thread.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from smg_storage.ids import thread_of

FORETOLD_MAX: Final = 100_000
"""So many threads of others are remembered; whoever wants more is refused, and keeps no turn."""
TAKEN: Final = b"\x01"
REFUSED: Final = b"\x00"

Tag = tuple[str, str]
"""A tenant and a thread of it."""


class PendingThreads(msgspec.Struct, frozen=True, array_like=True):
    """Threads that are about to be spooled on the sender's disk: tenant and any id of the thread."""

    threads: Sequence[tuple[str, str]]


class _Said(msgspec.Struct):
    """One announcement of one thread: any id of it, the announcement's number, and when it was last
    checked.
    """

    any_id: str
    number: int
    looked_s: float


class PendingAnnouncements:
    """Announcements of other nodes. Time is monotonic seconds."""

    def __init__(self, *, now_s: Callable[[], float], most: int = FORETOLD_MAX) -> None:
        self._now_s: Final = now_s
        self._most: Final = most
        self._by_tag: Final[dict[Tag, dict[str, _Said]]] = {}
        self._by_node: Final[dict[str, dict[Tag, _Said]]] = {}
        self._numbers = 0

    def __len__(self) -> int:
        return sum(map(len, self._by_node.values()))

    def hear(self, payload: bytes, caller: str) -> bytes:
        """Record a node's announcement; REFUSED if there is no room for it, or it is invalid."""
        try:
            waits = msgspec.msgpack.decode(payload, type=PendingThreads)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return REFUSED
        if len(self) + len(waits.threads) > self._most:
            return REFUSED
        for tenant, any_id in waits.threads:
            tag = tenant, thread_of(any_id)
            self._numbers += 1
            said = _Said(any_id, self._numbers, self._now_s())
            self._by_tag.setdefault(tag, {})[caller] = said
            self._by_node.setdefault(caller, {})[tag] = said
        return TAKEN

    def of(self, tenant: str, ids: Iterable[str]) -> Mapping[str, Mapping[Tag, int]]:
        """Return which nodes announced threads of these ids, each with the threads and their
        announcements' numbers.
        """
        found: dict[str, dict[Tag, int]] = {}
        if self._by_tag:
            for tag in {(tenant, thread_of(each)) for each in ids}:
                for name, said in self._by_tag.get(tag, {}).items():
                    found.setdefault(name, {})[tag] = said.number
        return found

    def due(
        self, s_ago: float, most: int
    ) -> Mapping[str, tuple[str, Sequence[str], Mapping[Tag, int]]]:
        """Return for each node some threads, of one tenant, not checked for so long: tenant, ids,
        numbers.

        They count as checked now.
        """
        found = {}
        now_s = self._now_s()
        for name, threads in self._by_node.items():
            tag, said = next(iter(threads.items()))
            if said.looked_s > now_s - s_ago:
                continue
            tenant = tag[0]
            some = list(islice((each for each in threads.items() if each[0][0] == tenant), most))
            for each, its in some:
                its.looked_s = now_s
                threads[each] = threads.pop(each)
            ids, numbers = [its.any_id for _, its in some], {each: its.number for each, its in some}
            found[name] = tenant, ids, numbers
        return found

    def written(self, name: str, numbers: Mapping[Tag, int]) -> None:
        """Drop announcements that a node has written by now, except those repeated meanwhile."""
        threads = self._by_node.get(name, {})
        for tag, number in numbers.items():
            said = threads.get(tag)
            if said is not None and said.number == number:
                self._forget(name, tag)

    def keep_only(self, names: Collection[str]) -> None:
        """Drop all announcements of nodes that are forgotten."""
        for name in [name for name in self._by_node if name not in names]:
            for tag in list(self._by_node[name]):
                self._forget(name, tag)

    def _forget(self, name: str, tag: Tag) -> None:
        nodes, threads = self._by_tag[tag], self._by_node[name]
        del nodes[name], threads[tag]
        if not nodes:
            del self._by_tag[tag]
        if not threads:
            del self._by_node[name]
