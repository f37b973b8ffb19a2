"""Name conflict: finds out whether another process with this node's
name and a larger boot is alive.

If it is, this process steps down: it is a stranger under a name that is taken, or it was restarted
elsewhere (`boot_numbers`). There are never two in one table, and as the numbers do not depend on who
started last, two machines of one name do not take turns. If it is not, it was an earlier life of this
node (the disk was lost), and this node takes a later boot and goes on. Only an answer to a ping of
ours counts, over UDP or TCP: claims about the other process may be older than its end.
"""

from dataclasses import dataclass
from typing import Final

from smg_mesh.swim.boot_numbers import BOOT_MAX, OUTLIVED_MS, boot_after
from smg_mesh.swim.detection.tcp_pings import StreamPings
from smg_mesh.swim.dissemination.packet_sender import PacketSender
from smg_mesh.swim.effects import BootChanged, Superseded
from smg_mesh.swim.messages import Address, Claim, Ping, Rank

TRIES: Final = 4
"""Pings one probe timeout apart, before the other process counts as gone."""


@dataclass(slots=True, eq=False)
class Inquiry:
    """The question under way."""

    boot: int
    address: Address | None
    nonce: int
    tries: int = 0
    token: int = 0


class Namesake:
    """At most one inquiry at a time, about the largest boot heard of."""

    def __init__(self, voice: PacketSender, streams: StreamPings) -> None:
        self._voice = voice
        self._streams = streams
        self._inquiry: Inquiry | None = None

    def heard_of(self, claim: Claim, seen_at: Address | None, *, now_ms: int) -> None:
        """Look into a claim about our name with a larger boot.

        `seen_at` is where a packet of that boot came from, if one did.
        """
        voice = self._voice
        assert claim.boot > voice.boot
        if claim.boot >= BOOT_MAX:
            voice.note("refused", detail="limit")
            return
        address = claim.address or seen_at
        ours = address == voice.address
        over = seen_at is None and claim.rank.gone and claim.address is None
        if ours or over or claim.rank is Rank.LEFT:
            self._outlive(claim.boot, now_ms=now_ms)
            return
        inquiry = self._inquiry
        if inquiry is None or inquiry.boot < claim.boot:
            self._inquiry = Inquiry(claim.boot, address, voice.nonce())
            self._try(self._inquiry, now_ms=now_ms)
        elif inquiry.boot == claim.boot and inquiry.address is None and address is not None:
            inquiry.address, inquiry.tries = address, 0
            self._try(inquiry, now_ms=now_ms)

    def tick(self, token: int, *, now_ms: int) -> None:
        """Ask again, or go on as a later life when there was no answer."""
        inquiry = self._inquiry
        if inquiry is None or token != inquiry.token:
            return
        if inquiry.tries < TRIES:
            self._try(inquiry, now_ms=now_ms)
        else:
            self._outlive(inquiry.boot, now_ms=now_ms)

    def _try(self, inquiry: Inquiry, *, now_ms: int) -> None:
        voice, timeout_ms = self._voice, self._voice.options.probe_timeout_ms
        inquiry.tries += 1
        if inquiry.address is not None:
            voice.send(inquiry.address, Ping(inquiry.nonce, voice.name, inquiry.boot))
            if inquiry.tries == 1:
                self._streams.ask(
                    "namesake",
                    voice.name,
                    inquiry.boot,
                    inquiry.address,
                    nonce=inquiry.nonce,
                    deadline_ms=TRIES * timeout_ms,
                    now_ms=now_ms,
                )
        inquiry.token = voice.timer("namesake", now_ms + timeout_ms)

    def answered(self, nonce: int) -> bool:
        """Take an answer of the other process: step down; False if it is none to our question."""
        inquiry = self._inquiry
        if inquiry is None or inquiry.nonce != nonce or inquiry.address is None:
            return False
        voice = self._voice
        voice.silent = True
        voice.note("superseded")
        voice.out.append(Superseded(inquiry.boot, inquiry.address))
        return True

    def refused(self, nonce: int) -> None:
        """Learn that the other host has no process there: no more pings, unless a firewall said so."""
        inquiry = self._inquiry
        if inquiry is not None and inquiry.nonce == nonce:
            inquiry.tries = TRIES

    def _outlive(self, boot: int, *, now_ms: int) -> None:
        self._inquiry = None
        if boot < self._voice.boot:
            return  # We outlived it already, for another reason.
        later = boot_after(boot, self._voice.rng, by_ms=OUTLIVED_MS)
        self._voice.take_boot(later, now_ms=now_ms)
        self._voice.note("boot_raised")
        self._voice.out.append(BootChanged(self._voice.boot))
