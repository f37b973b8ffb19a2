"""Effects that the escrow core asks of its driver, in the order in which it says them."""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from smg_mesh.escrow.book_rows import Minting
from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import Roster
from smg_mesh.escrow.messages.messages import Minted


class Rng(Protocol):
    """Chance, as an argument; `random.Random` fits."""

    def getrandbits(self, k: int, /) -> int:
        """Return an integer of `k` random bits."""
        ...

    def random(self) -> float:
        """Return a float in [0, 1)."""
        ...


@dataclass(frozen=True, slots=True)
class Send:
    """Send a packet to a member, by its name; it may get lost."""

    to: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Persist:
    """Write these down, on the disk itself, and say `persisted(token)`; what waits for it waits.

    What cannot be written is never said to be: then what waited is never sent.
    """

    token: int
    rows: tuple[Minted, ...]


@dataclass(frozen=True, slots=True)
class KeepRoster:
    """Let this be the roster that a later life begins with, and say `persisted(token)` as for `Persist`."""

    token: int
    roster: Roster


@dataclass(frozen=True, slots=True)
class KeepFounding:
    """Let a later life that finds no roster begin with what this one has promised; say `persisted(token)` as for
    `Persist`. A roster that is kept takes its place.
    """

    token: int
    state: FoundingState


@dataclass(frozen=True, slots=True)
class Note:
    """Count something."""

    name: str
    value: int = 1
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """Report loudly: in a window that is over, more was spent than there
    was. Once for each key and window.
    """

    more: int
    stands: int
    """What may have stood with the nodes."""
    minting: Minting
    said: tuple[tuple[str, int, int, int], ...]
    """(name, boot, spent, beyond the limit by its mode), as the nodes said last."""


Effect: TypeAlias = Send | Persist | KeepRoster | KeepFounding | Note | Difference
