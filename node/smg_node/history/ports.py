"""What history needs of others: a store that keeps, models that measure, somebody who seals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from smg_node.core.request import Prompt
from smg_node.dialects.responses.teller import ReasoningEvents
from smg_storage.records import Access, Turn
from smg_storage.store import HistoryStore

NO_STORE: Final = "none"
"""The kind of a store that keeps nothing."""
_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """How much of a history is read, and how long it is kept. Sizes in bytes."""

    items_max: int = 2_000
    bytes_max: int = 16 << 20
    conversation_items_max: int = 100_000
    store_timeout_s: float = 5.0
    """How long one operation of the store may take."""
    responses_kept_s: int = 30 * _DAY_S
    """How long a response is kept after its end; 0 is for ever."""
    conversations_kept_s: int = 0
    """How long a conversation is kept after it was made; 0 is for ever."""
    context_headers: tuple[str, ...] = ()
    """Which headers of a request hooks of the store are told of; lower case."""
    reasoning_events: ReasoningEvents = "sdk"
    """How the events of thoughts are called."""


class Kept(msgspec.Struct, frozen=True):
    """What became of a turn: the positions of its links, or that it waits on this node's disk for its store."""

    spooled: bool = False
    positions: Sequence[int] = ()


class Keeper(Protocol):
    """The store, as history uses it."""

    @property
    def store(self) -> HistoryStore:
        """Where everything is read, and written that can be written again by whoever asked."""
        ...

    def check_can_keep(self) -> None:
        """Return if a turn that is made now can be made durable, as far as is known; else UNAVAILABLE."""
        ...

    async def commit(self, access: Access, turn: Turn) -> Kept:
        """Make a turn durable; StoreError if that cannot be. Doing it again with the same turn is harmless."""
        ...


class Direct:
    """A keeper with nothing behind its store: what cannot be written now is refused."""

    def __init__(self, store: HistoryStore) -> None:
        self._store = store

    @property
    def store(self) -> HistoryStore:
        """Where everything is read and written."""
        return self._store

    def check_can_keep(self) -> None:
        """Return: nothing is known of the store before it is asked."""

    async def commit(self, access: Access, turn: Turn) -> Kept:
        """Write a turn."""
        committed = await self._store.commit_turn(access, turn)
        return Kept(positions=committed.positions)


class Measure(Protocol):
    """One model, as far as the length of prompts goes."""

    @property
    def name(self) -> str:
        """Its own name, under whichever alias it was asked for."""
        ...

    @property
    def context(self) -> int | None:
        """How many tokens prompt and answer may have together; None if nobody knows."""
        ...

    async def count(self, prompt: Prompt) -> int:
        """Return how many tokens a prompt has, exactly; INVALID_REQUEST where its template objects."""
        ...


class Measures(Protocol):
    """All models."""

    async def of(self, model: str, *, deadline_s: float) -> Measure:
        """Return the model of that name or alias; the errors of a generation that asks for it."""
        ...


class Vault(Protocol):
    """What only nodes of this cluster can open, as far as it has keys."""

    def seal(self, secret: str) -> bytes:
        """Return it sealed."""
        ...

    def open_secret(self, sealed: bytes) -> str | None:
        """Return what any node sealed; None for anything else."""
        ...
