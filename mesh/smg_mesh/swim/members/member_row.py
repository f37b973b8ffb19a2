"""Member row: what this node knows about one other name."""

from dataclasses import dataclass, field

from smg_mesh.swim.effects import Member
from smg_mesh.swim.members.flap_damping import Flaps, Hold
from smg_mesh.swim.members.round_trips import RoundTrips
from smg_mesh.swim.members.suspicion_timeout import Suspicion
from smg_mesh.swim.messages import Address, Claim, Rank
from smg_mesh.swim.wire import sender_tag


@dataclass(slots=True, eq=False)
class Row:
    """One row of the member table; `Members` says what its state means and alone moves it."""

    name: str
    since_ms: int
    tag: bytes = b""
    order: tuple[int, int, int] = (-1, -1, -1)
    boot: int = -1
    incarnation: int = -1
    rank: Rank = Rank.ALIVE
    accuser: str = ""
    detail: tuple[int, int] = (-1, -1)
    address: Address | None = None
    meta: bytes = b""

    present: bool = False
    piece: int = 0
    """Its part of the table's digest; 0 while it is no member."""
    listed: list["Row"] | None = None
    place: int = 0
    """Its index in `listed`."""
    in_round: bool = False
    aged_ms: int = 0
    """When it stopped being a member."""

    heard_ms: int | None = None
    told_ms: int | None = None
    """When it was last told what is held against it."""
    differs_ms: int | None = None
    """Since when its digests differ from ours."""
    trips: RoundTrips = field(default_factory=RoundTrips)
    suspicion: Suspicion | None = None
    flaps: Flaps = field(default_factory=Flaps)
    hold: Hold | None = None
    announced: bool = False
    was_announced: bool = False
    """Subscribers were told that it is up, at least once."""

    def __post_init__(self) -> None:
        self.tag = sender_tag(self.name)

    def move(self, order: tuple[int, int, int], accuser: str) -> None:
        """Take a state."""
        self.order = order
        self.boot, self.incarnation, rank = order
        self.rank = Rank(rank)
        self.accuser = accuser

    def tell(self, claim: Claim) -> bool:
        """Take address and meta; return whether they are others than before."""
        meta = claim.meta or b""
        differs = (self.address, self.meta) != (claim.address, meta)
        self.detail = (claim.boot, claim.incarnation)
        self.address, self.meta = claim.address, meta
        return differs

    @property
    def detailed(self) -> bool:
        """Whether address and meta are those of the present state."""
        return self.detail == self.order[:2]

    def claim(self, *, full: bool = False) -> Claim:
        """Return the state as a claim; with address and meta if ALIVE or `full`, as far as known."""
        boot, incarnation, _ = self.order
        known = self.address is not None and (self.detailed or self.rank is Rank.LEFT)
        if not known or not (full or self.rank is Rank.ALIVE):
            return Claim(self.name, boot, incarnation, self.rank, accuser=self.accuser)
        address, meta = self.address, self.meta
        return Claim(self.name, boot, incarnation, self.rank, address, meta, self.accuser)

    def dead_but_for(self, claim: Claim) -> bool:
        """Whether this life of it is dead here, and a member in an older claim."""
        return self.rank is Rank.DEAD and claim.boot == self.boot and not claim.rank.gone

    @property
    def doubt(self) -> Claim | None:
        """What pings to it carry, so that it can refute: the claim against it, if there is one."""
        return None if self.rank is Rank.ALIVE else self.claim()

    def member(self) -> Member:
        """Return the row as others may see it; its address must be known."""
        assert self.address is not None
        return Member(
            self.name,
            self.address,
            self.boot,
            self.incarnation,
            self.rank,
            self.meta,
            self.since_ms,
            self.heard_ms,
            self.trips.median_ms(),
            self.announced,
            self.accuser,
        )
