"""Routed store: each thread's operations go to the node that holds it, where nodes share no store.

Where nodes share no store, each keeps the threads that began on it. Every id names that node by a
tag (`smg_storage.ids`), and every read or write of a thread goes to its holder: so a client may
talk to any node. It is no distributed database. While the holder is unavailable its threads are
too, and the error names it; nothing of them is kept anywhere else, not even on the disk of the node
that made a response, because a turn spooled there would be missing when the holder is back.

    id of this node, or unknown  →  this node's store          id of another one  →  over the mesh, once

A client's own ids name no node. They are looked up at the holder of the request's thread
(`Access.thread`), and here. Idempotency keys belong to a node that is chosen by rendezvous hashing,
so that all nodes agree.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from smg_node.history.peers.id_routing import ConversationsById, ResponsesById
from smg_node.history.peers.remote_store import RemoteStores
from smg_node.history.peers.scatter_gather import all_of, merged, responses_of, summed
from smg_node.history.peers.thread_owners import ThreadOwners
from smg_node.history.ports import Keeper, Kept
from smg_storage.errors import StoreError
from smg_storage.ids import HOLDER_CHARS, Chance, holder_of, new_thread, thread_of
from smg_storage.records import (
    Access,
    Committed,
    Idempotency,
    Item,
    PageAsk,
    Reserved,
    ResponsePage,
    Status,
    StoredResponse,
    StoreFigures,
    Turn,
)
from smg_storage.store import HistoryStore

NOTE_S: Final = 1.0
"""So long who made a response waits, at most, until its key is noted."""
_log: Final = logging.getLogger("smg_node.history")


class RoutedStore(ConversationsById, ResponsesById):
    """Keeper over this node's store and those of others. `own` is this node's; `local` says whether
    no other node sees it.
    """

    def __init__(
        self,
        own: Keeper,
        roster: ThreadOwners,
        elsewhere: RemoteStores,
        *,
        local: Callable[[], bool],
        chance: Chance,
    ) -> None:
        super().__init__(own.store)
        self._own: Final = own
        self._roster: Final = roster
        self._elsewhere: Final = elsewhere
        self._local: Final = local
        self._chance: Final = chance

    @property
    def store(self) -> HistoryStore:
        """Store for all reads, and for writes that their caller can repeat."""
        return self

    def look_around(self) -> None:
        """Learn the names of the other nodes."""
        self._roster.others()

    @property
    def alike(self) -> Sequence[str]:
        """Nodes whose tags are equal to another one's."""
        return self._roster.alike

    # ── Whose is it ──────────────────────────────────────────────────────────

    def at(self, any_id: str) -> HistoryStore:
        """Return the store of the node that holds this id."""
        return self._of(holder_of(any_id))

    def _of(self, tag: str) -> HistoryStore:
        node = self._roster.elsewhere(tag)
        return self._elsewhere.store(node) if node and self._local() else self.inner

    def thread(self, origin: str = "") -> str:
        """Return the thread of what continues this response or conversation, which exists, or a new
        one.

        An id of foreign origin names no known node: its thread is derived from it, with this node's
        tag.
        """
        tag = self._roster.tag
        if not origin:
            return new_thread(self._chance, holder=tag)
        thread = thread_of(origin)
        return thread if self._roster.knows(holder_of(origin)) else tag + thread[HOLDER_CHARS:]

    def _beside(self, access: Access) -> HistoryStore:
        """Return the store that has the thread of the request."""
        return self._of(access.thread[:HOLDER_CHARS])

    # ── What is kept ─────────────────────────────────────────────────────────

    def check_can_keep(self) -> None:
        """Return if a turn that begins now can be kept when it is over, as far as is known; else
        UNAVAILABLE.
        """
        self._own.check_can_keep()

    async def commit(self, access: Access, turn: Turn) -> Kept:
        """Make a turn durable at its thread's holder; HolderAwayError if that is not confirmed
        within the time.

        It may be spooled on its holder's disk, never on this node's.
        """
        node = self._elsewhere_of(turn.response.id)
        if not node:
            kept = await self._own.commit(access, turn)
        else:
            kept = await self._elsewhere.ask(node, "commit", access, {"turn": turn})
        await self._note_key(access, turn)
        return kept

    async def write(self, access: Access, turn: Turn) -> Kept:
        """Write a turn into the store itself, at its thread's holder."""
        node = self._elsewhere_of(turn.response.id)
        if not node:
            kept = await self._own.write(access, turn)
        else:
            kept = await self._elsewhere.ask(node, "write", access, {"turn": turn})
        await self._note_key(access, turn)
        return kept

    async def commit_turn(self, access: Access, turn: Turn) -> Committed:
        """See `HistoryStore`."""
        done = await self.at(turn.response.id).commit_turn(access, turn)
        await self._note_key(access, turn)
        return done

    def _elsewhere_of(self, any_id: str) -> str:
        return self._roster.elsewhere(holder_of(any_id)) if self._local() else ""

    # ── Items ────────────────────────────────────────────────────────────────

    async def create_item(self, access: Access, record: Item) -> Item:
        """See `HistoryStore`."""
        return await self._near(access, record.id).create_item(access, record)

    async def get_item(self, access: Access, item_id: str) -> Item | None:
        """See `HistoryStore`. A conversation may have a copy of what another node holds."""
        first, own = self._beside(access), self.at(item_id)
        if access.thread:
            found = await first.get_item(access, item_id)
            if found is not None or own is first:
                return found
        return await own.get_item(access, item_id)

    async def find_items(self, access: Access, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """See `HistoryStore`."""
        first = self._beside(access)
        found = await first.find_items(access, item_ids)
        groups: dict[str, list[str]] = {}
        for each in item_ids:
            if each not in found:
                groups.setdefault(self._elsewhere_of(each), []).append(each)
        asked = [
            store.find_items(access, group)
            for node, group in groups.items()
            for store in [self._elsewhere.store(node) if node else self.inner]
            if store is not first
        ]
        return merged([found, *await all_of(asked)]) if asked else found

    def _near(self, access: Access, item_id: str) -> HistoryStore:
        return self.at(item_id) if holder_of(item_id) else self._beside(access)

    # ── Of a person, of a tenant ─────────────────────────────────────────────

    async def list_identifier_responses(
        self, access: Access, identifier: str, page: PageAsk
    ) -> ResponsePage:
        """See `HistoryStore`."""
        return await responses_of(self._everywhere(), self.at(page.after), access, identifier, page)

    async def delete_identifier_responses(self, access: Access, identifier: str) -> int:
        """See `HistoryStore`."""
        return sum(
            await all_of(
                [
                    store.delete_identifier_responses(access, identifier)
                    for store in self._everywhere()
                ]
            )
        )

    async def tenant_figures(self, access: Access) -> StoreFigures:
        """See `HistoryStore`. Nodes that do not answer are not counted: the figures are estimates."""
        asked = [_or_nothing(store.tenant_figures(access)) for store in self._everywhere()]
        return summed(await all_of(asked))

    def _everywhere(self) -> Sequence[HistoryStore]:
        others = self._roster.others() if self._local() else {}
        return [self.inner, *(self._elsewhere.store(name) for name in sorted(others))]

    # ── Keys of a client's choice ────────────────────────────────────────────

    async def reserve_key(
        self, access: Access, key: Idempotency, response_id: str, *, now_us: int
    ) -> Reserved:
        """See `HistoryStore`."""
        home = self._home_of_key(access, key.key)
        return await home.reserve_key(access, key, response_id, now_us=now_us)

    async def release_key(self, access: Access, key: str, response_id: str) -> None:
        """See `HistoryStore`."""
        await self._home_of_key(access, key).release_key(access, key, response_id)

    def _home_of_key(self, access: Access, key: str) -> HistoryStore:
        node = self._roster.home_of_key(access.tenant, key) if self._local() else ""
        return self._elsewhere.store(node) if node else self.inner

    async def _note_key(self, access: Access, turn: Turn) -> None:
        """Write a marker row of the response at the node that owns the turn's key.

        Without it that node would report the response as in progress, until the key expires.
        """
        key, response = turn.idempotency, turn.response
        if key is None:
            return
        home = self._home_of_key(access, key.key)
        if home is self.at(response.id):
            return
        mark = StoredResponse(
            id=response.id,
            status=Status.COMPLETED,
            model=response.model,
            created_us=response.created_us,
            input=b"[]",
            response=b"{}",
            completed_us=response.created_us,
            expires_us=key.expires_us,
        )
        try:
            hurried = replace(access, timeout_s=min(access.timeout_s, NOTE_S))
            await home.commit_turn(hurried, Turn(response=mark, idempotency=key))
        except StoreError as error:
            _log.warning("history: %s cannot be found by its key: %s", response.id, error.message)


async def _or_nothing(asked: Awaitable[StoreFigures]) -> StoreFigures:
    try:
        return await asked
    except StoreError:
        return StoreFigures(conversations=0, items=0, responses=0, bytes=0)
