"""History port: responses and conversations, as the HTTP routes call them."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.request_context import RequestContext
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.request.idempotency_key import IdempotencyKey, PriorResult
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.pipeline.generation.run_interface import Run, ShownPrompt
from smg_storage.records import Access, PageAsk

if TYPE_CHECKING:
    # Only its name: what remembers is loaded with the first chat to remember.
    from smg_node.dialects.interactions.request.interaction_request import InteractionRequest
    from smg_node.dialects.interactions.request.reader import InteractionsReader
    from smg_node.history.service.checkpoint_tokens import Checkpoint
    from smg_node.history.turns.idempotency import HeldKey


class MadeResponse(Protocol):
    """A response that is about to be made, or in progress. The reader of `told` owns it."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def generation(self) -> Run:
        """Its generation run."""
        ...

    @property
    def wish(self) -> GenerateRequest:
        """Its generation request."""
        ...

    @property
    def failure(self) -> SmgError | None:
        """Its error, as soon as that is about to be sent."""
        ...

    @property
    def has_output(self) -> bool:
        """Whether anything of its answer is finished."""
        ...

    @property
    def over(self) -> bool:
        """Whether its terminal event is among the last events."""
        ...

    @property
    def spooled(self) -> bool:
        """Whether it waits on this node's disk for its store."""
        ...

    @property
    def known(self) -> int:
        """Number of items with its history."""
        ...

    @property
    def used(self) -> int:
        """Number of items that the model is shown."""
        ...

    @property
    def complete(self) -> bool:
        """Whether its history is not longer than what was read."""
        ...

    @property
    def prompt_tokens(self) -> int:
        """The length of its prompt, 0 before that is known."""
        ...

    @property
    def last_words(self) -> Sequence[NumberedEvent]:
        """The events that ended it, for a reader that was stopped before it got them."""
        ...

    def told(self) -> AsyncIterator[Sequence[NumberedEvent]]:
        """Yield events, once; never raises SmgError. The terminal one comes after the response was
        stored.
        """
        ...

    def body(self) -> bytes:
        """Return the whole object as it is now."""
        ...


class RegisteredResponse(Protocol):
    """A response that belongs to no request; its row is in the store."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def made(self) -> MadeResponse:
        """The response being made; another reader reads its events."""
        ...

    def body(self) -> bytes:
        """Return the whole object as it is now."""
        ...

    def attend(self) -> AsyncGenerator[Sequence[NumberedEvent], None]:
        """Return its events as they come, for its own client; without its end if another node makes
        it now.
        """
        ...


class MadeSummary(Protocol):
    """A compaction in progress."""

    @property
    def run(self) -> Run:
        """Its generation run."""
        ...

    @property
    def wish(self) -> GenerateRequest:
        """Its generation request."""
        ...

    async def body(self) -> bytes:
        """Return its public object when it is complete; SmgError as the generation failed."""
        ...


class Responses(Protocol):
    """Responses of all tenants; those of another tenant do not exist for the caller."""

    async def create(
        self,
        ask: ResponseRequest,
        context: RequestContext,
        access: Access,
        *,
        routing_key: str = "",
        why_cut: Callable[[], SmgError | None],
        held: "HeldKey | None" = None,
    ) -> MadeResponse:
        """Return a response that has not begun, with its history read and checked, under its key if
        there is one.
        """
        ...

    async def reserve(
        self, ask: ResponseRequest, asked: IdempotencyKey, context: RequestContext, access: Access
    ) -> "HeldKey | PriorResult | None":
        """Return a key for a response, or its earlier result; None where nothing is stored.

        CONFLICT while it is being made, or if the key is another request's; OVERLOADED without the
        store.
        """
        ...

    def registers(self, ask: ResponseRequest, access: Access) -> bool:
        """Return whether it outlives its request; then call `register`, without awaiting between."""
        ...

    async def register(
        self,
        ask: ResponseRequest,
        context: RequestContext,
        access: Access,
        *,
        routing_key: str = "",
        held: "HeldKey | None" = None,
    ) -> RegisteredResponse:
        """Return a registered response in progress; RATE_LIMITED or OVERLOADED where it cannot be
        had.
        """
        ...

    def attend(self, run: RegisteredResponse) -> AsyncIterator[Sequence[NumberedEvent]]:
        """Return the events of a registered response for its own client in the foreground, each at
        once.

        Closing them before their end means that the client has left. SmgError if they cannot go on.
        """
        ...

    async def follow(
        self, access: Access, response_id: str, after: int | None
    ) -> AsyncIterator[Sequence[NumberedEvent]]:
        """Return the events with larger numbers (None: all) up to the end; NOT_FOUND, INVALID_REQUEST `stream_expired`.

        They raise SmgError where the stream cannot go on.
        """
        ...

    async def resume(
        self, access: Access, response_id: str, after: int
    ) -> AsyncIterator[Sequence[NumberedEvent]]:
        """Return the events with larger numbers, as `follow` does, and count the stream as resumed."""
        ...

    async def count(
        self,
        ask: ResponseRequest,
        context: RequestContext,
        access: Access,
        show: ShownPrompt | None,
    ) -> int:
        """Return the number of tokens of its prompt, with the tools that run on this side as `show` adds them."""
        ...

    async def compact(
        self, ask: ResponseRequest, context: RequestContext, access: Access
    ) -> MadeSummary:
        """Return a compaction that has not begun."""
        ...

    async def retrieve(self, access: Access, response_id: str) -> bytes:
        """Return its object; NOT_FOUND."""
        ...

    async def input_items(
        self, access: Access, response_id: str, page: PageAsk
    ) -> tuple[Sequence[bytes], bool]:
        """Return documents of its own input, and whether there are more."""
        ...

    async def delete(self, access: Access, response_id: str) -> None:
        """Delete it; NOT_FOUND."""
        ...

    async def cancel(self, access: Access, response_id: str) -> bytes:
        """Return its object when it is over."""
        ...


class Interactions(Protocol):
    """Interactions of all tenants; those of another tenant, and of other APIs, do not exist here."""

    def reader(self, options: ReaderOptions) -> "InteractionsReader":
        """Return the reader of bodies."""
        ...

    async def create(
        self,
        ask: "InteractionRequest",
        context: RequestContext,
        access: Access,
        *,
        routing_key: str = "",
        why_cut: Callable[[], SmgError | None],
    ) -> MadeResponse:
        """Return an interaction that has not begun, with its history read and checked."""
        ...

    def registers(self, ask: "InteractionRequest", access: Access) -> bool:
        """Return whether it outlives its request; then call `register`, without awaiting between."""
        ...

    async def register(
        self,
        ask: "InteractionRequest",
        context: RequestContext,
        access: Access,
        *,
        routing_key: str = "",
    ) -> RegisteredResponse | None:
        """Return a registered interaction in progress; None if `create` has to serve it."""
        ...

    def attend(self, run: RegisteredResponse) -> AsyncIterator[Sequence[NumberedEvent]]:
        """Return the events of a registered interaction for its own client, each at once."""
        ...

    async def follow(
        self, access: Access, interaction_id: str, after: int | None
    ) -> AsyncIterator[Sequence[NumberedEvent]]:
        """Return the events with larger numbers (None: all) up to the end; NOT_FOUND."""
        ...

    @property
    def checkpoint_ms(self) -> int:
        """How often a stream has a checkpoint at most; -1 for never."""
        ...

    def checkpoint(
        self, access: Access, interaction_id: str, number: int, *, leaving: bool
    ) -> bytes:
        """Return the frame of a checkpoint behind event `number`; `leaving`: the stream ends with it."""
        ...

    def place_of(self, access: Access, token: str) -> "Checkpoint":
        """Return the place of a token; INVALID_REQUEST for one that is not the tenant's, or too old."""
        ...

    async def resume(
        self, access: Access, place: "Checkpoint"
    ) -> AsyncIterator[Sequence[NumberedEvent]]:
        """Return the events behind a place, up to the end; never none."""
        ...

    async def retrieve(self, access: Access, interaction_id: str, *, with_input: bool) -> bytes:
        """Return its public object; NOT_FOUND."""
        ...

    async def cancel(self, access: Access, interaction_id: str) -> bytes:
        """Return its public object when it is over."""
        ...

    async def delete(self, access: Access, interaction_id: str) -> None:
        """Delete it; NOT_FOUND."""
        ...


class Conversations(Protocol):
    """Conversations of all tenants; NOT_FOUND `conversation_not_found` for unknown ones."""

    async def create(self, access: Access, items: Sequence[ItemDoc], metadata: bytes) -> bytes:
        """Store a new one; return its object."""
        ...

    async def retrieve(self, access: Access, conversation_id: str) -> bytes:
        """Return its object."""
        ...

    async def update(self, access: Access, conversation_id: str, metadata: bytes) -> bytes:
        """Replace its metadata; return its object."""
        ...

    async def delete(self, access: Access, conversation_id: str) -> None:
        """Delete it."""
        ...

    async def list_items(
        self, access: Access, conversation_id: str, page: PageAsk
    ) -> tuple[Sequence[bytes], bool]:
        """Return documents of a part of it, and whether there are more."""
        ...

    async def add_items(
        self, access: Access, conversation_id: str, items: Sequence[ItemDoc]
    ) -> Sequence[bytes]:
        """Append items; return their documents."""
        ...

    async def get_item(self, access: Access, conversation_id: str, item_id: str) -> bytes:
        """Return the document of one item; NOT_FOUND."""
        ...

    async def delete_item(self, access: Access, conversation_id: str, item_id: str) -> bytes:
        """Unlink an item; return the conversation's object."""
        ...


class History(Protocol):
    """Services of history."""

    @property
    def responses(self) -> Responses:
        """Responses of all tenants."""
        ...

    @property
    def interactions(self) -> Interactions:
        """Interactions of all tenants."""
        ...

    @property
    def conversations(self) -> Conversations:
        """Conversations of all tenants."""
        ...

    @property
    def store_timeout_s(self) -> float:
        """Time limit of one operation of the store, in seconds."""
        ...

    @property
    def context_headers(self) -> Sequence[str]:
        """Names of request headers that are passed to the store's hooks."""
        ...
