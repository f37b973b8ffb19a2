"""Ports of history: protocols of keeper, prompt measures, thread assignment and vault."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Final, Protocol

import msgspec

from smg_node.core.generation.request import Prompt
from smg_node.dialects.responses.events.presenter import ReasoningEvents
from smg_node.dialects.responses.request.response_request import Api
from smg_storage.ids import Chance, new_thread, thread_of
from smg_storage.records import Access, Turn
from smg_storage.store import HistoryStore

NO_STORE: Final = "none"
"""The kind of a store that keeps nothing."""
STATE_ITEM: Final = "opaque_state"
"""The type of items that hold vendors' opaque state: no client sees them."""
_DAY_S: Final = 86_400


class Quota(msgspec.Struct, frozen=True):
    """Storage quota of each tenant; 0 is unlimited."""

    responses: int = 0
    conversations: int = 0
    bytes: int = 0

    @property
    def is_any(self) -> bool:
        """Whether anything is limited."""
        return bool(self.responses or self.conversations or self.bytes)


@dataclass(slots=True)
class HistoryOptions:
    """How much of a history is read, and how long it is kept. Sizes in bytes.

    There is one instance, and its users read it each time: the cluster's settings may change.
    """

    items_max: int = 2_000
    bytes_max: int = 16 << 20
    conversation_items_max: int = 100_000
    store_timeout_s: float = 5.0
    """How long one operation of the store may take."""
    responses_kept_s: int = 30 * _DAY_S
    """How long a response is kept after its end; 0 is for ever."""
    conversations_kept_s: int = 0
    """How long a conversation is kept after something was last appended; 0 is for ever."""
    keys_kept_s: int = _DAY_S
    """How long a client's key on a request answers for it."""
    sweep_s: float = 60.0
    """How often what is over is looked for."""
    quota: Quota = field(default_factory=Quota)
    context_headers: tuple[str, ...] = ()
    """Which headers of a request hooks of the store are told of; lower case."""
    reasoning_events: ReasoningEvents = "sdk"
    """How the events of thoughts are called."""
    resume_grace_s: float = 0.0
    """How long a stored, streamed response goes on without its client; 0 is not at all."""
    interaction_grace_s: float = 5.0
    """How long a stored, streamed interaction with checkpoints goes on without its client."""
    checkpoint_ms: int = 250
    """How often a stream of an interaction has a checkpoint at most; 0 is with every write, -1 never."""
    event_log_kept_s: float = 600.0
    """How long the events of a response are kept after its end."""
    background_deadline_s: float = 3_600.0
    background_node_max: int = 1_024
    """How many responses may be made at a time that outlive who asked for them."""
    background_tenant_max: int = 128
    """How many of those may be one tenant's."""

    def grace_s(self, api: Api) -> float:
        """Return how long a stored, streamed answer of this API goes on without its client."""
        if api == "interactions" and self.checkpoint_ms >= 0:
            return max(self.interaction_grace_s, self.resume_grace_s)
        return self.resume_grace_s

    def log_until_us(self, created_us: int) -> int:
        """Return until when the events of a response are kept that was begun then: long enough,
        whenever it ends.
        """
        return created_us + round((self.background_deadline_s + self.event_log_kept_s) * 1_000_000)

    def become(self, other: "HistoryOptions") -> None:
        """Take over all values; every holder of this object sees the change."""
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))


class Kept(msgspec.Struct, frozen=True):
    """Result of a commit: the positions of its links, or that the turn is spooled on this node's
    disk.
    """

    spooled: bool = False
    positions: Sequence[int] = ()
    response: bytes = b""
    """The object of the response as it is in the row, where it is not as it was given."""


class Threads(Protocol):
    """Assigns the thread of new responses and conversations."""

    def thread(self, origin: str = "") -> str:
        """Return the thread of what continues this response or conversation, which exists, or a new
        one.
        """
        ...


class SharedThreads:
    """Threads of a store that all nodes share: no node owns one."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance

    def thread(self, origin: str = "") -> str:
        """Return that of `origin`, or a new one."""
        return thread_of(origin) if origin else new_thread(self._chance)


class Keeper(Protocol):
    """The store, as history uses it."""

    @property
    def store(self) -> HistoryStore:
        """Store for all reads, and for writes that their caller can repeat."""
        ...

    def check_can_keep(self) -> None:
        """Return if a turn made now can be made durable, as far as is known; else UNAVAILABLE."""
        ...

    async def commit(self, access: Access, turn: Turn) -> Kept:
        """Make a turn durable; StoreError if that cannot be. Doing it again with the same turn is harmless."""
        ...

    async def write(self, access: Access, turn: Turn) -> Kept:
        """Make a turn durable in the store itself, nowhere else; StoreError if that cannot be."""
        ...


class Direct:
    """A keeper with nothing behind its store: a turn that cannot be written now is refused."""

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
        return await self.write(access, turn)

    async def write(self, access: Access, turn: Turn) -> Kept:
        """Write a turn."""
        committed = await self._store.commit_turn(access, turn)
        return Kept(positions=committed.positions)


class Measure(Protocol):
    """Prompt lengths of one model."""

    @property
    def name(self) -> str:
        """The model's own name, under whichever alias it was asked for."""
        ...

    @property
    def context(self) -> int | None:
        """Maximum tokens of prompt and answer together; None if unknown."""
        ...

    def check(self, where: str) -> None:
        """Return if its tokens can be counted here; else INVALID_REQUEST for the field `where`,
        which needs that.
        """
        ...

    async def count(self, prompt: Prompt) -> int:
        """Return how many tokens a prompt has, exactly; INVALID_REQUEST where its template objects, or see `check`."""
        ...


class Measures(Protocol):
    """Measures of all models."""

    async def of(self, model: str, *, deadline_s: float) -> Measure:
        """Return the model of that name or alias; the errors of a generation that asks for it."""
        ...


class Vault(Protocol):
    """Encryption that only nodes of this cluster can undo, as far as it has keys."""

    def seal(self, secret: str) -> bytes:
        """Return it sealed."""
        ...

    def open_secret(self, sealed: bytes) -> str | None:
        """Return what any node sealed; None for anything else."""
        ...
