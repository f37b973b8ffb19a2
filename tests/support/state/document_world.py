"""Nodes that hold one document, and a network between them that loses, doubles, reorders and cuts.

What should come of it is worked out from every entry that anybody holds (`expected`), by the definition and
without any of the indices of the real thing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from smg_mesh.config import StateOptions
from smg_mesh.crdt.documents.owned_registers import OwnedRegisters, Tended, Written
from smg_mesh.crdt.entry import Entry, Held
from smg_mesh.crdt.hybrid_clock import HybridClock

WALL_MS = 1_800_000_000_000
SMALL = replace(StateOptions(), epoch_deletions=12, epoch_clients=8)
"""Epochs come after a dozen deletions or eight restarts."""

Word = tuple[str, Entry]
"""Whose an entry is, and the entry."""


class Node:
    """One node: its registers, its clock, and what it saved."""

    def __init__(self, world: "DocumentWorld", name: str, boot: int) -> None:
        self.world = world
        self.name = name
        self.boot = boot
        self.disk = b""
        self.skew_ms = 0
        self.up = True
        self.clock = HybridClock(future_ms=world.options.future_ms)
        self.registers = OwnedRegisters(
            "settings/1", name, boot, options=world.options, rng=Random(world.rng.getrandbits(64))
        )

    @property
    def wall_ms(self) -> int:
        return WALL_MS + self.world.now_ms + self.skew_ms

    def write(self, key: str, value: bytes | None) -> Written:
        before = self.registers.winner(key, self.wall_ms)
        if before is not None:
            self.clock.witness(before.version, self.wall_ms)
        return self.say(
            self.registers.write(
                key,
                value,
                hlc=self.clock.tick(self.wall_ms),
                seen=0 if before is None else before.version,
                wall_ms=self.wall_ms,
            )
        )

    def retire(self, key: str) -> None:
        written = self.registers.retire(key)
        if written is not None:
            self.say(written)

    def tend(self, living: Sequence[str] | None = None) -> Tended:
        tended = self.registers.tend(
            wall_ms=self.wall_ms,
            now_ms=self.world.now_ms,
            living=self.world.living(self.name) if living is None else living,
        )
        for written in tended.writes:
            self.say(written)
        return tended

    def say(self, written: Written) -> Written:
        keys = self.registers.keys()
        self.world.written |= {
            (slot.origin, slot.said)
            for key in keys
            for slot in self.registers._holding.cells.slots(key)
        }
        for other in self.world.nodes.values():
            if other is not self:
                self.world.letters.append(Letter(self.name, other.name, written))
        return written

    def held(self) -> dict[str, Held | None]:
        keys = self.registers.keys()
        return {
            key: held
            for key in keys
            if (held := self.registers.winner(key, self.wall_ms)) is not None
        }

    def values(self) -> dict[str, bytes]:
        return {
            key: held.value for key, held in self.held().items() if held and held.value is not None
        }

    def conflicts(self) -> dict[str, list[Held]]:
        keys = self.registers.keys()
        found = {key: list(self.registers.conflicts(key, self.wall_ms)) for key in keys}
        return {key: held for key, held in found.items() if held}


@dataclass(frozen=True)
class Letter:
    """A rumor on its way."""

    sender: str
    to: str
    written: Written


class DocumentWorld:
    """Nodes a, b, c …; sides of a cut hear only each other."""

    def __init__(self, count: int, *, options: StateOptions = SMALL, seed: int = 1) -> None:
        self.options = options
        self.rng = Random(seed)
        self.now_ms = 1_000
        self.boots = 0
        self.letters: list[Letter] = []
        self.written: set[Word] = set()
        """Everything that anybody ever wrote."""
        self.sides: dict[str, int] = {}
        self.nodes: dict[str, Node] = {}
        for index in range(count):
            self.start(chr(ord("a") + index))

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    @property
    def up(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.up]

    def living(self, name: str) -> list[str]:
        return sorted(node.name for node in self.up if self.reach(name, node.name))

    def reach(self, one: str, other: str) -> bool:
        return self.sides.get(one, 0) == self.sides.get(other, 0)

    # ── Lives ────────────────────────────────────────────────────────────────

    def start(self, name: str, disk: bytes = b"") -> Node:
        self.boots += 1
        self.now_ms += 1  # no life begins in the millisecond in which the one before it ended
        node = Node(self, name, (self.now_ms << 20) + self.boots)
        before = self.nodes.get(name)
        if before is not None:
            node.skew_ms = before.skew_ms
        self.nodes[name] = node
        if disk:
            node.registers.load(disk)
        return node

    def save(self, name: str) -> None:
        self.nodes[name].disk = self.nodes[name].registers.dump()

    def restart(self, name: str, *, keeps_disk: bool) -> Node:
        disk = self.nodes[name].disk
        node = self.start(name, disk if keeps_disk else b"")
        node.disk = disk if keeps_disk else b""
        return node

    # ── Network ──────────────────────────────────────────────────────────────

    def deliver(self, letter: Letter) -> None:
        to = self.nodes[letter.to]
        if to.up and self.reach(letter.sender, letter.to):
            said = letter.written
            to.registers.hear(said.update, said.client, said.upto, said.epoch)

    def deliver_all(self) -> None:
        letters, self.letters = self.letters, []
        for letter in letters:
            self.deliver(letter)

    def exchange(self, opener: str, answerer: str) -> None:
        mine, theirs = self.nodes[opener], self.nodes[answerer]
        if not (mine.up and theirs.up and self.reach(opener, answerer)):
            return
        left, right = mine.registers, theirs.registers
        if (left.epoch, left.digest) == (right.epoch, right.digest):
            return
        epoch = max(left.epoch, right.epoch)
        asked, held = left.summary(epoch), right.summary(epoch)
        left.merge(epoch, right.missing(epoch, asked))
        right.merge(epoch, left.missing(epoch, held))

    def settle(self, rounds: int = 60, step_ms: int = 10_000) -> None:
        """Heal, and let everybody converse and tend with time between until all is quiet."""
        self.sides = {}
        quiet = 0
        for _ in range(rounds):
            self.letters.clear()
            for one in self.up:
                for other in self.up:
                    if one.name < other.name:
                        self.exchange(one.name, other.name)
            self.now_ms += step_ms
            wrote = [bool(node.tend().writes) for node in self.up]
            agreed = len({(node.registers.epoch, node.registers.digest) for node in self.up}) == 1
            quiet = quiet + 1 if agreed and not any(wrote) else 0
            if quiet * step_ms > 2 * self.options.union_ms:
                return
        raise AssertionError("it does not become quiet")

    # ── What should come of it ───────────────────────────────────────────────

    def words(self) -> Mapping[str, Sequence[Word]]:
        """Everything that anybody who is up holds, by key."""
        words: dict[str, list[Word]] = {}
        for node in self.up:
            cells = node.registers._holding.cells
            keys = cells.keys()
            for key in keys:
                for slot in cells.slots(key):
                    words.setdefault(key, []).append((slot.origin, slot.said))
        return words


def expected_winner(words: Sequence[Word]) -> Word | None:
    """What counts of these, all of which are past."""
    counting = last_words(words)
    return max(counting, key=lambda word: (word[1].hlc, word[0]), default=None)


def last_words(words: Sequence[Word]) -> list[Word]:
    """What each owner said last: in its latest life, and in that the latest."""
    last: dict[str, Entry] = {}
    for origin, entry in words:
        known = last.get(origin)
        if known is None or (entry.boot, entry.hlc) > (known.boot, known.hlc):
            last[origin] = entry
    return sorted(last.items(), key=lambda word: (word[1].hlc, word[0]))


def expected_conflicts(words: Sequence[Word]) -> list[Word]:
    """What is concurrent with the winner and says something else: nobody who wrote later has seen it."""
    winner = expected_winner(words)
    if winner is None:
        return []
    won = winner[1]
    return [
        (origin, entry)
        for origin, entry in last_words(words)
        if (entry.hlc, entry.value) != (won.hlc, won.value)
        and not any(
            other.seen >= entry.hlc and (other.hlc, name) > (entry.hlc, origin)
            for name, other in words
        )
    ]
