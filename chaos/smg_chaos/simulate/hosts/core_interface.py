"""Core interface: protocol of the membership core, as worlds call it; tests give a simple one."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from smg_mesh.config import SwimOptions
from smg_mesh.swim.effects import Effect, ExchangeReason, Member, Rng, StreamAnswer, Timer
from smg_mesh.swim.messages import Address, Claim


class Core(Protocol):
    """The inputs and the readings of `smg_mesh.swim.swim_core.Swim` that a driver uses."""

    @property
    def boot(self) -> int:
        """Its number among the lives of its name."""
        ...

    @property
    def incarnation(self) -> int:
        """How often it refuted or changed in this life."""
        ...

    @property
    def isolated(self) -> bool:
        """Whether it believes that it is the one cut off."""
        ...

    @property
    def farewell_over(self) -> bool:
        """Whether its goodbye has been said often enough."""
        ...

    def start(self, *, now_ms: int) -> list[Effect]:
        """Begin; return the first timers."""
        ...

    def handle_datagram(self, data: bytes, sender: Address, *, now_ms: int) -> list[Effect]:
        """Take a clear packet."""
        ...

    def handle_timer(self, timer: Timer, *, now_ms: int) -> list[Effect]:
        """Take a timer that is due."""
        ...

    def handle_stall(self, lag_ms: int, *, now_ms: int) -> list[Effect]:
        """Hear that the loop stood still."""
        ...

    def handle_stream_ping(self, nonce: int, *, answer: StreamAnswer, now_ms: int) -> list[Effect]:
        """Hear how a ping over TCP went."""
        ...

    def handle_rows(self, rows: Sequence[Claim], *, now_ms: int) -> list[Effect]:
        """Merge rows of an exchange."""
        ...

    def handle_exchange_end(self, name: str, *, ok: bool, now_ms: int) -> list[Effect]:
        """Hear that an exchange is over."""
        ...

    def greet(self, addresses: Sequence[Address], *, now_ms: int) -> list[Effect]:
        """Say hello to addresses."""
        ...

    def change_meta(self, meta: bytes, *, now_ms: int) -> list[Effect]:
        """Change the own meta."""
        ...

    def change_address(self, address: Address, *, now_ms: int) -> list[Effect]:
        """Change the own address."""
        ...

    def say(self, kind: str, key: str, content: bytes, *, now_ms: int) -> list[Effect]:
        """Spread own news."""
        ...

    def converse(
        self, why: ExchangeReason, *, count: int = 1, name: str = "", now_ms: int
    ) -> list[Effect]:
        """Ask for exchanges."""
        ...

    def set_document_digest(self, digest: bytes) -> None:
        """Say what the documents are."""
        ...

    def leave(self, *, now_ms: int) -> list[Effect]:
        """Say goodbye."""
        ...

    def rows(self) -> list[Claim]:
        """Return the whole table, the gone too."""
        ...

    def members(self) -> list[Member]:
        """Return the table for people."""
        ...

    def member(self, name: str) -> Member | None:
        """Return one row."""
        ...

    def digest(self) -> bytes:
        """Return 8 bytes over the living rows."""
        ...


CoreFactory: TypeAlias = Callable[[str, Address, int, bytes, SwimOptions, Rng], Core]
"""(name, address, boot, meta, options, chance) → a core that was not started yet."""
