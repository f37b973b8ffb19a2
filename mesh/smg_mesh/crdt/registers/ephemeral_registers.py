"""Ephemeral registers: what each node says of itself right now,
spread by rumor, for a limited time.

    (owner, kind, key) → content, for ttl_ms from when it was heard

Only the owner writes. Of two writes the one with the larger (boot, seq) counts, so rumors may be lost,
repeated and come in any order; a lost one heals with the owner's next. A register vanishes

    ttl_ms after it was heard        or when its owner cleared it
    10 s after its owner died        or spoke last, unless it is known to be back in the same life
    at once                          when its owner is known to live a later life

What an unknown owner says counts too, since rumors may be ahead of membership. So does what a dead
one says after its registers were dropped, for 10 s: a member that came back is not announced before
it has held out for a while, up to minutes, and speaks all that time. What is no more is remembered
for a minute (its order, not its content), so that a late rumor cannot bring it back.

Costs: a write and a rumor are a few dict operations; memory is that of what is held, however often it is
refreshed. Nothing is on disk, and nothing is part of a digest: a newcomer is given a `dump`.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from smg_mesh.config import StateOptions
from smg_mesh.crdt.deadline_heap import Deadlines
from smg_mesh.crdt.registers.own_registers import OwnRegisters, Say
from smg_mesh.crdt.registers.register_codec import (
    KEY_CHARS_MAX,
    KIND_CHARS_MAX,
    REGISTER_BYTES_MAX,
    TTL_MS_MAX,
    Register,
    RegisterError,
    decode_dump,
    decode_write,
    encode_dump,
)

__all__ = ["REGISTER_BYTES_MAX", "Heard", "Register", "RegisterError", "Registers"]

ENDED_KEEP_MS: Final = 60_000
"""Longer than any rumor travels."""
_STEP_MS: Final = 100
"""Registers vanish together, so that a loop wakes up for many at once."""

Heard: TypeAlias = Callable[[Register, bool], None]
"""Hears of a register that was written or refreshed, or (`gone`) is no more. Must not write registers."""
_Place: TypeAlias = tuple[str, str, str]
"""Kind, key, owner."""
_Order: TypeAlias = tuple[int, int]


class _Owner:
    """State of a node that has registers, or had them before it died."""

    __slots__ = ("boot", "dead", "gone", "last", "places")

    def __init__(self) -> None:
        self.boot = 0
        """His life as the member table has it; 0 as long as it has none."""
        self.dead = False
        self.gone = False
        """So long dead that his registers are dropped."""
        self.last: _Order = (0, 0)
        """The latest heard of him before they were; of all his registers, for he numbers them together."""
        self.places: dict[_Place, None] = {}

    def refuses(self, order: _Order) -> bool:
        """Return whether it said that before its registers were dropped."""
        return self.gone and order <= self.last


class Registers:
    """The registers of all nodes; `me` writes its own, and `say` spreads them."""

    def __init__(self, me: str, *, options: StateOptions, say: Say) -> None:
        self._me: Final = me
        self._options: Final = options
        self._own: Final = OwnRegisters(say, apart_ms=options.register_apart_ms)
        self._boot = 0
        self._seq = 0
        self._kinds: dict[str, dict[_Place, Register]] = {}
        self._owners: dict[str, _Owner] = {}
        self._ended: OrderedDict[_Place, tuple[_Order, int]] = OrderedDict()
        self._vanish: Final[Deadlines[_Place, int]] = Deadlines()
        self._deaths: Final[Deadlines[str, int]] = Deadlines()
        self._heard: dict[str, list[Heard]] = {}
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._vanish)

    # ── This node's own ──────────────────────────────────────────────────────

    def set(self, kind: str, key: str, content: bytes, *, ttl_ms: int, now_ms: int) -> None:
        """Write; the others hear it within `register_apart_ms`, of many writes the last.

        It vanishes here too unless it is written again within `ttl_ms`. RegisterError for what cannot travel.
        """
        if not (0 < len(kind) <= KIND_CHARS_MAX and len(key) <= KEY_CHARS_MAX):
            raise RegisterError(f"{kind[:64]!r}, {key[:64]!r}: the kind or the key is too long")
        if len(content) > REGISTER_BYTES_MAX or not 0 < ttl_ms <= TTL_MS_MAX:
            raise RegisterError(f"{len(content)} bytes for {ttl_ms} ms: one of the two is too much")
        self._write(kind, key, content, ttl_ms, now_ms)

    def clear(self, kind: str, key: str, *, now_ms: int) -> None:
        """Take this node's own register away; nothing if there is none."""
        if (kind, key, self._me) in self._kinds.get(kind, ()):
            self._write(kind, key, b"", 0, now_ms)

    def change_boot(self, boot: int, *, now_ms: int) -> None:
        """Go on as that life: what this node says is said again under it."""
        assert boot >= self._boot
        if boot == self._boot:
            return
        self._boot = boot
        mine = self._owners.get(self._me)
        for kind, key, owner in list(mine.places) if mine is not None else ():
            register = self._kinds[kind][kind, key, owner]
            self._write(kind, key, register.content, register.ttl_ms, now_ms)

    def _write(self, kind: str, key: str, content: bytes, ttl_ms: int, now_ms: int) -> None:
        self._seq += 1
        register = Register(self._me, kind, key, self._boot, self._seq, content, now_ms, ttl_ms)
        if not self._take(register, now_ms):
            raise RegisterError("there are too many registers already")
        self._own.write(register, now_ms=now_ms)

    # ── Reading ──────────────────────────────────────────────────────────────

    def get(self, kind: str, key: str) -> Sequence[Register]:
        """Return what each owner says about a key, sorted by owner."""
        held = self._kinds.get(kind)
        if held is None:
            return ()
        found = [held.get((kind, key, owner)) for owner in sorted(self._owners)]
        return [register for register in found if register is not None]

    def items(self, kind: str) -> Sequence[Register]:
        """Return all registers of a kind, sorted by key, then owner."""
        held = self._kinds.get(kind, {})
        return [held[place] for place in sorted(held)]

    def watch(self, kind: str, heard: Heard) -> None:
        """Tell `heard` of all registers of that kind from now on, of this node's own too."""
        self._heard.setdefault(kind, []).append(heard)

    def counts(self) -> Mapping[str, int]:
        """Return how often what was heard did not count, by reason."""
        return self._counts

    # ── What is heard ────────────────────────────────────────────────────────

    def hear(self, owner: str, kind: str, key: str, content: bytes, *, now_ms: int) -> bool:
        """Take a rumor; False, and nothing has changed, if it makes no sense or there is no room."""
        try:
            saying = decode_write(content)
        except RegisterError:
            self._counts["garbage"] += 1
            return False
        if owner == self._me:
            return True
        ttl_ms, boot, seq = saying.ttl_ms, saying.boot, saying.seq
        register = Register(owner, kind, key, boot, seq, saying.content, now_ms, ttl_ms)
        return self._take(register, now_ms)

    def dump(self, now_ms: int) -> bytes:
        """Return what a newcomer should know: all that living nodes say, the last heard first."""
        found = [
            register
            for held in self._kinds.values()
            for register in held.values()
            if register.until_ms > now_ms and not self._owners[register.owner].dead
        ]
        found.sort(key=lambda item: (-item.heard_ms, item.kind, item.key, item.owner))
        return encode_dump(found, now_ms=now_ms)

    def merge(self, data: bytes, now_ms: int) -> None:
        """Take in the dump of a peer; RegisterError for bytes that are
        none, and nothing has changed.
        """
        try:
            registers = decode_dump(data, now_ms=now_ms)
        except RegisterError:
            self._counts["garbage"] += 1
            raise
        for register in registers:
            if register.owner != self._me:
                self._take(register, now_ms)

    def _take(self, register: Register, now_ms: int) -> bool:
        place = (register.kind, register.key, register.owner)
        owner = self._owners.get(register.owner)
        if owner is not None and (register.boot < owner.boot or owner.refuses(register.order)):
            self._counts["gone" if register.boot == owner.boot else "superseded"] += 1
            return True
        held = self._kinds.get(register.kind, {}).get(place)
        if held is None:
            ended = self._ended.get(place)
            if ended is not None and register.order <= ended[0]:
                self._counts["old"] += 1
                return True
            if not self._make_room(now_ms):
                self._counts["full"] += 1
                return False
            self._ended.pop(place, None)
        elif register.order <= held.order:
            self._counts["old"] += 1
            return True
        if register.ttl_ms:
            self._keep(place, register)
        else:
            self._end(place, register.order, now_ms)
        return True

    def _keep(self, place: _Place, register: Register) -> None:
        self._kinds.setdefault(place[0], {})[place] = register
        owner = self._owners.get(place[2])
        if owner is None:
            owner = self._owners[place[2]] = _Owner()
        if not owner.gone:
            owner.last = max(owner.last, register.order)
        owner.places[place] = None
        self._limit(place, self._until_ms(owner, register))
        self._tell(register, gone=False)

    def _until_ms(self, owner: _Owner, register: Register) -> int:
        if owner.gone and register.boot == owner.boot:
            return min(register.until_ms, register.heard_ms + self._options.register_after_death_ms)
        return register.until_ms

    def _limit(self, place: _Place, until_ms: int) -> None:
        self._vanish.put(place, (until_ms // _STEP_MS + 1) * _STEP_MS)

    def _make_room(self, now_ms: int) -> bool:
        """Return whether one more may be held; what is no more gives way first."""
        self._forget_ended(now_ms)
        while self._ended and len(self._vanish) + len(self._ended) >= self._options.registers_max:
            self._ended.popitem(last=False)
        return len(self._vanish) < self._options.registers_max

    # ── What is no more ──────────────────────────────────────────────────────

    def _end(self, place: _Place, order: _Order, now_ms: int) -> None:
        """Let a register be no more, whether it was there or not; nothing up to `order` brings it back."""
        self._ended[place] = (order, now_ms + ENDED_KEEP_MS)
        self._ended.move_to_end(place)
        self._drop(place)

    def _drop(self, place: _Place) -> None:
        held = self._kinds.get(place[0], {})
        register = held.pop(place, None)
        if register is None:
            return
        if not held:
            del self._kinds[place[0]]
        self._vanish.forget(place)
        name = place[2]
        owner = self._owners[name]
        del owner.places[place]
        if not (owner.places or owner.boot or owner.dead):
            del self._owners[name]
        self._tell(register, gone=True)

    def _forget_ended(self, now_ms: int) -> None:
        while self._ended:
            place, (_, until_ms) = next(iter(self._ended.items()))
            if until_ms > now_ms:
                return
            del self._ended[place]

    def _tell(self, register: Register, *, gone: bool) -> None:
        for heard in self._heard.get(register.kind, ()):
            heard(register, gone)

    # ── Members ──────────────────────────────────────────────────────────────

    def member_up(self, name: str, boot: int) -> None:
        """Learn that a member lives, and in which life; what earlier lives said is dropped at once."""
        if name == self._me:
            return
        owner = self._owners.get(name)
        if owner is None:
            owner = self._owners[name] = _Owner()
        if boot < owner.boot:
            return
        was_gone, owner.dead, owner.gone = owner.gone, False, False
        self._deaths.forget(name)
        if boot > owner.boot:
            owner.boot = boot
            for place in list(owner.places):
                if self._kinds[place[0]][place].boot < boot:
                    self._drop(place)
        for place in owner.places if was_gone else ():
            self._limit(place, self._kinds[place[0]][place].until_ms)

    def member_gone(self, name: str, now_ms: int) -> None:
        """Learn that a member died or left: what it said is dropped a while later."""
        owner = self._owners.get(name)
        if owner is not None and owner.boot and not owner.dead:
            owner.dead = True
            self._deaths.put(name, now_ms + self._options.register_after_death_ms)

    def _bury(self, name: str, now_ms: int) -> None:
        """Drop what a dead member said; a while later no rumor of it is left, and it is forgotten.

        What a later life of it says may be ahead of the member table, and stays.
        """
        owner = self._owners[name]
        if owner.gone:
            self._deaths.forget(name)
            owner.dead = owner.gone = False
            owner.boot = 0
            if not owner.places:
                del self._owners[name]
            return
        owner.gone = True
        self._deaths.put(name, now_ms + ENDED_KEEP_MS)
        for place in list(owner.places):
            register = self._kinds[place[0]][place]
            until_ms = self._until_ms(owner, register)
            if register.boot < owner.boot or until_ms <= now_ms:
                self._end(place, register.order, now_ms)
            else:
                self._limit(place, until_ms)

    # ── Time ─────────────────────────────────────────────────────────────────

    def tick(self, now_ms: int) -> int | None:
        """Do what is due; return when there is something to do again."""
        while (due := self._vanish.first()) is not None and due[0] <= now_ms:
            kind, key, owner = place = due[1]
            self._end(place, self._kinds[kind][place].order, now_ms)
            if owner == self._me:
                self._own.forget((kind, key))
        while (death := self._deaths.first()) is not None and death[0] <= now_ms:
            self._bury(death[1], now_ms)
        self._own.tick(now_ms)
        self._forget_ended(now_ms)
        return self.due_ms()

    def due_ms(self) -> int | None:
        """Return when `tick` has something to do; None: never, as things are."""
        vanish, death = self._vanish.first(), self._deaths.first()
        found = [due[0] for due in (vanish, death) if due is not None]
        if (own_ms := self._own.due_ms()) is not None:
            found.append(own_ms)
        return min(found, default=None)
