"""Hooks around a store: an operator's own code, called before and after what is kept.

A hook sees operations under 17 names. A turn, which is one unit, shows itself as `store_response`, then `create_item`
for each new item, then `link_items`; it is written when all hooks have agreed to all of that, or not at all. Before a
write a hook lets it go on, puts another record of the same id in its place, or rejects it; after it, it is only told.
Of what is read a hook is told once for each call, not for each row.

A hook has 250 ms, all of them together 1 s for one operation. One that fails or takes longer counts as a no, unless it
was set to `open`; where something is written already, that is only logged. No hook is ever waited for inside a
transaction: all of it is around the store.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec
from msgspec.structs import replace

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import (
    NEVER_US,
    Access,
    Committed,
    Conversation,
    Item,
    StoredResponse,
    Turn,
)
from smg_storage.store import HistoryStore
from smg_storage.store_wrapper import Call, StoreWrapper

GROUP: Final = "smg.storage_hooks"
EACH_S: Final = 0.25
ALL_S: Final = 1.0
OPERATIONS: Final = (
    "create_conversation",
    "get_conversation",
    "update_conversation",
    "delete_conversation",
    "create_item",
    "link_item",
    "link_items",
    "list_items",
    "get_item",
    "is_item_linked",
    "delete_item",
    "store_response",
    "get_response",
    "delete_response",
    "get_response_chain",
    "list_identifier_responses",
    "delete_identifier_responses",
)
_SHOWN_AS: Final[Mapping[str, str]] = {"newest_items": "list_items", "find_items": "get_item"}
_READS: Final = frozenset(
    {
        "get_conversation",
        "list_items",
        "get_item",
        "is_item_linked",
        "get_response",
        "get_response_chain",
        "list_identifier_responses",
    }
)

T = TypeVar("T")
R = TypeVar("R", Conversation, Item, StoredResponse)
_log: Final = logging.getLogger("smg_storage.hooks")


class HookContext(msgspec.Struct, frozen=True):
    """Caller of an operation; `headers` are those that the operator lets hooks see."""

    tenant: str
    principal: str
    request_id: str
    headers: Mapping[str, str]


class Links(msgspec.Struct, frozen=True):
    """Subject of `link_items`."""

    conversation_id: str
    item_ids: Sequence[str]


class Metadata(msgspec.Struct, frozen=True):
    """Subject of `update_conversation`."""

    conversation_id: str
    metadata: bytes


class Ids(msgspec.Struct, frozen=True):
    """Subject of all other operations."""

    ids: Sequence[str]


Payload = Conversation | Item | StoredResponse | Links | Metadata | Ids


class Reject(msgspec.Struct, frozen=True):
    """A no; the reason is for the client."""

    reason: str


class Replace(msgspec.Struct, frozen=True):
    """A yes, to this in place of what was shown: the same kind of record under the same id."""

    payload: Payload


class StorageHook(Protocol):
    """Interface of a hook. An entry point of the group `smg.storage_hooks` names what makes one."""

    async def before(
        self, operation: str, context: HookContext, payload: Payload
    ) -> Reject | Replace | None:
        """Decide what is to become of an operation; None lets it go on."""
        ...

    async def after(
        self, operation: str, context: HookContext, payload: Payload, result: object
    ) -> None:
        """Learn what became of an operation."""
        ...


class NamedHook(msgspec.Struct, frozen=True):
    """A hook, what it is called, and whether things go on without it where it fails."""

    name: str
    hook: StorageHook
    fail_open: bool = False


class HookedStore(StoreWrapper):
    """A store with hooks around it, in this order."""

    def __init__(self, inner: HistoryStore, hooks: Sequence[NamedHook]) -> None:
        super().__init__(inner)
        self._hooks: Final = tuple(hooks)

    # ── What is read, or deleted ─────────────────────────────────────────────

    async def _through(self, call: Call, run: Callable[[], Awaitable[T]]) -> T:
        operation = _SHOWN_AS.get(call.operation, call.operation)
        if call.access is None or operation not in OPERATIONS:
            return await run()
        ids = Ids(call.ids)
        await self._before(operation, call.access, ids)
        result = await run()
        await self._after(operation, call.access, ids, result)
        return result

    # ── What is written ──────────────────────────────────────────────────────

    async def create_conversation(self, access: Access, record: Conversation) -> Conversation:
        """See `HistoryStore`."""
        record = await self._record("create_conversation", access, record)
        made = await self.inner.create_conversation(access, record)
        await self._after("create_conversation", access, record, made)
        return made

    async def update_conversation(
        self,
        access: Access,
        conversation_id: str,
        metadata: bytes,
        *,
        now_us: int,
        if_version: int | None = None,
    ) -> Conversation | None:
        """See `HistoryStore`."""
        shown = Metadata(conversation_id, metadata)
        agreed = await self._before("update_conversation", access, shown)
        if not isinstance(agreed, Metadata) or agreed.conversation_id != conversation_id:
            raise _rejected("a hook put something else in place of metadata")
        changed = await self.inner.update_conversation(
            access, conversation_id, agreed.metadata, now_us=now_us, if_version=if_version
        )
        await self._after("update_conversation", access, agreed, changed)
        return changed

    async def create_item(self, access: Access, record: Item) -> Item:
        """See `HistoryStore`."""
        record = await self._record("create_item", access, record)
        made = await self.inner.create_item(access, record)
        await self._after("create_item", access, record, made)
        return made

    async def link_items(
        self,
        access: Access,
        conversation_id: str,
        item_ids: Sequence[str],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """See `HistoryStore`."""
        shown = Links(conversation_id, item_ids)
        await self._before("link_items", access, shown)
        positions = await self.inner.link_items(
            access, conversation_id, item_ids, now_us=now_us, expires_us=expires_us
        )
        await self._after("link_items", access, shown, positions)
        return positions

    async def append_items(
        self,
        access: Access,
        conversation_id: str,
        records: Sequence[Item],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """See `HistoryStore`."""
        agreed = [await self._record("create_item", access, record) for record in records]
        links = Links(conversation_id, [record.id for record in agreed])
        await self._before("link_items", access, links)
        positions = await self.inner.append_items(
            access, conversation_id, agreed, now_us=now_us, expires_us=expires_us
        )
        for record in agreed:
            await self._after("create_item", access, record, record)
        await self._after("link_items", access, links, positions)
        return positions

    async def store_response(self, access: Access, record: StoredResponse) -> str:
        """See `HistoryStore`."""
        record = await self._record("store_response", access, record)
        made = await self.inner.store_response(access, record)
        await self._after("store_response", access, record, made)
        return made

    async def commit_turn(self, access: Access, turn: Turn) -> Committed:
        """See `HistoryStore`."""
        turn = await self.agreed(access, turn)
        done = await self.inner.commit_turn(access, turn)
        await self.told(access, turn, done.positions)
        return done

    # ── A turn, in two halves ────────────────────────────────────────────────

    async def agreed(self, access: Access, turn: Turn) -> Turn:
        """Return the turn as all hooks want it; REJECTED if one does not."""
        async with _in_time("all hooks together"):
            response = await self._record("store_response", access, turn.response)
            items = [await self._record("create_item", access, item) for item in turn.items]
            if turn.links:
                await self._before("link_items", access, _links(turn))
        return replace(turn, response=response, items=items)

    async def told(self, access: Access, turn: Turn, positions: Sequence[int]) -> None:
        """Tell all hooks that a turn is kept."""
        await self._after("store_response", access, turn.response, turn.response.id)
        for item in turn.items:
            await self._after("create_item", access, item, item)
        if turn.links:
            await self._after("link_items", access, _links(turn), positions)

    # ── One operation ────────────────────────────────────────────────────────

    async def _record(self, operation: str, access: Access, record: R) -> R:
        agreed = await self._before(operation, access, record)
        if type(agreed) is not type(record) or agreed.id != record.id:
            raise _rejected("a hook put something else in place of a record")
        return agreed

    async def _before(self, operation: str, access: Access, payload: Payload) -> Payload:
        context = _context(access)
        async with _in_time("all hooks together"):
            for one in self._hooks:
                said = await _ask(one, one.hook.before(operation, context, payload))
                if isinstance(said, Reject):
                    raise _rejected(said.reason)
                if isinstance(said, Replace):
                    payload = said.payload
        return payload

    async def _after(
        self, operation: str, access: Access, payload: Payload, result: object
    ) -> None:
        context = _context(access)
        try:
            async with _in_time("all hooks together"):
                for one in self._hooks:
                    await _ask(one, one.hook.after(operation, context, payload, result))
        except StoreError:
            # What is written cannot be taken back; what was only read is not shown.
            if operation in _READS:
                raise


async def _ask(one: NamedHook, asked: Awaitable[T]) -> T | None:
    """Return what a hook says; None where it fails and that does not matter. REJECTED where it does."""
    try:
        async with asyncio.timeout(EACH_S):
            return await asked
    except Exception as error:
        # A door to somebody else's code: whatever it raises, the rule for its failure holds.
        _log.warning("history: the hook %s failed (%s)", one.name, type(error).__name__)
        if one.fail_open:
            return None
        raise _rejected(f"the hook {one.name} failed") from error


class _in_time:  # noqa: N801 (it is used as a function)
    """Turns time that is over into a no."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._timeout = asyncio.timeout(ALL_S)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        try:
            await self._timeout.__aexit__(*error)
        except TimeoutError:
            raise _rejected(f"{self._who} took too long") from None


def _rejected(reason: str) -> StoreError:
    return StoreError(StoreErrorKind.REJECTED, reason)


def _context(access: Access) -> HookContext:
    return HookContext(access.tenant, access.principal, access.request_id, access.headers)


def _links(turn: Turn) -> Links:
    return Links(turn.response.conversation_id, turn.links)


def load_hooks(words: Sequence[str], group: str = GROUP) -> Sequence[NamedHook]:
    """Return the hooks of these words, NAME or NAME:open, in this order; ValueError for one that is not installed."""
    from importlib.metadata import entry_points

    known = {point.name: point for point in entry_points(group=group)}
    found = []
    for word in words:
        name, _, mode = word.partition(":")
        if name not in known or mode not in ("", "open", "closed"):
            raise ValueError(f"there is no hook {word!r}; installed: {', '.join(known) or 'none'}")
        make = cast(Callable[[], StorageHook], known[name].load())
        found.append(NamedHook(name, make(), fail_open=mode == "open"))
    return found
