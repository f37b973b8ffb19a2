"""Namespaces in memory: several owners, a scripted clock, cuts and restarts, and every refusal.

One `FakeNamespaces` is one namespace with a replica for each owner. Writes reach whoever can be
reached at once; `cut` and `heal` say who that is, and `hold` lets nothing through until `sync`. Each
replica keeps what every owner said (one cell for an owner and key, the later stamp counts), so what a
view sees here are the same winners, conflicts and removals as with real documents.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count

from smg_mesh.crdt.entry import Entry, Held
from smg_mesh.crdt.namespace import (
    KEY_BYTES_MAX,
    VALUE_BYTES_MAX,
    Heard,
    StateError,
)

EPOCH_MS = 1_700_000_000_000
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Cell:
    """What one owner's root holds under one key. No entry: it was taken away."""

    stamp: tuple[int, int]
    entry: Entry | None


class FakeNamespace:
    """One owner's replica; a complete `Namespace`."""

    def __init__(self, world: "FakeNamespaces", me: str, boot: int) -> None:
        self._world = world
        self._me = me
        self._boot = boot
        self._stamps = count(1)
        self._hlc = 0
        self._told = False
        self._heard: list[Heard] = []
        self._cells: dict[str, dict[str, Cell]] = {}
        self._winners: dict[str, Held] = {}
        self._waiting: dict[str, None] = {}
        """Keys with an entry from the future, which may count when time has passed."""
        self.skew_ms = 0
        self.closed = False
        self.full: Callable[[str], bool] = lambda _: False
        """Whether the document of a key has no room for one more entry."""
        self.writes = 0

    # ── Namespace ────────────────────────────────────────────────────────────

    @property
    def name(self) -> str:
        return self._world.name

    def get(self, key: str) -> Held | None:
        held = self._winners.get(key)
        return None if held is None or held.value is None else held

    def latest(self, key: str) -> Held | None:
        return self._winners.get(key)

    def items(self, prefix: str = "") -> Sequence[Held]:
        keys = sorted(key for key in self._winners if key.startswith(prefix))
        return [held for key in keys if (held := self._winners[key]).value is not None]

    def conflicts(self, key: str) -> Sequence[Held]:
        winner = self._winners.get(key)
        others = [
            held
            for held in self._held(key)
            if held.future or (winner and held.version > winner.entry.seen)
        ]
        return [held for held in others if held != winner]

    def put(self, key: str, value: bytes, *, seen: int | None = None) -> Held:
        if len(value) > VALUE_BYTES_MAX:
            raise StateError("too_large", f"{key}: {len(value)} bytes")
        return self._write(key, value, seen)

    def remove(self, key: str, *, seen: int | None = None) -> Held:
        return self._write(key, None, seen)

    def retire(self, key: str) -> None:
        assert not self._told, "a watcher writes"
        mine = self._cells.get(key, {}).get(self._me)
        if mine is not None and mine.entry is not None:
            self._set_own(key, None)

    def watch(self, heard: Heard) -> None:
        self._heard.append(heard)

    def digest(self) -> bytes:
        total = 0
        for held in self.items():
            said = b"%d:%s%s" % (len(held.key), held.key.encode(), held.value or b"")
            total ^= int.from_bytes(blake2b(said, digest_size=8).digest())
        return total.to_bytes(8)

    def __len__(self) -> int:
        return sum(held.value is not None for held in self._winners.values())

    # ── What tests say and ask ───────────────────────────────────────────────

    @property
    def wall_ms(self) -> int:
        """What this owner's clock shows."""
        return self._world.wall_ms + self.skew_ms

    def roots(self, key: str) -> dict[str, Entry]:
        """Return each owner's entry of a key, as it lies in the document."""
        cells = self._cells.get(key, {})
        return {owner: cell.entry for owner, cell in sorted(cells.items()) if cell.entry}

    def tend(self) -> None:
        """Drop entries that were seen over, and old removals: own ones, and copies that are kept here."""
        for owner in [self._me, *self._world.kept_by(self._me)]:
            for key in sorted(self._cells):
                self._tend(key, owner)

    def _tend(self, key: str, owner: str) -> None:
        entries = self.roots(key)
        mine = entries.pop(owner, None)
        if mine is None:
            return
        over = any(e.hlc > mine.hlc and e.seen >= mine.hlc for e in entries.values())
        age_ms = self.wall_ms - (mine.hlc >> 16)
        old = mine.value is None and age_ms > self._world.removed_keep_ms
        if over or (old and not self._beats_something(key, mine.hlc)):
            boot, number = self._cells[key][owner].stamp
            gone = (key, owner, Cell((boot, number + 1), None))
            self.merge([gone])
            self._world.spread(self._me, [gone])

    def _beats_something(self, key: str, hlc: int) -> bool:
        """Whether an earlier value of the key, or of a key below it, is still there."""
        below = [one for one in self._cells if one == key or one.startswith(f"{key}/")]
        entries = [entry for one in below for entry in self.roots(one).values()]
        return any(entry.value is not None and entry.hlc < hlc for entry in entries)

    def look_again(self) -> None:
        """Time has passed: what came from the future may count now."""
        self._settle(list(self._waiting))

    def merge(self, cells: Iterable[tuple[str, str, Cell]]) -> None:
        """Take in cells of other owners, or of an earlier life."""
        changed: dict[str, None] = {}
        for key, owner, cell in cells:
            known = self._cells.setdefault(key, {})
            if owner not in known or known[owner].stamp < cell.stamp:
                known[owner] = cell
                changed[key] = None
                self._witness(cell.entry)
        self._settle(list(changed))

    def everything(self) -> list[tuple[str, str, Cell]]:
        """Return all cells, as another replica merges them."""
        return [
            (key, owner, cell)
            for key, cells in self._cells.items()
            for owner, cell in cells.items()
        ]

    # ── Inside ───────────────────────────────────────────────────────────────

    def _write(self, key: str, value: bytes | None, seen: int | None) -> Held:
        assert not self._told, "a watcher writes"
        if self.closed:
            raise StateError("closed", "closed")
        if not 0 < len(key.encode()) <= KEY_BYTES_MAX:
            raise StateError("too_large", f"a key of {len(key)} characters")
        current = self.get(key)
        if seen is not None and seen != (current.version if current else 0):
            raise StateError("stale", f"{key} has changed", current=current)
        if value is not None and self._me not in self.roots(key) and self.full(key):
            raise StateError("full", f"no room for {key}")
        self._hlc = max(self._hlc + 1, self.wall_ms << 16)
        replaced = self._winners.get(key)
        entry = Entry(self._hlc, self._boot, replaced.version if replaced else 0, value)
        self.writes += 1
        self._set_own(key, entry)
        return self._winners[key]

    def _set_own(self, key: str, entry: Entry | None) -> None:
        cell = Cell((self._boot, next(self._stamps)), entry)
        self._cells.setdefault(key, {})[self._me] = cell
        self._settle([key])
        self._world.spread(self._me, [(key, self._me, cell)])

    def _witness(self, entry: Entry | None) -> None:
        if entry is not None and not self._future(entry):
            self._hlc = max(self._hlc, entry.hlc)

    def _future(self, entry: Entry) -> bool:
        return (entry.hlc >> 16) > self.wall_ms + self._world.future_ms

    def _held(self, key: str) -> list[Held]:
        """Return all entries of a key, the largest first."""
        entries = self.roots(key).items()
        held = [Held(key, owner, entry, self._future(entry)) for owner, entry in entries]
        return sorted(held, key=lambda one: one.order, reverse=True)

    def _settle(self, keys: Sequence[str]) -> None:
        """Find the winners of `keys` again and tell who watches."""
        changed = []
        for key in keys:
            held = self._held(key)
            self._waiting.pop(key, None)
            if any(one.future for one in held):
                self._waiting[key] = None
            winner = next((one for one in held if not one.future), None)
            before = self._winners.pop(key, None)
            if winner is not None:
                self._winners[key] = winner
            # Whose root it lies in is no matter of views: adoption is not a change.
            if (winner and winner.entry) != (before and before.entry):
                changed.append(key)
        if changed:
            self._tell(sorted(changed))

    def _tell(self, keys: Sequence[str]) -> None:
        self._told = True
        try:
            for heard in self._heard:
                heard(keys)
        finally:
            self._told = False


class FakeNamespaces:
    """One namespace on all its owners, one wall clock, and the links between them."""

    def __init__(
        self,
        *owners: str,
        name: str = "workers",
        future_ms: int = 60_000,
        removed_keep_ms: int = 7 * DAY_MS,
    ) -> None:
        self.name = name
        self.wall_ms = EPOCH_MS
        self.future_ms = future_ms
        self.removed_keep_ms = removed_keep_ms
        self._boots = count(1)
        self._side: dict[str, int] = dict.fromkeys(owners, 0)
        self._held_up = False
        self._keepers: dict[str, str] = {}
        self._on = {me: FakeNamespace(self, me, next(self._boots)) for me in owners}

    def __getitem__(self, owner: str) -> FakeNamespace:
        return self._on[owner]

    @property
    def owners(self) -> Sequence[str]:
        """Everybody, sorted."""
        return sorted(self._on)

    def advance(self, span_ms: int) -> None:
        """Let time pass everywhere."""
        self.wall_ms += span_ms
        for owner in self.owners:
            self._on[owner].look_again()

    def cut(self, *groups: Sequence[str]) -> None:
        """Only members of one group reach each other; who is in none is alone."""
        alone = count(len(groups))
        sides = {owner: number for number, group in enumerate(groups) for owner in group}
        self._side = {owner: sides.get(owner, next(alone)) for owner in self.owners}

    def hold(self) -> None:
        """Let nothing through until `heal` or `sync`."""
        self._held_up = True

    def heal(self) -> None:
        """Everybody reaches everybody, and hears what was missed."""
        self._held_up = False
        self._side = dict.fromkeys(self.owners, 0)
        self.sync(*self.owners)

    def sync(self, *owners: str) -> None:
        """These owners exchange all they hold, whatever is cut."""
        together = [cell for owner in owners for cell in self._on[owner].everything()]
        for owner in owners:
            self._on[owner].merge(together)

    def spread(self, sender: str, cells: Sequence[tuple[str, str, Cell]]) -> None:
        """Carry a write to whoever can be reached."""
        if self._held_up:
            return
        for owner in self.owners:
            if owner != sender and self._side[owner] == self._side[sender]:
                self._on[owner].merge(cells)

    def restart(self, owner: str, *, keeps_disk: bool = True) -> FakeNamespace:
        """Begin another life of `owner`; its watchers are gone, and it reaches nobody before `sync`."""
        old = self._on[owner]
        new = self._on[owner] = FakeNamespace(self, owner, next(self._boots))
        new.skew_ms = old.skew_ms
        if keeps_disk:
            new.merge(old.everything())
        return new

    def adopt(self, dead: str, by: str) -> None:
        """Begin a new epoch: `by` keeps copies of what the dead owner wrote; whose they are stays."""
        self._keepers[dead] = by

    def kept_by(self, owner: str) -> Sequence[str]:
        """Return whose entries this owner keeps copies of."""
        return [dead for dead in sorted(self._keepers) if self._keepers[dead] == owner]
