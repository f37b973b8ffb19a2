"""Member table: the last word on every name, and which names count as members.

A row joins two things, each of which only grows:

- `order` = (boot, incarnation, rank): the state. Any node may raise the rank; only the member
  itself raises boot and incarnation.
- `detail` = (boot, incarnation) of the address and meta we know. The member alone says them, and a
  packet's header can make `order` run ahead of them; an equal or even an older state that brings a
  newer detail is therefore not a repetition.

So merging claims is a join: any order of arrival, any repetition, the same table.

A row is *present* (a member: probed, gossiped to, counted) while its rank is ALIVE or SUSPECT and
its address is known. All others age: a day later they are forgotten. What was forgotten is
remembered by name and order for as long as others still offer it, or one cluster's rows of the dead
would be handed round for ever.

This node is not in the table.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

from smg_mesh.config import SwimOptions
from smg_mesh.swim.members.member_row import Row
from smg_mesh.swim.messages import Address, Claim, Rank

PRESENT_MAX: Final = 16_384
"""Members taken in; a cluster of equal nodes is two orders of magnitude smaller."""


GRAVE_KEPT_MS: Final = 7 * 86_400_000
"""A week after its row was forgotten, the last address of a dead member is given up too."""


class Grave(NamedTuple):
    """Address of a member that died and was forgotten."""

    address: Address
    since_ms: int


class Merge(NamedTuple):
    """Result of a merge: what a claim did to its row. `*_before` are those of the row
    before it, None for a new row.
    """

    row: Row
    rank_before: Rank | None
    boot_before: int
    present_before: bool
    moved: bool
    """The state grew."""
    told: bool
    """The detail grew."""
    differs: bool
    """Address or meta are others than before."""


def digest_piece(name: str, boot: int, incarnation: int) -> int:
    """Return what a member adds to a table's digest, which is the XOR over its members."""
    text = b"%s\0%d\0%d" % (name.encode(), boot, incarnation)
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


class Members:
    """All rows but this node's own."""

    def __init__(self, options: SwimOptions) -> None:
        self._options = options
        self.rows: dict[str, Row] = {}
        self.tags: dict[bytes, Row] = {}
        self.present: list[Row] = []
        self.dead: list[Row] = []
        """Rows of rank DEAD whose address is known: they are looked at now and then."""
        self.digest = 0
        self._aging: dict[str, Row] = {}
        self._forgotten: dict[str, tuple[int, int, int]] = {}
        self._graves: dict[str, Grave] = {}

    @property
    def count(self) -> int:
        """Members not dead or left, this node included: the `n` of every formula."""
        return len(self.present) + 1

    @property
    def alone(self) -> bool:
        """Whether no other name is known that could be talked to, dead or alive."""
        return not (self.present or self.dead)

    @property
    def aging_count(self) -> int:
        """Rows that are no members."""
        return len(self._aging)

    def merge(self, claim: Claim, *, now_ms: int) -> Merge | None:
        """Join `claim` into the table; None if it says nothing new."""
        row = self.rows.get(claim.name)
        if row is None:
            return self._admit(claim, now_ms=now_ms)
        order = claim.order
        moved = order > row.order
        told = claim.address is not None and order[:2] > row.detail
        if not (moved or told):
            return None
        rank_before, boot_before, present_before = row.rank, row.boot, row.present
        if moved:
            if order[2] != rank_before or order[0] != boot_before:
                row.since_ms = now_ms
            row.move(order, claim.accuser)
        differs = told and row.tell(claim)
        self._place(row, now_ms=now_ms)
        return Merge(row, rank_before, boot_before, present_before, moved, told, differs)

    def _admit(self, claim: Claim, *, now_ms: int) -> Merge | None:
        if claim.rank is not Rank.ALIVE and self._was_forgotten(claim):
            return None
        if len(self.present) >= PRESENT_MAX:
            return None
        row = Row(claim.name, now_ms)
        row.move(claim.order, claim.accuser)
        told = claim.address is not None and row.tell(claim)
        self.rows[row.name] = row
        self.tags[row.tag] = row
        self._graves.pop(row.name, None)
        self._place(row, now_ms=now_ms)
        return Merge(row, None, 0, False, True, told, told)

    def _was_forgotten(self, claim: Claim) -> bool:
        order = self._forgotten.get(claim.name)
        if order is None or claim.order > order:
            return False
        self._remember_forgotten(claim.name, order)
        return True

    def _place(self, row: Row, *, now_ms: int) -> None:
        """Put the row where its state belongs, and bring digest and ages up to date."""
        present = row.address is not None and not row.rank.gone
        dead = row.address is not None and row.rank is Rank.DEAD
        self._list(row, self.present if present else self.dead if dead else None)
        row.present = present
        if present:
            self._aging.pop(row.name, None)
        elif row.name not in self._aging:
            self._aging[row.name] = row
            row.aged_ms = now_ms
            if len(self._aging) > self._options.rows_max:
                self._outlive(next(iter(self._aging.values())), now_ms=now_ms)
        piece = digest_piece(row.name, *row.detail) if present else 0
        self.digest ^= row.piece ^ piece
        row.piece = piece

    def _list(self, row: Row, wanted: list[Row] | None) -> None:
        """Move the row between the lists; the last one of the old list takes its place."""
        if row.listed is wanted:
            return
        if row.listed is not None:
            last = row.listed.pop()
            if last is not row:
                row.listed[row.place] = last
                last.place = row.place
        row.listed = wanted
        if wanted is not None:
            row.place = len(wanted)
            wanted.append(row)

    def _drop(self, row: Row) -> None:
        assert not row.present
        self._list(row, None)
        self._aging.pop(row.name, None)
        self.rows.pop(row.name, None)
        self.tags.pop(row.tag, None)
        self._remember_forgotten(row.name, row.order)

    def _remember_forgotten(self, name: str, order: tuple[int, int, int]) -> None:
        self._forgotten.pop(name, None)
        if len(self._forgotten) >= self._options.rows_max:
            del self._forgotten[next(iter(self._forgotten))]
        self._forgotten[name] = order

    def forget(self, name: str) -> None:
        """Drop a row; KeyError if there is none, ValueError if it is a member's."""
        row = self.rows[name]
        if not row.rank.gone:
            raise ValueError(f"{name} is {row.rank.name.lower()}, not gone")
        self._drop(row)

    def sweep(self, *, now_ms: int) -> int:
        """Drop the rows whose time is over; return how many."""
        dropped = 0
        while self._aging:
            row = next(iter(self._aging.values()))
            if now_ms - row.aged_ms < self._options.forget_after_ms:
                break
            self._outlive(row, now_ms=now_ms)
            dropped += 1
        return dropped

    def _outlive(self, row: Row, *, now_ms: int) -> None:
        """Drop a row, but remember where the dead used to listen."""
        self._drop(row)
        if row.rank is Rank.DEAD and row.address is not None:
            if len(self._graves) >= self._options.rows_max:
                del self._graves[next(iter(self._graves))]
            self._graves[row.name] = Grave(row.address, now_ms)

    def next_grave(self, *, now_ms: int) -> Address | None:
        """Return where one of those used to listen, each in its turn, or None without any."""
        while self._graves:
            name, grave = next(iter(self._graves.items()))
            del self._graves[name]
            if now_ms - grave.since_ms < GRAVE_KEPT_MS:
                self._graves[name] = grave
                return grave.address
        return None

    def claims(self) -> Iterator[Claim]:
        """Yield one claim per row, ordered by name, with address and meta.

        Where a member's state ran ahead of its detail there is nothing true to say about the latter:
        that claim has none. It is a matter of moments, and until then digests differ. LEFT is the
        last word of a life: no newer detail can follow, and it takes the last one along.
        """
        for name in sorted(self.rows):
            yield self.rows[name].claim(full=True)

    def address_of(self, name: str) -> Address | None:
        """Return where that name listens, if it is known."""
        row = self.rows.get(name)
        return None if row is None else row.address
