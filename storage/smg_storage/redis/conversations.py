"""Conversations in Redis, with their items: created, linked, listed, deleted, and swept."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from smg_storage.ids import thread_of
from smg_storage.located_item import located_item
from smg_storage.records import (
    NEVER_US,
    Access,
    Conversation,
    Item,
    ItemPage,
    PageAsk,
    StoredResponse,
)
from smg_storage.redis.codec import (
    check_size,
    open_conversation,
    open_item,
    open_location,
    open_response,
    pack_document,
    unbundle,
)
from smg_storage.redis.errors import door
from smg_storage.redis.item_append import Additions, Appending
from smg_storage.redis.lua_library import Effect
from smg_storage.redis.server import Ask
from smg_storage.redis.store_part import by_thread, found, link

PAGE_MAX: Final = 2_000
"""Of what one call may look at, so that no call keeps the server busy for long."""


class RedisConversations(Appending):
    """Conversations and items of a store in Redis."""

    async def create_conversation(self, access: Access, record: Conversation) -> Conversation:
        """Keep a new conversation; one that is there and the same is answered as it is."""
        async with door(access.timeout_s):
            ask = self._conversation("conv_new", access, record.id)
            ask.arguments |= {
                "created": str(record.created_us),
                "updated": str(record.updated_us),
                "version": str(record.version),
                "x": str(record.expires_us),
                "m": ask.blob(await pack_document(record.metadata, self._deflate_bytes_min)),
            }
            (row,) = found(await self._server.call(Effect.WRITE, ask))
            return await open_conversation(record.id, row)

    async def get_conversation(self, access: Access, conversation_id: str) -> Conversation | None:
        """Return a conversation."""
        async with door(access.timeout_s):
            ask = self._conversation("conv_get", access, conversation_id)
            answer = await self._server.call(Effect.READ, ask)
            return None if answer is None else await open_conversation(conversation_id, answer[0])

    async def update_conversation(
        self,
        access: Access,
        conversation_id: str,
        metadata: bytes,
        *,
        now_us: int,
        if_version: int | None = None,
    ) -> Conversation | None:
        """Give it other metadata, if its version is that one; None if there is no such conversation."""
        async with door(access.timeout_s):
            ask = self._conversation("conv_update", access, conversation_id)
            ask.arguments |= {
                "at": str(now_us),
                "m": ask.blob(await pack_document(metadata, self._deflate_bytes_min)),
            }
            if if_version is not None:
                ask.arguments["if_version"] = str(if_version)
            answer = await self._server.call(Effect.WRITE, ask)
            return None if answer is None else await open_conversation(conversation_id, answer[0])

    async def delete_conversation(self, access: Access, conversation_id: str) -> bool:
        """Forget it; it is gone with the first call, and the next ones let go of its items some at a time."""
        async with door(access.timeout_s):
            ask = self._conversation("conv_delete", access, conversation_id)
            there, *sweep = found(await self._server.call(Effect.FREE, ask))
            await self._sweep(access.tenant, conversation_id, sweep)
            return bool(there)

    async def sweep_conversation(self, tenant: str, conversation_id: str) -> int:
        """Let go of what is left of a conversation that was deleted; return how many items that was."""
        return await self._sweep(tenant, conversation_id, ([], 1, 0))

    async def sweep_over(self, named: Sequence[tuple[str, str]]) -> int:
        """Let go of what is left of those that are over, by tenant and id; return how many items that was."""
        asks = [
            self._ask("conv_over", tenant, one, c=one, ct=thread_of(one)) for tenant, one in named
        ]
        swept = 0
        answers = await self._server.call_all(Effect.FREE, asks)
        for (tenant, one), answer in zip(named, answers, strict=True):
            _there, *sweep = found(answer)
            swept += await self._sweep(tenant, one, sweep)
        return swept

    async def create_item(self, access: Access, record: Item) -> Item:
        """Keep an item that is not linked yet."""
        async with door(access.timeout_s):
            check_size(record.document)
            ask = self._ask("item_new", access.tenant, record.id)
            ask.arguments["item"] = await self._item(ask, record)
            (packed,) = found(await self._server.call(Effect.WRITE, ask))
            return await open_item(record.id, packed)

    async def link_items(
        self,
        access: Access,
        conversation_id: str,
        item_ids: Sequence[str],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """Append items in this order, all or none, and return their positions; what is linked stays where it is."""
        async with door(access.timeout_s):
            additions = Additions(conversation_id, (), item_ids, now_us, expires_us)
            return await self.append(access.tenant, additions)

    async def append_items(
        self,
        access: Access,
        conversation_id: str,
        records: Sequence[Item],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """Keep new items and append them, in one step."""
        async with door(access.timeout_s):
            check_size(*(record.document for record in records))
            links = [record.id for record in records]
            additions = Additions(conversation_id, records, links, now_us, expires_us)
            return await self.append(access.tenant, additions)

    async def list_items(
        self, access: Access, conversation_id: str, page: PageAsk
    ) -> ItemPage | None:
        """Return a part of a conversation, in one round trip; None if there is no such conversation."""
        async with door(access.timeout_s):
            ask = self._conversation("page", access, conversation_id)
            ask.arguments |= {"newest": page.newest_first, "limit": min(page.limit, PAGE_MAX)}
            if page.after:
                ask.arguments["after"] = link(page.after)
            return await self._page(access, conversation_id, ask)

    async def newest_items(
        self, access: Access, conversation_id: str, *, items_max: int, bytes_max: int
    ) -> ItemPage | None:
        """Return the newest items, the newest first, up to a number of them and of their bytes; at least one."""
        async with door(access.timeout_s):
            ask = self._conversation("page", access, conversation_id)
            limit = min(max(items_max, 1), PAGE_MAX)
            ask.arguments |= {"newest": True, "limit": limit, "bytes_max": bytes_max}
            page = await self._page(access, conversation_id, ask)
            return None if page is None else _within(page, bytes_max)

    async def get_item(self, access: Access, item_id: str) -> Item | None:
        """Return an item of a conversation, or of a response that was kept with its locations."""
        return (await self.find_items(access, [item_id])).get(item_id)

    async def find_items(self, access: Access, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return those that are there, by id, in one round trip to each slot, and one more for foreign responses."""
        async with door(access.timeout_s):
            return await self._find(access, list(dict.fromkeys(item_ids)))

    async def is_item_linked(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """Return whether an item is in a conversation."""
        async with door(access.timeout_s):
            return await self._linked(access, conversation_id, item_id)

    async def delete_item(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """Take an item out of a conversation, and forget it if it is in no other; return whether it was there."""
        async with door(access.timeout_s):
            ask = self._conversation("unlink", access, conversation_id)
            ask.arguments["item"] = link(item_id)
            (there,) = found(await self._server.call(Effect.FREE, ask))
            # Also if it was not in any more, for a try before may have come so far; but it may be in again.
            away = not self._near(thread_of(conversation_id), item_id)
            if away and not await self._linked(access, conversation_id, item_id):
                await self.let_go(access.tenant, conversation_id, [item_id])
            return bool(there)

    async def _linked(self, access: Access, conversation_id: str, item_id: str) -> bool:
        ask = self._conversation("linked", access, conversation_id)
        ask.arguments["item"] = link(item_id)
        (there,) = found(await self._server.call(Effect.READ, ask))
        return bool(there)

    def _conversation(self, function: str, access: Access, conversation_id: str) -> Ask:
        thread = thread_of(conversation_id)
        return self._ask(function, access.tenant, conversation_id, c=conversation_id, ct=thread)

    async def _sweep(self, tenant: str, conversation_id: str, begun: Sequence[Any]) -> int:
        """Go on with a sweep: which items of other slots to let go, how many are left, how many are gone."""
        away, left, swept = begun
        thread = thread_of(conversation_id)
        while left:
            ids = [text.decode().rpartition(" ")[0] for text in away]
            await self.let_go(tenant, conversation_id, ids)
            ask = self._ask("conv_sweep", tenant, conversation_id, c=conversation_id, ct=thread)
            ask.arguments["done"] = [link(item_id) for item_id in ids]
            _there, away, left, gone = found(await self._server.call(Effect.FREE, ask))
            swept += gone
        return int(swept)

    async def _page(self, access: Access, conversation_id: str, ask: Ask) -> ItemPage | None:
        answer = await self._server.call(Effect.READ, ask)
        if answer is None:
            return None
        more, bundle = answer
        rows = unbundle(bundle, 3)
        away = [text.decode().rpartition(" ")[0] for _, text, packed in rows if packed == b""]
        known = await self._find(access, away) if away else {}
        items, positions = [], []
        for position, text, packed in rows:
            item_id = text.decode().partition(" ")[0]
            item = await open_item(item_id, packed) if packed else known.get(item_id)
            if item is not None:
                items.append(item)
                positions.append(int(position))
        return ItemPage(items=items, positions=positions, has_more=bool(more))

    async def _find(self, access: Access, item_ids: Sequence[str]) -> dict[str, Item]:
        groups = self._groups(item_ids)
        asks = [
            self._server.ask(
                "items_find", access.tenant, thread, items=[link(item_id) for item_id in some]
            )
            for thread, some in groups
        ]
        answers = await self._server.call_all(Effect.READ, asks)
        items: dict[str, Item] = {}
        responses: dict[str, StoredResponse | None] = {}
        places: dict[str, bytes] = {}
        for (_, some), answer in zip(groups, answers, strict=True):
            for item_id, entry in zip(some, found(answer)[0], strict=True):
                await self._sort(item_id, entry, items, responses, places)
        await self._fetch(access, places, responses)
        for item_id, text in places.items():
            place = open_location(item_id, text)
            response = responses.get(place.response_id)
            if response is not None:
                items[item_id] = located_item(response, place)
        return {item_id: items[item_id] for item_id in item_ids if item_id in items}

    def _groups(self, item_ids: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
        if not self._server.alone:
            return list(by_thread((item_id, item_id) for item_id in item_ids).items())
        return [(thread_of(item_ids[0]), item_ids)] if item_ids else []

    async def _sort(
        self,
        item_id: str,
        entry: Sequence[Any],
        items: dict[str, Item],
        responses: dict[str, StoredResponse | None],
        places: dict[str, bytes],
    ) -> None:
        """Put one answer where it belongs: an item, or its place with or without the response."""
        if entry[0] == b"item":
            items[item_id] = await open_item(item_id, entry[1])
        elif entry[0] in (b"at", b"loc"):
            places[item_id] = entry[1]
        if entry[0] == b"at":
            response_id = open_location(item_id, entry[1]).response_id
            responses[response_id] = await open_response(response_id, entry[2])

    async def _fetch(
        self,
        access: Access,
        places: Mapping[str, bytes],
        responses: dict[str, StoredResponse | None],
    ) -> None:
        """Read the responses of other slots that places mean."""
        wanted = dict.fromkeys(
            open_location(item_id, text).response_id for item_id, text in places.items()
        )
        away = [response_id for response_id in wanted if response_id not in responses]
        asks = [self._ask("row", access.tenant, one, id=one) for one in away]
        for one, answer in zip(away, await self._server.call_all(Effect.READ, asks), strict=True):
            responses[one] = None if answer is None else await open_response(one, answer[0])


def _within(page: ItemPage, bytes_max: int) -> ItemPage:
    """Leave out what is too much; the server has not seen how long items of other slots are."""
    total = 0
    for number, item in enumerate(page.items):
        total += len(item.document)
        if number and total > bytes_max:
            return ItemPage(page.items[:number], page.positions[:number], has_more=True)
    return page
