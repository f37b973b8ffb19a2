"""Rows of a store in memory: what it keeps of each thing, and which thread that goes with."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from smg_storage.memory.sorted_list import Ordered
from smg_storage.records import Conversation, EventBlob, Idempotency, Item, Location, StoredResponse

Key = tuple[str, str]
"""A tenant, and an id or a name of its own."""

# About what a row costs besides its documents, as tracemalloc sees it: a struct, its strings, its places in dictionaries
# and indices, and its share of a thread.
ROW_BYTES: Final = 1_500


class Kind(Enum):
    """Kind of thing that a row is about."""

    CONVERSATION = "conversation"
    ITEM = "item"
    RESPONSE = "response"
    LOCATION = "location"
    LOG = "log"
    KEY = "key"


@dataclass(slots=True)
class Tally:
    """How much there is of something."""

    conversations: int = 0
    items: int = 0
    responses: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Row:
    """Base of all rows: the thread they are forgotten with, their cost, and when they are over."""

    thread: Key
    bytes: int
    expires_us: int


@dataclass(slots=True)
class ConversationRow(Row):
    """A conversation, and which of its items is where."""

    record: Conversation
    next_position: int = 1
    positions: Ordered[int] = field(default_factory=Ordered)
    item_at: dict[int, str] = field(default_factory=dict)
    position_of: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ItemRow(Row):
    """An item, and the conversations it is in: a dictionary keeps their order."""

    record: Item
    conversations: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class ResponseRow(Row):
    """A response, and the items whose documents are inside of its own."""

    record: StoredResponse
    located: tuple[str, ...] = ()


@dataclass(slots=True)
class LocationRow(Row):
    """Place of an item that has no row."""

    record: Location


@dataclass(slots=True)
class LogRow(Row):
    """The events of a response, by the first number of each blob."""

    firsts: Ordered[int] = field(default_factory=Ordered)
    blobs: dict[int, EventBlob] = field(default_factory=dict)


@dataclass(slots=True)
class KeyRow(Row):
    """A key of a client's choice."""

    record: Idempotency
    response_id: str


@dataclass(slots=True)
class Thread:
    """Thread of rows that go together when there is no room."""

    touched_us: int
    bytes: int = 0
    items: int = 0
    responses: int = 0
    members: dict[tuple[Kind, Key], None] = field(default_factory=dict)
