"""State interface: what the parts of a mesh want of shared state
(`shared.Shared`), and it of the mesh.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from smg_mesh.io.rights.rights import Rights
from smg_mesh.io.security.secret_vault import Seals
from smg_mesh.io.shared_state.hint_transport import Hints
from smg_mesh.swim.messages import News
from smg_mesh.sync.exchange.piece_interface import Pieces
from smg_mesh.sync.replica_effects import DigestIs, OpenExchanges, SpreadRumor


class Gossip(Protocol):
    """Interface of the mesh that carries shared state."""

    @property
    def seals(self) -> Seals:
        """What closes and opens secrets."""
        ...

    @property
    def expect(self) -> int:
        """How many nodes have to see each other before they take themselves for a cluster; 1 for a node alone."""
        ...

    @property
    def incarnation(self) -> int:
        """How often this node had to speak up against what was said of it."""
        ...

    def send_letter(self, name: str, content: bytes) -> None:
        """Send a datagram to a member, by its name, or lose it."""
        ...

    def known(self) -> Sequence[str]:
        """Return the names of all members there is a row of, the dead too, until they are forgotten."""
        ...

    def nobody(self) -> bool:
        """Return whether no member could know more than this node."""
        ...

    def carry(self, wish: SpreadRumor | OpenExchanges | DigestIs) -> None:
        """Perform these effects."""
        ...

    def happened(self, kind: str, text: str, detail: Mapping[str, str | int]) -> None:
        """Write down what an operator wants to know."""
        ...

    async def take_hints(self, name: str, letter: bytes, *, deadline_s: float) -> bytes:
        """Return what a member answers to hints; `hint_transport.NotDeliveredError`."""
        ...


class Replicated(Protocol):
    """All replicated state of this node, as gossip and exchanges see it."""

    @property
    def pieces(self) -> Pieces:
        """What exchanges carry."""
        ...

    @property
    def held(self) -> bool:
        """Whether this node holds the cluster's state."""
        ...

    @property
    def hints(self) -> Hints:
        """What peers tell each other besides, and lose without harm."""
        ...

    @property
    def rights(self) -> Rights:
        """This node's rights to spend limits of the cluster."""
        ...

    def connect(self, gossip: Gossip) -> None:
        """Let `gossip` carry what this node says; before `open`."""
        ...

    async def open(self, boot: int) -> None:
        """Read what was kept, and begin this life."""
        ...

    async def run(self) -> None:
        """Keep and tidy until cancelled."""
        ...

    async def close(self) -> None:
        """Write down what is not."""
        ...

    def hear(self, news: News) -> None:
        """Take a rumor."""
        ...

    def set_members(self, living: Sequence[tuple[str, int]]) -> None:
        """Learn which members live, and in which life."""
        ...

    def change_boot(self, boot: int) -> None:
        """Go on as that life."""
        ...

    def look_around(self) -> None:
        """See to what keys or members that changed ask for."""
        ...

    def met(self, peer: str, *, full: bool, held: bool) -> None:
        """Learn that an exchange came to its end; `held`: the peer holds the cluster's state."""
        ...
