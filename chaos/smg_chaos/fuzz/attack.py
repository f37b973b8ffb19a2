"""Attack: a million hostile datagrams against a node, and the properties that have to hold under
them.

*Outside*, without the key, at `Keyring.open`: each datagram is refused, its reason counted, and
nothing changes, neither table nor digest. The same against a cluster without encryption, as far as
that can be defended: damage and foreign labels are noticed, forgeries are not.

*Inside*, with a valid key, at the decoder and the core: no exception; a packet that does not decode
has no effect but its counter; everything that the core sends decodes; memory stays bounded.
Meanwhile the victim stays a member of its cluster.
"""

import gc
import random
from collections.abc import Callable
from hashlib import blake2b
from typing import Final, TypeAlias

from smg_chaos.fuzz import keyed_packets as inside
from smg_chaos.fuzz import keyless_packets as outside
from smg_chaos.fuzz.keyed_packets import Insider
from smg_chaos.fuzz.keyless_packets import Listener
from smg_chaos.fuzz.process_memory import resident_bytes
from smg_chaos.fuzz.report import Report
from smg_chaos.fuzz.small_cluster import NAMES, Neighbours, lived_in
from smg_mesh.io.security.rejected import REASONS, Rejected
from smg_mesh.swim.effects import Effect, Note, SendDatagram
from smg_mesh.swim.messages import Address, Claim, Rank
from smg_mesh.swim.wire import WireError, decode

GROWTH_BYTES_MAX: Final = 64 * 1024 * 1024
"""The caps of table, rumors and caches together are well below; a leak of 100 bytes a packet is not."""
_PLAIN_PERCENT: Final = 5
_OUTSIDE_PERCENT: Final = 45
_TOLD_EVERY: Final = 4096
_COMPARED_EVERY: Final = 64
"""Undecodable packets after which the whole table is compared; the digest is compared after each."""
_AFTERWARDS_MS: Final = 8_000
SOURCE: Final = Address("10.0.0.66", 7946)
_REFUSED: Final = [Note("refused", detail="wire")]

Progress: TypeAlias = Callable[[str, int, int], None]
_State: TypeAlias = tuple[bytes, list[Claim]]


class Attack:
    """One run; the same seed and number make the same datagrams."""

    def __init__(self, seed: int, packets: int, progress: Progress) -> None:
        self.report = Report(seed)
        self._seed = seed
        self._packets = packets
        self._progress = progress
        self._print = blake2b(digest_size=8)

    def run(self) -> Report:
        """Attack from outside, then from inside; return what came of it."""
        plain = self._packets * _PLAIN_PERCENT // 100
        sealed = self._packets * _OUTSIDE_PERCENT // 100
        resident = _resident()
        self._outside("outside", lived_in(self._seed), sealed)
        self._outside("outside, plain", lived_in(self._seed, sealed=False), plain)
        self._inside(lived_in(self._seed), self._packets - sealed - plain)
        self._weigh(resident)
        self.report.facts["fingerprint"] = self._print.hexdigest()
        return self.report

    # ── Without the key ──────────────────────────────────────────────────────

    def _outside(self, part: str, cluster: Neighbours, packets: int) -> None:
        rng = random.Random(f"{self._seed}/{part}")
        listener = Listener(cluster, rng)
        kinds = tuple(outside.MAKERS)
        before, known = _state(cluster), cluster.victim.ring.senders()
        for number in range(packets):
            kind = rng.choice(kinds)
            datagram = outside.MAKERS[kind](listener)
            self._print.update(datagram)
            outcome = self._open(part, cluster, datagram)
            if outcome not in REASONS:
                self.report.breaks(f"{part}, number {number}, {kind}: {outcome}")
            self.report.count(part, kind, outcome)
            self._tell(part, number, packets)
        if _state(cluster) != before or cluster.victim.ring.senders() != known:
            self.report.breaks(
                f"{part}: refused datagrams changed the table, the digest or the ring"
            )
        self._look_afterwards(part, cluster)

    def _open(self, part: str, cluster: Neighbours, datagram: bytes) -> str:
        try:
            cluster.victim.ring.open(datagram)
        except Rejected as refused:
            return refused.reason
        except Exception as error:  # whatever else it is, it is what this program looks for
            return f"raised {error!r}"
        return "let in"

    def _look_afterwards(self, part: str, cluster: Neighbours) -> None:
        """Check that the victim still knows its neighbours, and still receives from them."""
        heard = len(cluster.heard), cluster.heard[-1]
        cluster.advance(cluster.now_ms + _AFTERWARDS_MS)
        states = {member.name: member.rank for member in cluster.victim.core.members()}
        if states != dict.fromkeys(NAMES, Rank.ALIVE) or heard[1] == cluster.heard[-1]:
            self.report.breaks(f"{part}: afterwards the neighbours were {states}")

    # ── With the key ─────────────────────────────────────────────────────────

    def _inside(self, cluster: Neighbours, packets: int) -> None:
        rng = random.Random(f"{self._seed}/inside")
        insider = Insider(cluster, rng)
        kinds = tuple(inside.MAKERS)
        # A counter of its own: the real members' numbers stay theirs.
        sealing, opening = cluster.ring(), cluster.ring()
        for number in range(packets):
            kind = rng.choice(kinds)
            clear = inside.MAKERS[kind](insider)
            self._print.update(clear)
            try:
                outcome = self._hear(cluster, opening.open(sealing.seal(clear)), number)
            except Exception as error:  # whatever it is, it is what this program looks for
                outcome = "raised"
                self.report.breaks(f"inside, number {number}, {kind}: {error!r}")
            self.report.count("inside", kind, outcome)
            cluster.advance(cluster.now_ms + 1)
            self._tell("inside", number, packets)
        core = cluster.victim.core
        self._print.update(core.digest())
        self.report.facts["rows of the victim"] = f"{len(core.rows()):,}"
        self.report.facts["virtual time"] = f"{cluster.now_ms / 1000:,.0f} s"
        if core.superseded:
            self.report.breaks("inside: the victim stepped down for a name that nobody had")

    def _hear(self, cluster: Neighbours, clear: bytes, number: int) -> str:
        core, now_ms = cluster.victim.core, cluster.now_ms
        try:
            decode(clear)
        except WireError as error:
            self._hear_nothing(cluster, clear, compare=number % _COMPARED_EVERY == 0)
            return error.reason
        effects = core.handle_datagram(clear, SOURCE, now_ms=now_ms)
        self._check_said(effects)
        cluster.perform(core.name, effects)
        return "heard"

    def _hear_nothing(self, cluster: Neighbours, clear: bytes, *, compare: bool) -> None:
        core, now_ms = cluster.victim.core, cluster.now_ms
        digest = core.digest()
        before = _state(cluster) if compare else None
        effects = core.handle_datagram(clear, SOURCE, now_ms=now_ms)
        same = before is None or _state(cluster) == before
        if effects != _REFUSED or core.digest() != digest or not same:
            self.report.breaks(f"inside: a packet that does not decode had effects: {effects}")

    def _check_said(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, SendDatagram):
                decode(effect.packet)

    # ── Both ─────────────────────────────────────────────────────────────────

    def _weigh(self, before: int) -> None:
        growth = _resident() - before
        self.report.facts["memory grew by"] = f"{growth / 1024 / 1024:.1f} MiB"
        if growth > GROWTH_BYTES_MAX:
            self.report.breaks(f"memory grew by {growth:,} bytes, {GROWTH_BYTES_MAX:,} are allowed")

    def _tell(self, part: str, number: int, packets: int) -> None:
        if number % _TOLD_EVERY == 0 or number == packets - 1:
            self._progress(part, number + 1, packets)


def _state(cluster: Neighbours) -> _State:
    core = cluster.victim.core
    return core.digest(), core.rows()


def _resident() -> int:
    gc.collect()
    return resident_bytes()
