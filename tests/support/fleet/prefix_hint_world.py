"""Nodes that share what they know of prefix caches: real indexes, real hints, a fleet of names, virtual time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from smg_mesh.sync.hint_sessions import HintSessions
from smg_node.cluster.prefix_hints.hint_ports import HintTaker
from smg_node.cluster.prefix_hints.prefix_sharing import PrefixSharing
from smg_node.engines.kv_events import Tier
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from support.state.hint_world import HintWire


class Door:
    """The mesh's way for hints, as `smg_mesh.io.shared_state.hint_transport.Hints` has it, for a time that a test tells."""

    def __init__(self, boot: int, now_ms: Callable[[], int]) -> None:
        self._boot = boot
        self._now_ms = now_ms
        self._talk: HintSessions | None = None
        self.quiet = False

    @property
    def talk(self) -> HintSessions:
        assert self._talk is not None
        return self._talk

    def connect(
        self,
        store: HintTaker,
        *,
        contents: Callable[[str], Iterable[int]],
        wanted: Callable[[str, str], bool],
        joined: Callable[[Mapping[str, int]], object],
    ) -> None:
        self._talk = HintSessions(store, contents=contents, wanted=wanted, joined=joined)
        self._talk.begin(self._boot)

    def add(self, subject: str, block_hash: int) -> None:
        self.talk.stream.add(subject, block_hash)

    def remove(self, subject: str, block_hash: int) -> None:
        self.talk.stream.remove(subject, block_hash)

    def clear(self, subject: str, *, perhaps: bool = False) -> None:
        self.talk.stream.clear(subject, perhaps=perhaps)

    def mention(self, subject: str, hashes: Iterable[int]) -> None:
        self.talk.stream.mention(subject, hashes)

    def keep_quiet(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.talk.stream.keep_quiet(quiet=quiet)

    def forget(self, subject: str) -> None:
        self.talk.reader.forget_subject(subject)

    def look_again(self) -> None:
        self.talk.reader.doubt()

    def missing(self) -> Sequence[str]:
        talk = self.talk
        return [
            name
            for name in talk.peers()
            if not talk.is_deaf(name) and not talk.reader.arrived(name)
        ]

    def silent_s(self) -> Mapping[str, float]:
        return {name: ms / 1000 for name, ms in self.talk.silent_ms(self._now_ms()).items()}

    def figures(self) -> Mapping[str, int]:
        return {"told": self.talk.stream.told, "heard": self.talk.reader.heard}


@dataclass(frozen=True)
class Named:
    """A worker."""

    id: str


class Names:
    """A fleet of which only names matter."""

    def __init__(self, *workers: str) -> None:
        self.version = 0
        self.names = list(workers)
        self.followed: set[str] = set()
        self.watchers: list[Callable[[], None]] = []

    def watch(self, changed: Callable[[], None]) -> None:
        self.watchers.append(changed)

    def workers(self) -> Sequence[Named]:
        return [Named(name) for name in sorted(self.names)]

    def following(self, worker_id: str) -> bool:
        return worker_id in self.followed

    def change(self, *workers: str) -> None:
        """Have these workers from now on."""
        self.names = list(workers)
        self.version += 1
        for changed in self.watchers:
            changed()


class SharingNode:
    """One node."""

    def __init__(self, world: "SharingWorld", name: str, *workers: str, boot: int = 1) -> None:
        self.name = name
        self.boot = boot
        self.index = PrefixIndex()
        self.fleet = Names(*workers)
        self.door = Door(boot, lambda: world.wire.now_ms)
        self.all_follow = False
        self.registered = 0
        """How many workers the cluster has by its registry, whether they have come here or not."""
        self.sharing = PrefixSharing(
            self.index,
            self.door,
            self.fleet,
            living=lambda: sorted(world.wire.nodes),
            all_follow=lambda: self.all_follow,
            registered=lambda: self.registered,
            monotonic_s=world.now_s,
        )

    @property
    def talk(self) -> HintSessions:
        return self.door.talk

    def follow(self, *workers: str) -> None:
        self.fleet.followed.update(workers)

    def stored(self, worker: str, *hashes: int, now_s: float = 1.0) -> None:
        self.index.stored(worker, hashes, Tier.DEVICE, now_s)

    def removed(self, worker: str, *hashes: int) -> None:
        self.index.removed(worker, hashes, Tier.DEVICE)

    def knows(self, worker: str, *hashes: int, now_s: float = 1.0) -> float:
        """Return how many blocks of that prompt it believes a worker has."""
        return self.index.match(list(hashes), now_s).get(worker, 0.0)


class SharingWorld:
    """Some nodes, all with the same workers."""

    def __init__(self, *names: str, workers: Sequence[str] = ("w1",)) -> None:
        self.wire: HintWire[SharingNode] = HintWire()
        self._workers = workers
        for name in names:
            self.wire.nodes[name] = SharingNode(self, name, *workers)
        self.wire.meet()

    def __getitem__(self, name: str) -> SharingNode:
        return self.wire.nodes[name]

    def now_s(self) -> float:
        return self.wire.now_ms / 1000

    def join(self, name: str, *, boot: int = 1) -> SharingNode:
        """Let another node come."""
        node = SharingNode(self, name, *self._workers, boot=boot)
        self.wire.nodes[name] = node
        self.wire.meet()
        return node

    def leave(self, name: str) -> None:
        """Let a node go."""
        del self.wire.nodes[name]
        self.wire.meet()

    def run(self, span_s: float) -> None:
        """Let time pass; each second all look around, and they take in all that waits at once."""
        for turn in range(round(span_s * 10)):
            if turn % 10 == 0:
                for node in self.wire.nodes.values():
                    node.sharing.look_around()
            self.talk()

    def talk(self) -> None:
        """Let a tenth of a second pass in which nobody looks around."""
        self.wire.turn()
        for node in self.wire.nodes.values():
            node.sharing.catch_up()
