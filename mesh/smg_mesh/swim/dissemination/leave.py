"""Leave: says goodbye when this node leaves, so that all members hear it within half a second."""

from typing import Final

from smg_mesh.swim.dissemination.packet_sender import INCARNATION_MAX, PacketSender
from smg_mesh.swim.members.member_table import Members
from smg_mesh.swim.messages import Rank
from smg_mesh.swim.random_draws import sample

FAREWELL_MS: Final = 1_000
AGAIN_MS: Final = 50
TIMES: Final = 2
"""Told directly, because one packet may be lost."""
ALL_MAX: Final = 32
"""Up to so many members are told directly, each of them."""
SOME: Final = 16
"""In a larger cluster so many are told directly, and rumors do the rest."""


class Leave:
    """Goodbye of this node, said once; over when the rumor was sent
    often enough, or after a second.
    """

    def __init__(self, voice: PacketSender, members: Members) -> None:
        self._voice = voice
        self._members = members
        self._ends_ms: int | None = None
        self._said = 0
        self.over = False
        """Everybody can have heard it."""

    def begin(self, *, now_ms: int) -> None:
        """Say that this life of this node is over."""
        voice = self._voice
        if self._ends_ms is not None:
            return
        self._ends_ms = now_ms + FAREWELL_MS
        voice.rank = Rank.LEFT
        voice.raise_incarnation(min(voice.incarnation, INCARNATION_MAX - 1), now_ms=now_ms)
        self._tell()
        voice.timer("farewell", now_ms + AGAIN_MS)
        self.look(now_ms=now_ms)

    def tick(self, *, now_ms: int) -> None:
        """Say it again after a moment, and be done after a second."""
        if self._ends_ms is None or self.over:
            return
        if now_ms < self._ends_ms:
            self._tell()
            self._voice.timer("farewell", self._ends_ms)
        self.look(now_ms=now_ms)

    def look(self, *, now_ms: int) -> None:
        """Notice that everything was said."""
        if self._ends_ms is not None:
            said = self._said >= TIMES and not self._voice.rumors.waiting()
            nothing_left = self._members.alone or said
            self.over = self.over or nothing_left or now_ms >= self._ends_ms

    def _tell(self) -> None:
        self._said += 1
        present = self._members.present
        count = len(present) if self._members.count <= ALL_MAX else SOME
        for row in sample(self._voice.rng, present, count, lambda row: True):
            if row.address is not None:
                self._voice.introduce(row.address, answer=False)
