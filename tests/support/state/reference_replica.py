"""The simplest replica that keeps what the real one promises: everything in one dictionary, sent whole."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from smg_mesh.config import StateOptions
from smg_mesh.crdt.entry import Entry, Held
from smg_mesh.crdt.namespace import Heard, StateError
from smg_mesh.swim.effects import Rng
from smg_mesh.swim.messages import News
from smg_mesh.sync.exchange.piece_interface import PieceState
from smg_mesh.sync.replica_effects import DigestIs, Keep, OpenExchanges, SpreadRumor, Wake, Wish

Roots = dict[str, dict[str, Entry]]
"""By key, then by owner."""
TICK_MS = 1_000


@dataclass(frozen=True)
class ReferenceSums:
    digest: str
    entries: int
    size_bytes: int = 0


@dataclass(frozen=True)
class ReferenceRow:
    owner: str
    hlc: int
    content: bytes


class ReferenceSpace:
    def __init__(self, name: str, replica: "ReferenceReplica") -> None:
        self.name = name
        self.replica = replica
        self.roots: Roots = {}
        self.heard: list[Heard] = []

    def latest(self, key: str) -> Held | None:
        owners = self.roots.get(key)
        if not owners:
            return None
        owner = max(owners, key=lambda one: (owners[one].hlc, one))
        return Held(key, owner, owners[owner])

    def get(self, key: str) -> Held | None:
        held = self.latest(key)
        return None if held is None or held.value is None else held

    def items(self, prefix: str = "") -> Sequence[Held]:
        found = (self.get(key) for key in sorted(self.roots) if key.startswith(prefix))
        return [held for held in found if held is not None]

    def conflicts(self, key: str) -> Sequence[Held]:
        winner = self.latest(key)
        if winner is None:
            return ()
        owners = self.roots[key]
        return [
            Held(key, owner, entry)
            for owner, entry in owners.items()
            if owner != winner.owner
            and not any(one.hlc > entry.hlc and one.seen >= entry.hlc for one in owners.values())
        ]

    def put(self, key: str, value: bytes | None, *, seen: int | None = None) -> Held:
        before = self.latest(key)
        now = 0 if before is None or before.value is None else before.version
        if seen is not None and seen != now:
            raise StateError("stale", f"{key} is at {now}", current=before)
        entry = Entry(
            self.replica.tick_clock(),
            self.replica.boot,
            0 if before is None else before.entry.hlc,
            value,
        )
        self.roots.setdefault(key, {})[self.replica.me] = entry
        self.replica.wrote(self, key, entry)
        held = self.latest(key)
        assert held is not None
        return held

    def remove(self, key: str, *, seen: int | None = None) -> Held:
        return self.put(key, None, seen=seen)

    def retire(self, key: str) -> None:
        pass  # Entries that count for nothing do no harm here.

    def watch(self, heard: Heard) -> None:
        self.heard.append(heard)

    def merge(self, theirs: Mapping[str, Mapping[str, Entry]]) -> None:
        changed = [
            key
            for key in sorted(theirs)
            for owner in sorted(theirs[key])
            if self.take(key, owner, theirs[key][owner])
        ]
        self.replica.changed(self, changed)

    def take(self, key: str, owner: str, entry: Entry) -> bool:
        owners = self.roots.setdefault(key, {})
        known = owners.get(owner)
        self.replica.hlc = max(self.replica.hlc, entry.hlc)
        if known is not None and known.hlc >= entry.hlc:
            return False
        owners[owner] = entry
        return True

    def digest(self) -> bytes:
        held = [(one.key, one.value) for one in self.items()]
        return blake2b(repr(held).encode(), digest_size=8).digest()

    def __len__(self) -> int:
        return len(self.items())


class ReferenceTable:
    """A table whose rows are the entries of a space."""

    def __init__(self, space: ReferenceSpace) -> None:
        self.space = space

    def get(self, key: str) -> ReferenceRow | None:
        held = self.space.get(key)
        if held is None or held.value is None:
            return None
        return ReferenceRow(held.owner, held.entry.hlc, held.value)

    def put(self, key: str, content: bytes, *, ttl_ms: int | None = None) -> ReferenceRow:
        self.space.put(key, content)
        row = self.get(key)
        assert row is not None
        return row

    def touch(self, key: str) -> ReferenceRow | None:
        return self.get(key)

    def items(self, prefix: str = "") -> Sequence[ReferenceRow]:
        rows = (self.get(held.key) for held in self.space.items(prefix))
        return [row for row in rows if row is not None]

    def __len__(self) -> int:
        return len(self.space)


class ReferenceRegisters:
    def __init__(self, replica: "ReferenceReplica") -> None:
        self.replica = replica
        self.held: dict[tuple[str, str, str], ReferenceRow] = {}

    def set(self, kind: str, key: str, content: bytes, *, ttl_ms: int) -> None:
        self.held[kind, key, self.replica.me] = ReferenceRow(self.replica.me, 0, content)
        self.replica.tell(SpreadRumor(f"e.{kind}", key, content))

    def items(self, kind: str) -> Sequence[ReferenceRow]:
        living = self.replica.living
        return [
            row for (known, _, owner), row in self.held.items() if known == kind and owner in living
        ]


class ReferenceReplica:
    """`sync.replica.Replica` with lists and without limits. Subclasses break it in one place each."""

    def __init__(
        self,
        me: str,
        boot: int,
        *,
        options: StateOptions,
        rng: Rng,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        tell: Callable[[Wish], None],
    ) -> None:
        self.me = me
        self.boot = boot
        self.now_ms = now_ms
        self.wall_ms = wall_ms
        self.tell = tell
        self.hlc = 0
        self.said = 0
        self.living: list[str] = [me]
        self.boots: dict[str, int] = {}
        self.history = b""
        self.stale = False
        names = [*options.documents, *options.tables]
        self.spaces = {name: ReferenceSpace(name, self) for name in names}
        self.registers = ReferenceRegisters(self)
        self.held_pieces: dict[str, bytes] = {}

    def namespace(self, name: str) -> ReferenceSpace:
        return self.spaces[name]

    def table(self, name: str) -> ReferenceTable:
        return ReferenceTable(self.spaces[name])

    def tick_clock(self) -> int:
        self.hlc = max(self.hlc + 1, self.wall_ms() << 16)
        return self.hlc

    def wrote(self, space: ReferenceSpace, key: str, entry: Entry) -> None:
        self.said += 1
        content = msgspec.msgpack.encode((space.name, key, entry))
        if len(content) <= 400:
            self.tell(SpreadRumor("d", f"{space.name}:{self.said}", content))
        else:
            self.tell(OpenExchanges("push", count=3))
        self.changed(space, [key])

    def changed(self, space: ReferenceSpace, keys: Sequence[str]) -> None:
        if keys:
            self.tell(Keep(f"{space.name}/0"))
            self.tell(DigestIs(self.digest()))
            for heard in space.heard:
                heard(sorted(set(keys)))

    def hear(self, news: News) -> None:
        if news.kind.startswith("e."):
            row = ReferenceRow(news.origin, 0, news.content)
            self.registers.held[news.kind[2:], news.key, news.origin] = row
            return
        name, key, entry = msgspec.msgpack.decode(news.content, type=tuple[str, str, Entry])
        space = self.spaces[name]
        if space.take(key, news.origin, entry):
            self.changed(space, [key])

    def set_members(self, living: Sequence[tuple[str, int]]) -> None:
        self.living = [name for name, _ in living]
        restarted = [name for name, boot in living if self.boots.get(name, boot) != boot]
        self.boots = self.boots | dict(living)
        rows = self.registers.held
        self.registers.held = {key: rows[key] for key in rows if key[2] not in restarted}

    def change_boot(self, boot: int) -> None:
        self.boot = boot

    def tick(self) -> None:
        self.tell(Wake(self.now_ms() + TICK_MS))

    def met(self, peer: str, *, full: bool) -> None:
        pass

    def alone(self) -> None:
        pass

    def watch_forgotten(self, heard: Callable[[], None]) -> None:
        pass

    def forget_stale(self) -> None:
        pass

    def holdings(self, *, full: bool) -> Sequence[PieceState]:
        return [
            PieceState(f"{name}/0", 0, blake2b(content, digest_size=16).digest(), len(content))
            for name in sorted(self.spaces)
            if (content := self.dump(f"{name}/0"))
        ]

    def summary(self, name: str, epoch: int) -> bytes:
        return b""

    def missing(self, name: str, epoch: int, summary: bytes) -> bytes:
        if name == "registers":
            rows = [(*key, row.content) for key, row in self.registers.held.items()]
            return msgspec.msgpack.encode(rows)
        return self.dump(name)

    def merge(self, name: str, epoch: int, update: bytes, *, peer: str) -> None:
        if name == "registers":
            for kind, key, owner, content in msgspec.msgpack.decode(update):
                self.registers.held.setdefault((kind, key, owner), ReferenceRow(owner, 0, content))
        else:
            self.load(name, update)

    def epoch(self, name: str) -> int:
        return 0

    def dump(self, name: str) -> bytes:
        roots = self.spaces[name.partition("/")[0]].roots
        held = {
            key: {owner: roots[key][owner] for owner in sorted(roots[key])}
            for key in sorted(roots)
            if roots[key]
        }
        return msgspec.msgpack.encode(held) if held else b""

    def load(self, name: str, content: bytes) -> None:
        self.spaces[name.partition("/")[0]].merge(msgspec.msgpack.decode(content, type=Roots))

    def loaded(self, absent_ms: int) -> None:
        self.tell(DigestIs(self.digest()))
        self.tell(Wake(self.now_ms() + TICK_MS))

    def digest(self) -> bytes:
        pieces = [(piece.name, piece.digest) for piece in self.holdings(full=False)]
        return blake2b(repr(pieces).encode(), digest_size=8).digest()

    def state(self) -> Mapping[str, ReferenceSums]:
        return {
            name: ReferenceSums(space.digest().hex(), len(space))
            for name, space in self.spaces.items()
        }
