"""Item append: adds items to a conversation, wherever they lie.

With all in one slot it is one call. In a cluster, rows of other threads are made and held first, each thread in one step; then
the conversation takes all of them at once. What was held in vain is let go again; after a crash in between it stays
as a row that no list has.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from smg_storage.errors import StoreError
from smg_storage.ids import thread_of
from smg_storage.records import NEVER_US, Item
from smg_storage.redis.lua_library import Effect
from smg_storage.redis.server import Ask
from smg_storage.redis.store_part import Part, by_thread, found, link


class Additions(msgspec.Struct, frozen=True):
    """Additions to a conversation: new rows, and which ids are linked in which order."""

    conversation_id: str
    items: Sequence[Item]
    links: Sequence[str]
    at_us: int
    ends_us: int = NEVER_US
    """It is not over before that if something is linked; 0: that stays as it is."""


class Held(msgspec.Struct):
    """Work done in other slots for a conversation: rows that were
    made, and others that it holds now.
    """

    made: list[str]
    added: list[str]


class Appending(Part):
    """Adds to conversations."""

    async def append(self, tenant: str, additions: Additions) -> Sequence[int]:
        """Return the positions of all links, in their order; nothing is linked where it cannot be."""
        held = await self.hold(tenant, additions)
        try:
            return await self.append_held(tenant, additions)
        except StoreError:
            await self.undo(tenant, additions.conversation_id, held)
            raise

    async def append_held(self, tenant: str, additions: Additions) -> Sequence[int]:
        """The same, where what lies elsewhere is held already."""
        ask = self._ask("append", tenant, additions.conversation_id)
        await self.add(ask, additions)
        (positions,) = found(await self._server.call(Effect.WRITE, ask))
        return [int(position) for position in positions]

    async def add(self, ask: Ask, additions: Additions) -> None:
        """Add to a call what a conversation gets."""
        if additions.conversation_id:
            ask.arguments["c"] = additions.conversation_id
            ask.arguments["ct"] = thread_of(additions.conversation_id)
        ask.arguments["at"] = str(additions.at_us)
        ask.arguments["ends"] = str(additions.ends_us)
        ask.arguments["items"] = [await self._item(ask, item) for item in additions.items]
        ask.arguments["links"] = [link(item_id) for item_id in additions.links]

    async def hold(self, tenant: str, additions: Additions) -> Held:
        """Make or find the rows of other slots, and let the conversation hold them."""
        held: Final = Held([], [])
        conversation_id = additions.conversation_id
        home = thread_of(conversation_id)
        items = {item.id: item for item in additions.items}
        ids = [*items, *(item_id for item_id in additions.links if item_id not in items)]
        away = [item_id for item_id in ids if not self._near(home, item_id)]
        linked = frozenset(additions.links)
        try:
            for thread, some in by_thread((item_id, item_id) for item_id in away).items():
                ask = self._server.ask("items_prepare", tenant, thread, c=conversation_id)
                ask.arguments["items"] = [
                    await self._item(ask, items[item_id]) for item_id in some if item_id in items
                ]
                ask.arguments["links"] = [link(item_id) for item_id in some if item_id in linked]
                made, added = found(await self._server.call(Effect.WRITE, ask))
                held.made += [item_id.decode() for item_id in made]
                held.added += [item_id.decode() for item_id in added]
        except StoreError:
            await self.undo(tenant, conversation_id, held)
            raise
        return held

    async def undo(self, tenant: str, conversation_id: str, held: Held) -> None:
        """Take back what was done for nothing."""
        await self.let_go(tenant, conversation_id, held.made, made=True)
        await self.let_go(tenant, conversation_id, held.added, stays=True)

    async def let_go(
        self, tenant: str, conversation_id: str, ids: Sequence[str], **how: bool
    ) -> None:
        """Let a conversation hold items no more; those that nothing holds then are gone.

        Unless they are said to stay; and what was `made` in vain goes even if the conversation never held it.
        """
        asks = [
            self._server.ask(
                "items_unrefer",
                tenant,
                thread,
                c=conversation_id,
                items=[{**link(item_id), **how} for item_id in some],
            )
            for thread, some in by_thread((item_id, item_id) for item_id in ids).items()
        ]
        await self._server.call_all(Effect.FREE, asks)
