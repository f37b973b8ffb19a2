"""Effects that the SWIM core asks of its driver, in the order in which they are to be done.

Nothing is ever cancelled: a timer carries a token, and the core ignores tokens that are stale.
"""

from enum import Enum
from typing import Literal, Protocol, TypeAlias

import msgspec

from smg_mesh.swim.messages import Address, News, Rank


class Rng(Protocol):
    """Chance, as an argument; `random.Random` fits."""

    def getrandbits(self, k: int, /) -> int:
        """Return an integer of `k` random bits."""
        ...

    def random(self) -> float:
        """Return a float in [0, 1)."""
        ...


class Timer(msgspec.Struct, frozen=True):
    """Timer that the driver hands back when it is due. `subject` is a member's name, or empty."""

    kind: str
    subject: str
    token: int


class Member(msgspec.Struct, frozen=True):
    """One row of the member table, as others may see it. Times are the core's monotonic milliseconds."""

    name: str
    address: Address
    boot: int
    incarnation: int
    rank: Rank
    meta: bytes
    since_ms: int
    """When it entered this state here."""
    heard_ms: int | None
    """When a packet of its own last arrived here; None: never, or it is this node."""
    rtt_ms: float | None
    """Median round trip of the last samples; None without any."""
    announced: bool
    """Whether subscribers were told it is up (a member that came back is held down first)."""
    accuser: str
    """Who last raised or confirmed the doubt, or empty."""


class SendDatagram(msgspec.Struct, frozen=True):
    """Send a clear packet; sealing it is the driver's. A full socket is a lost packet."""

    to: Address
    packet: bytes


class SetTimer(msgspec.Struct, frozen=True):
    """Hand `timer` back at `due_ms`."""

    timer: Timer
    due_ms: int


class StreamPing(msgspec.Struct, frozen=True):
    """Ask over TCP whether the process at `address` is `name` of `boot`; the answer goes to `handle_stream_ping`."""

    name: str
    boot: int
    address: Address
    nonce: int
    deadline_ms: int
    """How long to wait, a span."""


class StreamAnswer(Enum):
    """Outcome of a stream ping. Only HERE is true."""

    HERE = "here"
    """That very life of that member answered."""
    SILENT = "silent"
    """Nobody did in time, or somebody else."""
    NOBODY = "nobody"
    """The host itself said that no process listens there (the connection was refused)."""

    def __bool__(self) -> bool:
        return self is StreamAnswer.HERE


ExchangeReason: TypeAlias = Literal[
    "join", "digest", "up", "told", "stall", "periodic", "heal", "push", "gap"
]


class OpenExchange(msgspec.Struct, frozen=True):
    """Converse with that member. When it ends, well or not, `handle_exchange_end(name)` is owed."""

    name: str
    address: Address
    why: ExchangeReason


class MemberUp(msgspec.Struct, frozen=True):
    """A member that subscribers may count on from now."""

    member: Member
    returned: bool
    """It was announced down or left before."""


class MemberSuspected(msgspec.Struct, frozen=True):
    """A member that is doubted here; still a member."""

    member: Member
    why: str


class MemberRefuted(msgspec.Struct, frozen=True):
    """A member whose doubt was answered."""

    member: Member


class MemberDown(msgspec.Struct, frozen=True):
    """A member that is dead for this node."""

    member: Member
    why: str


class MemberLeft(msgspec.Struct, frozen=True):
    """A member that said goodbye."""

    member: Member


class MemberChanged(msgspec.Struct, frozen=True):
    """A member with another address, other meta, or another life that was never announced down."""

    member: Member
    restarted: bool


class NewsReceived(msgspec.Struct, frozen=True):
    """A newer rumor that is not about membership."""

    news: News


class BootChanged(msgspec.Struct, frozen=True):
    """This node took a larger boot because a peer remembered one; keep it."""

    boot: int


class Superseded(msgspec.Struct, frozen=True):
    """A living process with this node's name and a larger boot answered: step down."""

    boot: int
    address: Address


class Isolated(msgspec.Struct, frozen=True):
    """Whether this node believes that it is the one cut off."""

    on: bool


class Note(msgspec.Struct, frozen=True):
    """Count `value` under `name` (counters of the mesh; `detail` is a label or empty)."""

    name: str
    value: int = 1
    detail: str = ""


Effect: TypeAlias = (
    SendDatagram
    | SetTimer
    | StreamPing
    | OpenExchange
    | MemberUp
    | MemberSuspected
    | MemberRefuted
    | MemberDown
    | MemberLeft
    | MemberChanged
    | NewsReceived
    | BootChanged
    | Superseded
    | Isolated
    | Note
)
