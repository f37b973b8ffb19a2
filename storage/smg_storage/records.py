"""Records of a store: what it keeps, and what it answers: frozen values.

A *document* is JSON as UTF-8 bytes, and comes back byte for byte. Times are microseconds since 1970, UTC. Whatever
is over (`expires_us`) counts as missing at once, whether it is still there or not.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Final

import msgspec

NO_TENANT: Final = "-"
"""The tenant where there are none: an empty string is no value in Oracle."""
DOCUMENT_BYTES_MAX: Final = 64 << 20
EVENTS_BYTES_MAX: Final = 4 << 20
"""Of what a stream said in one read, unless its first part alone is longer."""
NEVER_US: Final = 0
"""In place of a time: it is not over by itself, or has not happened."""


def later_end(one_us: int, other_us: int) -> int:
    """Return when something is over that is not over before `other_us`, where 0 says nothing; it was `one_us`."""
    return NEVER_US if one_us == NEVER_US else max(one_us, other_us)


class Access(msgspec.Struct, frozen=True):
    """Caller of an operation, and how long it may take. Of other
    tenants nothing is seen or changed.
    """

    tenant: str = NO_TENANT
    timeout_s: float = 5.0
    principal: str = ""
    request_id: str = ""
    headers: Mapping[str, str] = MappingProxyType({})
    """Of the request, those that hooks were promised."""
    thread: str = ""
    """Which thread it is about, where ids do not tell: a client's own id may be of any."""


class Status(Enum):
    """Status of a response. The last four are final: nothing ever changes them."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether it stays so."""
        return self not in (Status.QUEUED, Status.IN_PROGRESS)


class Conversation(msgspec.Struct, frozen=True):
    """A conversation, without its items. `version` grows with every change of it and with every item."""

    id: str
    created_us: int
    updated_us: int
    metadata: bytes = b"{}"
    version: int = 0
    expires_us: int = NEVER_US


class Item(msgspec.Struct, frozen=True):
    """An item of conversations: the same one may be linked to several."""

    id: str
    item_type: str
    document: bytes
    created_us: int
    role: str = ""
    status: str = ""
    response_id: str = ""
    expires_us: int = NEVER_US


class StoredResponse(msgspec.Struct, frozen=True):
    """A response: what was asked, what came of it, and which node runs it.

    `input` is a list of items, each with its id; `response` the whole object as it was answered, with its output.
    """

    id: str
    status: Status
    model: str
    created_us: int
    input: bytes
    response: bytes
    conversation_id: str = ""
    previous_response_id: str = ""
    depth: int = 0
    """How many responses it continues."""
    background: bool = False
    completed_us: int = NEVER_US
    safety_identifier: str = ""
    owner: str = ""
    """The node that runs it."""
    lease_token: int = 0
    lease_until_us: int = 0
    cancel_requested: bool = False
    expires_us: int = NEVER_US
    version: int = 0


class Side(Enum):
    """Side of a response that an item is on."""

    INPUT = 0
    OUTPUT = 1


class Location(msgspec.Struct, frozen=True):
    """Location of an item's document: the `index`-th of a response's input or output."""

    item_id: str
    response_id: str
    side: Side
    index: int


class Idempotency(msgspec.Struct, frozen=True):
    """Idempotency key of a client, and what it stands for: 16 bytes over the request."""

    key: str
    digest: bytes
    expires_us: int


class Turn(msgspec.Struct, frozen=True):
    """All that one response leaves behind; it is written as one, or not at all.

    `items` are new rows, `links` the ids of items that are appended to the response's conversation,
    in order; what is linked there already stays where it is. `token` is the lease under which it
    was made, 0 for a response that no other node can have: with a token of before, or over a final
    status, it is a conflict.
    """

    response: StoredResponse
    items: Sequence[Item] = ()
    links: Sequence[str] = ()
    locations: Sequence[Location] = ()
    idempotency: Idempotency | None = None
    token: int = 0
    conversation_expires_us: int = NEVER_US
    """The conversation is not over before that if something is linked; 0: that stays as it is."""


class Committed(msgspec.Struct, frozen=True):
    """Result of a turn: the positions of its links, in their order, and
    whether it had been there already.
    """

    positions: Sequence[int] = ()
    again: bool = False


class PageAsk(msgspec.Struct, frozen=True):
    """Page of a list that is wanted: `limit` of them after an id, from
    the newest or from the oldest.
    """

    limit: int = 20
    after: str = ""
    """An id of the list; BAD_REFERENCE if it is not in it. Empty: from the beginning."""
    newest_first: bool = True


class ItemPage(msgspec.Struct, frozen=True):
    """A part of a conversation; `positions` are those of `items`."""

    items: Sequence[Item]
    positions: Sequence[int]
    has_more: bool


class ResponsePage(msgspec.Struct, frozen=True):
    """A part of a list of responses."""

    responses: Sequence[StoredResponse]
    has_more: bool


class Chain(msgspec.Struct, frozen=True):
    """A response and what it continues, the newest first.

    `complete` is whether the oldest of them continues nothing. Else either a limit was reached, or `missing` is the
    id of one that is not there any more.
    """

    responses: Sequence[StoredResponse]
    complete: bool
    missing: str = ""


class Patch(msgspec.Struct, frozen=True):
    """Changes of a response that is not final; None stays as it is."""

    status: Status | None = None
    response: bytes | None = None
    completed_us: int | None = None
    expires_us: int | None = None


class Lease(msgspec.Struct, frozen=True):
    """Lease of a response: its owner, until when, and under which token:
    a later owner has a larger one.
    """

    tenant: str
    response_id: str
    owner: str
    token: int
    until_us: int
    cancel_requested: bool = False


class EventBlob(msgspec.Struct, frozen=True):
    """A run of events of a response's stream, in the writer's own form."""

    first: int
    last: int
    payload: bytes


class KeyState(Enum):
    """State of an idempotency key when it is reserved."""

    NEW = "new"
    SAME = "same"
    DIFFERENT = "different"


class Reserved(msgspec.Struct, frozen=True):
    """A key that was reserved, or had been: for which response, if that one is there."""

    state: KeyState
    response_id: str = ""


class StoreFigures(msgspec.Struct, frozen=True):
    """Figures of a store: how much there is; -1 where it does not know."""

    conversations: int = -1
    items: int = -1
    responses: int = -1
    bytes: int = -1


class PoolFigures(msgspec.Struct, frozen=True):
    """Figures of a store's connections: of `size`, how many are in
    use, and how many operations wait.
    """

    size: int
    in_use: int
    waiting: int
    """How many operations wait for a connection now."""
    waits: int
    """How many had to wait since the store was opened."""
    waited_s: float
    """So long they waited, all together."""
