"""Member updates: the one door through which the member table changes, and what follows from each.

A claim comes as a rumor, in an exchange, from the member itself, or from this node's own probes.
What is news is merged, passed on, and sets probes, doubts and announcements going. Two guards stand
at the door: no member is believed more than so many accusations a second, and a death heard in an
exchange, which is second-hand and of unknown age, is taken as a doubt only, about which the member
is told.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from smg_mesh.swim.announcer import Announcer
from smg_mesh.swim.detection.partition_healing import Healer
from smg_mesh.swim.detection.prober import Prober
from smg_mesh.swim.detection.running_suspicions import RunningSuspicions
from smg_mesh.swim.dissemination.exchange_schedule import Exchanges
from smg_mesh.swim.dissemination.packet_sender import PacketSender
from smg_mesh.swim.members.member_row import Row
from smg_mesh.swim.members.member_table import Members, Merge
from smg_mesh.swim.messages import Claim, Rank
from smg_mesh.swim.rate_limits import Buckets, OncePer

Source: TypeAlias = Literal["rumor", "exchange", "itself", "own"]
HELD_DEAD: Final = "dead: "
"""Before the name of who buried a member: a witness besides all accusers, none of which is called so."""
HEAL_SPAN_MS: Final = 1_000
"""Meeting the dead again starts at most one exchange in that time: it brings the others."""


class MemberUpdates:
    """Door for claims about other members."""

    def __init__(
        self,
        voice: PacketSender,
        members: Members,
        prober: Prober,
        doubts: RunningSuspicions,
        announcer: Announcer,
        exchanges: Exchanges,
        healer: Healer,
    ) -> None:
        self._voice = voice
        self._members = members
        self._prober = prober
        self._doubts = doubts
        self._announcer = announcer
        self._exchanges = exchanges
        self._healer = healer
        self._accusers = Buckets(voice.options.accusations_taken_per_s)
        self._healed: OncePer[str] = OncePer(HEAL_SPAN_MS)

    def hear(self, claim: Claim, source: Source, *, now_ms: int, spread: bool = True) -> None:
        """Take a claim about another name; what is news is passed on, unless not to be `spread`."""
        row = self._members.rows.get(claim.name)
        second_hand = False
        if row is not None:
            if claim.order <= row.order:
                self._hear_again(row, claim, source, now_ms=now_ms)
                return
            if claim.rank is Rank.DEAD and source == "exchange" and row.present:
                claim = msgspec.structs.replace(claim, rank=Rank.SUSPECT)
                second_hand = True
                if claim.order <= row.order:
                    # Doubted here already: who holds it dead has seen a doubt to its end.
                    self._doubts.confirm(row, HELD_DEAD + claim.accuser, now_ms=now_ms)
                    return
        if not self._believable(claim, source, now_ms=now_ms):
            return
        merge = self._members.merge(claim, now_ms=now_ms)
        if merge is None:
            return
        self._follow(merge, claim, source, now_ms=now_ms)
        if second_hand:
            self._doubts.confirm(merge.row, HELD_DEAD + claim.accuser, now_ms=now_ms)
            self._healer.tell(merge.row, merge.row.address, now_ms=now_ms)
        elif spread:
            self._spread(claim, now_ms=now_ms)

    def _believable(self, claim: Claim, source: Source, *, now_ms: int) -> bool:
        if source != "rumor" or claim.rank not in (Rank.SUSPECT, Rank.DEAD):
            return True
        if self._accusers.take(claim.accuser, now_ms=now_ms):
            return True
        self._voice.note("accusation_ignored", detail=claim.accuser)
        return False

    def _spread(self, claim: Claim, *, now_ms: int) -> None:
        # What a packet's header says has no address: the member spreads the whole of it itself.
        if claim.rank is not Rank.ALIVE or claim.address is not None:
            self._voice.spread(claim, now_ms=now_ms)

    def _hear_again(self, row: Row, claim: Claim, source: Source, *, now_ms: int) -> None:
        """Take a claim whose state is no news: it may confirm a doubt, or bring an address."""
        order = claim.order
        if claim.address is not None and order[:2] > row.detail:
            merge = self._members.merge(claim, now_ms=now_ms)
            if merge is not None:
                self._follow(merge, claim, source, now_ms=now_ms)
                self._spread(claim, now_ms=now_ms)
        elif claim.rank is Rank.SUSPECT and order == row.order:
            if self._confirms(row, claim, source, now_ms=now_ms):
                self._voice.spread(claim, now_ms=now_ms)
        elif source == "exchange" and row.dead_but_for(claim):
            # Somebody holds it alive whom we hold dead: it has to hear of that to refute.
            self._healer.tell(row, row.address, now_ms=now_ms)

    def _confirms(self, row: Row, claim: Claim, source: Source, *, now_ms: int) -> bool:
        suspicion = row.suspicion
        if suspicion is None or not suspicion.open_to(claim.accuser):
            return False
        if not self._believable(claim, source, now_ms=now_ms):
            return False
        row.accuser = claim.accuser
        return self._doubts.confirm(row, claim.accuser, now_ms=now_ms)

    # ── What follows ─────────────────────────────────────────────────────────

    def _follow(self, merge: Merge, claim: Claim, source: Source, *, now_ms: int) -> None:
        if merge.row.present:
            if merge.present_before:
                self._stayed(merge, claim, now_ms=now_ms)
            else:
                self._appeared(merge, claim, source, now_ms=now_ms)
        elif merge.present_before:
            self._went(merge.row, claim)

    def _appeared(self, merge: Merge, claim: Claim, source: Source, *, now_ms: int) -> None:
        row = merge.row
        self._prober.add(row)
        self._voice.wake_gossip(now_ms=now_ms)
        was_gone = merge.rank_before is not None and merge.rank_before.gone
        if was_gone and row.boot == merge.boot_before:
            self._announcer.hold(row, now_ms=now_ms)
            if source == "itself" and self._healed.take("", now_ms=now_ms):
                self._exchanges.ask(row, "heal", now_ms=now_ms)
        if row.rank is Rank.SUSPECT:
            self._doubts.start(row, claim.accuser, now_ms=now_ms)
        else:
            self._announce(row)

    def _stayed(self, merge: Merge, claim: Claim, *, now_ms: int) -> None:
        row = merge.row
        if merge.moved:
            if row.rank is Rank.SUSPECT:
                self._doubt(merge, claim, now_ms=now_ms)
            elif merge.rank_before is Rank.SUSPECT:
                self._doubts.drop(row)
                self._voice.note("refuted")
                self._announcer.refuted(row, now_ms=now_ms)
        if row.boot != merge.boot_before:
            row.differs_ms = None
            self._announcer.new_life(row)
        elif merge.differs:
            self._announcer.changed(row)
        if row.rank is Rank.ALIVE:
            self._announce(row)

    def _doubt(self, merge: Merge, claim: Claim, *, now_ms: int) -> None:
        row = merge.row
        self._doubts.start(row, claim.accuser, now_ms=now_ms)
        if claim.accuser != self._voice.name:
            self._doubts.remind(row)
        if merge.rank_before is Rank.ALIVE:
            self._voice.note("suspected")
            self._announcer.suspected(row, self._why(claim))

    def _announce(self, row: Row) -> None:
        if not row.announced and row.hold is None:
            self._announcer.up(row)

    def _went(self, row: Row, claim: Claim) -> None:
        self._doubts.drop(row)
        row.differs_ms = None
        if row.rank is Rank.LEFT:
            self._announcer.left(row)
        else:
            self._voice.note("died")
            self._announcer.down(row, self._why(claim))

    def _why(self, claim: Claim) -> str:
        if claim.accuser == self._voice.name:
            return "it does not answer"
        return f"{claim.accuser} hears no answer"
