"""Small cluster of real SWIM cores with real keyrings on virtual time: source of genuine traffic,
with the victim in it.

The network is perfect and takes a millisecond: packet contents are under test here, not network
faults.
"""

import random
from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Final, TypeAlias

from smg_mesh.config import PROFILES
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.rejected import Rejected
from smg_mesh.io.security.ring_key import KEY_BYTES, RingKey
from smg_mesh.swim.effects import (
    BootChanged,
    Effect,
    OpenExchange,
    SendDatagram,
    SetTimer,
    StreamAnswer,
    StreamPing,
    Timer,
)
from smg_mesh.swim.messages import Address
from smg_mesh.swim.swim_core import Identity, Swim

LABEL: Final = "fuzz"
NAMES: Final = ("a", "b", "c", "d", "e")
VICTIM: Final = "a"
BOOT: Final = 1_720_000_000_000 << 16
_KEPT_MAX: Final = 2048
"""Datagrams remembered, of the victim and of the others; the newest."""
_LINK_MS: Final = 1
_STREAM_MS: Final = 3


@dataclass(frozen=True, slots=True)
class Sealed:
    """One datagram of genuine traffic and its content."""

    datagram: bytes
    clear: bytes


@dataclass(slots=True)
class Member:
    """One member's process."""

    core: Swim
    ring: Keyring
    asleep: bool = False
    boots: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Arrival:
    to: Address
    source: Address
    datagram: bytes


@dataclass(frozen=True, slots=True)
class _StreamEnd:
    """A ping or an exchange over TCP that has ended."""

    asked: StreamPing | OpenExchange


_Happening: TypeAlias = Timer | _Arrival | _StreamEnd


def ring_key(seed: int) -> RingKey:
    """Return the key of the cluster of that seed."""
    return RingKey(random.Random(f"{seed}/key").randbytes(KEY_BYTES))


def address_of(name: str) -> Address:
    """Return where the member of that name listens."""
    return Address(f"10.0.0.{NAMES.index(name) + 1}", 7946)


class Neighbours:
    """Five members; `a` is the victim. All datagrams are kept as they went over the wire."""

    def __init__(self, seed: int, *, sealed: bool = True) -> None:
        self._seed = seed
        self.keys = (ring_key(seed),) if sealed else ()
        self.now_ms = 0
        self.heard: deque[Sealed] = deque(maxlen=_KEPT_MAX)
        """What the victim has opened already."""
        self.overheard: deque[Sealed] = deque(maxlen=_KEPT_MAX)
        """What went between the others."""
        self._queue: list[tuple[int, int, str, _Happening]] = []
        self._order = count()
        self._lives = count(1)
        self._members: dict[str, Member] = {}
        self._places = {address_of(name): name for name in NAMES}
        for name in NAMES:
            self.restart(name)

    @property
    def victim(self) -> Member:
        """The member under attack."""
        return self._members[VICTIM]

    def member(self, name: str) -> Member:
        """Return the process of that name."""
        return self._members[name]

    def ring(self) -> Keyring:
        """Return a keyring of this cluster that counts from one, the same in every run."""
        return Keyring(self.keys, LABEL, first_counter=1)

    def restart(self, name: str) -> None:
        """Restart that member; the others find it through each other."""
        life = next(self._lives)
        rng = random.Random(f"{self._seed}/{name}/{life}")
        me = Identity(name, address_of(name), BOOT + (life << 16), b"\x81\xa1v\x01")
        member = self._members[name] = Member(Swim(me, PROFILES["lan"], rng), self.ring())
        self.perform(name, member.core.start(now_ms=self.now_ms))
        others = [address_of(other) for other in NAMES if other != name]
        self.perform(name, member.core.greet(others, now_ms=self.now_ms))

    def advance(self, until_ms: int) -> None:
        """Process everything that is due by then."""
        while self._queue and self._queue[0][0] <= until_ms:
            self.now_ms, _, name, happening = heappop(self._queue)
            member = self._members[name]
            if not member.asleep:
                self.perform(name, self._happen(name, member, happening))
        self.now_ms = until_ms

    def perform(self, name: str, effects: list[Effect]) -> None:
        """Perform the effects that the core of that member asked for."""
        for effect in effects:
            match effect:
                case SendDatagram(to, packet):
                    self._send(name, to, packet)
                case SetTimer(timer, due_ms):
                    self._at(due_ms, name, timer)
                case StreamPing() | OpenExchange():
                    self._at(self.now_ms + _STREAM_MS, name, _StreamEnd(effect))
                case BootChanged(boot):
                    self._members[name].boots.append(boot)
                case _:
                    pass

    def _at(self, due_ms: int, name: str, happening: _Happening) -> None:
        heappush(self._queue, (due_ms, next(self._order), name, happening))

    def _send(self, name: str, to: Address, packet: bytes) -> None:
        to_name = self._places.get(to)
        if to_name is None:
            return
        datagram = self._members[name].ring.seal(packet)
        if to_name != VICTIM:
            self.overheard.append(Sealed(datagram, packet))
        self._at(self.now_ms + _LINK_MS, to_name, _Arrival(to, address_of(name), datagram))

    def _happen(self, name: str, member: Member, happening: _Happening) -> list[Effect]:
        match happening:
            case Timer():
                return member.core.handle_timer(happening, now_ms=self.now_ms)
            case _Arrival():
                return self._arrive(name, member, happening)
            case _StreamEnd(asked):
                return self._stream_end(member, asked)

    def _arrive(self, name: str, member: Member, arrival: _Arrival) -> list[Effect]:
        try:
            clear = member.ring.open(arrival.datagram)
        except Rejected:
            return []
        if name == VICTIM:
            self.heard.append(Sealed(arrival.datagram, clear))
        return member.core.handle_datagram(clear, arrival.source, now_ms=self.now_ms)

    def _stream_end(self, member: Member, asked: StreamPing | OpenExchange) -> list[Effect]:
        """Complete an exchange, after which both sides have the other's rows, or a ping, which the
        asked member answers.
        """
        peer_name = self._places.get(asked.address)
        peer = None if peer_name is None else self._members[peer_name]
        there = peer is not None and not peer.asleep and peer_name == asked.name
        now_ms = self.now_ms
        if isinstance(asked, StreamPing):
            right = there and peer is not None and peer.core.boot == asked.boot
            answer = StreamAnswer.HERE if right else StreamAnswer.SILENT
            return member.core.handle_stream_ping(asked.nonce, answer=answer, now_ms=now_ms)
        effects: list[Effect] = []
        if there and peer is not None and peer_name is not None:
            mine, theirs = member.core.rows(), peer.core.rows()
            self.perform(peer_name, peer.core.handle_rows(mine, now_ms=now_ms))
            effects = member.core.handle_rows(theirs, now_ms=now_ms)
        return effects + member.core.handle_exchange_end(asked.name, ok=there, now_ms=now_ms)


def lived_in(seed: int, *, sealed: bool = True) -> Neighbours:
    """Return a cluster that has seen joining, news, changes, a crash, a restart and a leave."""
    cluster = Neighbours(seed, sealed=sealed)
    cluster.advance(3_000)
    for turn, name in enumerate(NAMES * 4):
        core = cluster.member(name).core
        cluster.perform(name, core.say("load", f"w/{turn}", bytes(turn), now_ms=cluster.now_ms))
        cluster.perform(name, core.change_meta(bytes([turn]) * turn, now_ms=cluster.now_ms))
        cluster.advance(cluster.now_ms + 150)
    cluster.member("d").asleep = True
    cluster.advance(cluster.now_ms + 6_000)
    cluster.restart("d")
    core = cluster.member("e").core
    cluster.perform("e", core.leave(now_ms=cluster.now_ms))
    cluster.advance(cluster.now_ms + 2_000)
    cluster.restart("e")
    cluster.advance(cluster.now_ms + 4_000)
    return cluster
