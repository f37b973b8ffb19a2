"""Replicas in one process, and a network between them that may lose, double and reorder anything.

Rumors are handed to everybody (a mesh does that); exchanges are done piece by piece through the `Pieces`
protocol, as `sync.exchange` does, so that they can be cut between any two.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from smg_mesh.config import StateOptions
from smg_mesh.swim.messages import News
from smg_mesh.sync.exchange.piece_interface import REGISTERS, PieceState
from smg_mesh.sync.replica import Replica
from smg_mesh.sync.replica_effects import Count, Keep, OpenExchanges, SpreadRumor, Wake, Wish

SMALL = replace(
    StateOptions(),
    documents={"settings": 2, "workers": 3, "audit": 1, "cluster": 1},
    tables={"sticky": 2},
)
WALL_MS = 1_800_000_000_000


@dataclass
class Clocks:
    """One time for all; `wrong_ms` is how wrong each wall clock is."""

    now_ms: int = 1_000
    wrong_ms: dict[str, int] = field(default_factory=dict)


class Peer:
    """One node: a replica and what it asked for."""

    def __init__(self, world: "ReplicaWorld", name: str, boot: int) -> None:
        self.world = world
        self.name = name
        self.boot = boot
        self.said: list[News] = []
        self.conversed: list[OpenExchanges] = []
        self.counted: list[Count] = []
        self.keeps: dict[str, None] = {}
        self.wake_ms: int | None = None
        self.seq = boot
        clocks = world.clocks
        self.replica = Replica(
            name,
            boot,
            options=world.options,
            rng=Random(world.rng.getrandbits(64)),
            now_ms=lambda: clocks.now_ms,
            wall_ms=lambda: WALL_MS + clocks.now_ms + clocks.wrong_ms.get(name, 0),
            tell=self.tell,
        )
        self.settings = self.replica.namespace("settings")
        self.workers = self.replica.namespace("workers")

    def tell(self, wish: Wish) -> None:
        match wish:
            case SpreadRumor(kind=kind, key=key, content=content):
                assert len(content) <= 512
                assert len(kind) <= 32
                assert len(key) <= 128
                self.seq += 1
                self.said.append(News(self.name, kind, key, self.seq, content))
            case OpenExchanges():
                self.conversed.append(wish)
            case Count():
                self.counted.append(wish)
            case Keep(name=name):
                self.keeps[name] = None
            case Wake(due_ms=due_ms):
                self.wake_ms = due_ms
            case _:
                pass

    def values(self, name: str = "settings") -> dict[str, bytes]:
        return {held.key: held.value or b"" for held in self.replica.namespace(name).items()}

    def dumps(self) -> dict[str, bytes]:
        return {name: self.replica.dump(name) for name in self.replica.pieces()}


class ReplicaWorld:
    """Peers a, b, c …; every one knows of all others."""

    def __init__(self, count: int, *, options: StateOptions = SMALL, seed: int = 1) -> None:
        self.options = options
        self.rng = Random(seed)
        self.clocks = Clocks()
        self.boots = 0
        self.peers: dict[str, Peer] = {}
        for index in range(count):
            self.start(chr(ord("a") + index))

    def start(self, name: str, dumps: dict[str, bytes] | None = None, absent_ms: int = 0) -> Peer:
        """Begin a life, with what an earlier one kept."""
        self.boots += 1
        peer = self.peers[name] = Peer(self, name, self.boots << 20)
        for piece, content in (dumps or {}).items():
            peer.replica.load(piece, content)
        peer.replica.loaded(absent_ms)
        self.meet()
        return peer

    def stop(self, name: str) -> Peer:
        gone = self.peers.pop(name)
        self.meet()
        return gone

    def meet(self) -> None:
        living = [(peer.name, peer.boot) for peer in self.peers.values()]
        for peer in self.peers.values():
            peer.replica.set_members(living)

    def __getitem__(self, name: str) -> Peer:
        return self.peers[name]

    # ── Time ─────────────────────────────────────────────────────────────────

    def pass_time(self, ms: int, step_ms: int = 100) -> None:
        """Let time go by and call everybody who asked for it, without any network."""
        until_ms = self.clocks.now_ms + ms
        while self.clocks.now_ms < until_ms:
            self.clocks.now_ms = min(until_ms, self.clocks.now_ms + step_ms)
            for peer in list(self.peers.values()):
                if peer.wake_ms is not None and peer.wake_ms <= self.clocks.now_ms:
                    peer.wake_ms = None
                    peer.replica.tick()

    # ── Network ──────────────────────────────────────────────────────────────

    def rumors(self, *, loss: float = 0.0, double: float = 0.0, shuffle: bool = False) -> int:
        """Hand out everything that was said; return how much it was."""
        news = [one for peer in self.peers.values() for one in peer.said]
        for peer in self.peers.values():
            peer.said = []
        letters = [
            (to, one)
            for one in news
            for to in self.peers.values()
            for _ in range(1 + (self.rng.random() < double))
            if to.name != one.origin and self.rng.random() >= loss
        ]
        if shuffle:
            self.rng.shuffle(letters)
        for to, one in letters:
            to.replica.hear(one)
        return len(news)

    def exchange(
        self, opener: str, answerer: str, *, full: bool = False, cut_after: int = -1
    ) -> None:
        """Let two converse; with `cut_after` only so many merges happen."""
        mine, theirs = self.peers[opener], self.peers[answerer]
        left, right = mine.replica, theirs.replica
        acquainted = left.history == right.history != b""
        if acquainted and left.stale and not right.stale:
            left.forget_stale()
        elif acquainted and right.stale and not left.stale:
            right.forget_stale()
        merges = 0
        names = differing(left.holdings(full=full), right.holdings(full=full))
        for name in [*names, REGISTERS] if full else names:
            epoch = max(left.epoch(name), right.epoch(name))
            asked = left.summary(name, epoch)
            held = right.summary(name, epoch)
            epoch = max(left.epoch(name), right.epoch(name))
            for side, update, peer in (
                (left, right.missing(name, epoch, asked), answerer),
                (right, left.missing(name, epoch, held), opener),
            ):
                if update:
                    if merges == cut_after:
                        return
                    side.merge(name, epoch, update, peer=peer)
                    merges += 1
        left.met(answerer, full=full)
        right.met(opener, full=full)

    def settle(self, rounds: int = 8) -> None:
        """Let rumors arrive and everybody converse, with time between, until all is quiet."""
        for _ in range(rounds):
            self.rumors()
            names = list(self.peers)
            for opener in names:
                for answerer in names:
                    if opener < answerer:
                        self.exchange(opener, answerer)
            self.pass_time(1_000, 500)
            if self.agreed() and not any(peer.said for peer in self.peers.values()):
                return

    def agreed(self) -> bool:
        digests = {peer.replica.digest() for peer in self.peers.values()}
        return len(digests) <= 1


def differing(left: Sequence[PieceState], right: Sequence[PieceState]) -> list[str]:
    """Return the names of pieces that are not the same on both sides, sorted."""
    mine = {piece.name: (piece.epoch, piece.digest) for piece in left}
    theirs = {piece.name: (piece.epoch, piece.digest) for piece in right}
    return sorted(name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name))
