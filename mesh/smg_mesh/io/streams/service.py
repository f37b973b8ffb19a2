"""Stream service interface: what the serving side of the streams needs
from the node, and method names.
"""

from typing import Final, Protocol

from smg_mesh.io.streams.loop_turns import Turns
from smg_mesh.swim.messages import Claim
from smg_mesh.sync.exchange.exchange_machine import Exchange, Opening

SERVICE: Final = "smg.mesh.v1.Mesh"
PING: Final = f"/{SERVICE}/Ping"
EXCHANGE: Final = f"/{SERVICE}/Exchange"
ASK: Final = f"/{SERVICE}/Ask"

TOPIC_CHARS_MAX: Final = 64
PAYLOAD_BYTES_MAX: Final = 1_000_000
"""Of a question or an answer, so that either fits in one message."""

EXCHANGE_S: Final = 120.0
"""The longest exchange, however well it goes on; the next one goes on where it was cut."""


class StreamService(Protocol):
    """Node behind the streams. None of it may take long but `answer`."""

    @property
    def turns(self) -> Turns:
        """What paces the work of all exchanges of this node."""
        ...

    async def ping(self, name: str, boot: int) -> bool:
        """Return whether this process is that life of that node."""
        ...

    def exchange(self) -> Exchange:
        """Return the answering side of a new exchange."""
        ...

    def learned(self, claims: tuple[Claim, ...], peer: Opening) -> None:
        """Merge rows that `peer` told; it has proved its name, if streams are secure."""
        ...

    def ended(self, machine: Exchange) -> None:
        """Learn that an exchange, which a peer began, came to its end."""
        ...

    async def answer(self, topic: str, payload: bytes, caller: str) -> bytes:
        """Return the answer to `caller`, at most `PAYLOAD_BYTES_MAX`; AskError says why there is none."""
        ...
