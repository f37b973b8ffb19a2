"""Which threads wait on other nodes' disks, as those nodes said before anybody was told that a turn is kept.

What a node says of itself comes round in its own time, and a node that is cut off right after cannot be asked. So for
a conversation, which can be gone on with by whoever knows its id, this is told to every node beforehand, thread by
thread: until the one that has the turn says that it is written, the others do not go on without it.
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
    """Threads that are about to wait on the sender's disk: tenant and any id of the thread."""

    threads: Sequence[tuple[str, str]]


class _Said(msgspec.Struct):
    """What one node said of one thread: any id of it, the number of the saying, and when it was looked into last."""

    any_id: str
    number: int
    looked_s: float


class PendingAnnouncements:
    """What other nodes have told this one. Time is monotonic seconds."""

    def __init__(self, *, now_s: Callable[[], float], most: int = FORETOLD_MAX) -> None:
        self._now_s: Final = now_s
        self._most: Final = most
        self._by_tag: Final[dict[Tag, dict[str, _Said]]] = {}
        self._by_node: Final[dict[str, dict[Tag, _Said]]] = {}
        self._numbers = 0

    def __len__(self) -> int:
        return sum(map(len, self._by_node.values()))

    def hear(self, payload: bytes, caller: str) -> bytes:
        """Take in what a node says of itself; REFUSED if that cannot be kept in mind, or makes no sense."""
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
        """Return which nodes said that one of these waits with them, each with the threads and the sayings' numbers."""
        found: dict[str, dict[Tag, int]] = {}
        if self._by_tag:
            for tag in {(tenant, thread_of(each)) for each in ids}:
                for name, said in self._by_tag.get(tag, {}).items():
                    found.setdefault(name, {})[tag] = said.number
        return found

    def due(
        self, s_ago: float, most: int
    ) -> Mapping[str, tuple[str, Sequence[str], Mapping[Tag, int]]]:
        """Return for each node some threads, of one tenant, that were not looked into for so long: tenant, ids, numbers.

        They count as looked into now.
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
        """Forget what a node has written by now, but for what it said again meanwhile."""
        threads = self._by_node.get(name, {})
        for tag, number in numbers.items():
            said = threads.get(tag)
            if said is not None and said.number == number:
                self._forget(name, tag)

    def keep_only(self, names: Collection[str]) -> None:
        """Forget all that was said by nodes that nobody knows any more."""
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
