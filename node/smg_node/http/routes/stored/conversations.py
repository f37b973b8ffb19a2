"""Conversation routes: create, show, change and delete conversations and their items."""

from typing import Any

from smg_node.dialects.responses.events.list_bodies import deleted_conversation, list_body, page_of
from smg_node.dialects.responses.request.conversations import ConversationsReader
from smg_node.dialects.responses.request.idempotency_key import KEY_HEADER
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, name_list
from smg_node.http.ports.history import History
from smg_node.http.routes.stored.history_access import access_of
from smg_storage.records import Access


class ConversationRoutes:
    """Serves `/v1/conversations`."""

    def __init__(self, parts: HttpParts, history: History, bodies: BodyReader) -> None:
        self._parts = parts
        self._history = history
        self._conversations = history.conversations
        self._bodies = bodies

    async def create(self, request: HttpRequest) -> Reply:
        """Store a new conversation."""
        reader = self._reader
        new = reader.new(await self._body(request, may_be_absent=True))
        self._note(request, reader.ignored)
        made = await self._conversations.create(self._access(request), new.items, new.metadata)
        return Reply(200, made)

    async def retrieve(self, request: HttpRequest) -> Reply:
        """Answer with a conversation, without its items."""
        found = await self._conversations.retrieve(self._access(request), request.values["id"])
        return Reply(200, found)

    async def update(self, request: HttpRequest) -> Reply:
        """Replace a conversation's metadata."""
        reader = self._reader
        metadata = reader.metadata(await self._body(request))
        self._note(request, reader.ignored)
        access = self._access(request)
        changed = await self._conversations.update(access, request.values["id"], metadata)
        return Reply(200, changed)

    async def delete(self, request: HttpRequest) -> Reply:
        """Delete a conversation."""
        conversation_id = request.values["id"]
        await self._conversations.delete(self._access(request), conversation_id)
        return Reply(200, deleted_conversation(conversation_id))

    # ── Items ────────────────────────────────────────────────────────────────

    async def items(self, request: HttpRequest) -> Reply:
        """Answer with a page of a conversation's items."""
        page, access = page_of(request.query), self._access(request)
        listed = await self._conversations.list_items(access, request.values["id"], page)
        return Reply(200, list_body(listed[0], has_more=listed[1]))

    async def add_items(self, request: HttpRequest) -> Reply:
        """Append items to a conversation."""
        reader = self._reader
        items = reader.items(await self._body(request))
        self._note(request, reader.ignored)
        access = self._access(request)
        added = await self._conversations.add_items(access, request.values["id"], items)
        return Reply(200, list_body(added, has_more=False))

    async def item(self, request: HttpRequest) -> Reply:
        """Answer with one item of a conversation."""
        access, values = self._access(request), request.values
        return Reply(200, await self._conversations.get_item(access, values["id"], values["item"]))

    async def delete_item(self, request: HttpRequest) -> Reply:
        """Unlink an item from a conversation."""
        access, values = self._access(request), request.values
        left = await self._conversations.delete_item(access, values["id"], values["item"])
        return Reply(200, left)

    @property
    def _reader(self) -> ConversationsReader:
        return ConversationsReader(self._parts.reading)

    def _access(self, request: HttpRequest) -> Access:
        return access_of(request, self._history)

    def _note(self, request: HttpRequest, ignored: tuple[str, ...]) -> None:
        """Name what had no effect in the answer's headers, and count it."""
        if KEY_HEADER in request.headers:
            # Items have ids of their own, under which nothing is appended twice; else nothing remembers a key here.
            ignored = (*ignored, KEY_HEADER)
        for name in ignored:
            self._parts.meters.ignored_parameter(name)
        if ignored:
            request.reply_headers["x-smg-ignored-params"] = name_list(ignored)

    async def _body(self, request: HttpRequest, *, may_be_absent: bool = False) -> dict[str, Any]:
        raw = await self._bodies.json(request)
        if may_be_absent and not raw:
            return {}
        nesting_max = self._parts.options.nesting_max
        return await self._bodies.large.decoded(raw, nesting_max=nesting_max)
