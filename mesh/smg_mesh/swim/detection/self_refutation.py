"""Self-refutation: answers what others say about this node, with a larger incarnation where needed.

Only the member itself raises its incarnation: a doubt about it is refuted with a larger one, to the
accuser directly and to all as a rumor. A node that leaves answers no doubts any more.
"""

from typing import Final

from smg_mesh.swim.boot_numbers import BOOT_MAX, boot_after
from smg_mesh.swim.detection.local_health import Health
from smg_mesh.swim.detection.name_conflict import Namesake
from smg_mesh.swim.dissemination.packet_sender import PacketSender
from smg_mesh.swim.effects import BootChanged
from smg_mesh.swim.members.member_table import Members
from smg_mesh.swim.messages import Accusation, Address, Claim, Rank
from smg_mesh.swim.rate_limits import OncePer

OLD_LIFE_SPAN_MS: Final = 1_000
"""Rumors about an earlier life are answered at most once in that time."""
ANSWER_SPAN_MS: Final = 250
"""Whoever tells us something out of date is answered at most once in that time."""


class SelfRefutation:
    """Refutes, and sends claims about other lives where they belong."""

    def __init__(
        self, voice: PacketSender, members: Members, health: Health, namesake: Namesake
    ) -> None:
        self._voice = voice
        self._members = members
        self._health = health
        self._namesake = namesake
        self._old_life: OncePer[str] = OncePer(OLD_LIFE_SPAN_MS)
        self._answered: OncePer[Address] = OncePer(ANSWER_SPAN_MS)

    def hear(self, claim: Claim, *, now_ms: int) -> None:
        """Take a claim about this node's name."""
        voice = self._voice
        if voice.leaving:
            return
        if claim.boot > voice.boot:
            self._namesake.heard_of(claim, None, now_ms=now_ms)
        elif claim.boot < voice.boot:
            if self._old_life.take(voice.name, now_ms=now_ms):
                voice.spread(voice.claim, now_ms=now_ms)
        elif claim.rank is not Rank.ALIVE and claim.incarnation >= voice.incarnation:
            self._refute(claim, now_ms=now_ms)
        elif claim.incarnation > voice.incarnation:
            # Said by nobody but us; whoever made it up has to be outdone, or we could not refute.
            self._raise(claim.incarnation, now_ms=now_ms)

    def _refute(self, claim: Claim, *, now_ms: int) -> None:
        voice = self._voice
        self._health.refuted()
        voice.note("refuted_self")
        self._raise(claim.incarnation, now_ms=now_ms)
        accuser = self._members.address_of(claim.accuser)
        if accuser is not None:
            self.answer(accuser, now_ms=now_ms)

    def _raise(self, above: int, *, now_ms: int) -> None:
        voice = self._voice
        if voice.raise_incarnation(above, now_ms=now_ms):
            return
        if voice.boot < BOOT_MAX:
            voice.take_boot(boot_after(voice.boot, voice.rng), now_ms=now_ms)
            voice.note("boot_raised")
            voice.out.append(BootChanged(voice.boot))

    def speak_up(self, *, now_ms: int) -> None:
        """Spread a newer claim of our own, unasked."""
        self._raise(self._voice.incarnation, now_ms=now_ms)

    def answer(self, to: Address, *, now_ms: int) -> None:
        """Tell a member that holds something else about this node what is true."""
        if not self._voice.leaving and self._answered.take(to, now_ms=now_ms):
            self._voice.introduce(to, answer=False)

    def tell_older(self, to: Address, *, now_ms: int) -> None:
        """Tell an earlier life of this node that it is over."""
        if not self._voice.leaving and self._answered.take(to, now_ms=now_ms):
            self._voice.note("told")
            self._voice.send(to, Accusation(self._voice.claim))
