"""History service: the responses and conversations services in one, as built from settings."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from smg_node.core.request_context import RequestContext
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.history.service.compaction import Compaction, Compactor
from smg_node.history.service.conversation_service import ConversationService
from smg_node.history.service.history_parts import HistoryParts
from smg_node.history.service.response_service import ResponseService
from smg_storage.records import Access

if TYPE_CHECKING:
    from smg_node.history.service.interaction_service import InteractionService


class Responses(ResponseService):
    """Responses, and compactions of their history."""

    def __init__(self, parts: HistoryParts) -> None:
        super().__init__(parts)
        self._compactor = Compactor(parts, self)

    async def compact(
        self, ask: ResponseRequest, context: RequestContext, access: Access
    ) -> Compaction:
        """Return a compaction of the request with its history; it has not begun."""
        return await self._compactor.start(ask, context, access)


class HistoryService:
    """All services of history."""

    def __init__(self, parts: HistoryParts) -> None:
        self.responses = Responses(parts)
        self.conversations = ConversationService(parts)
        self._options = parts.options
        self._parts = parts

    @cached_property
    def interactions(self) -> "InteractionService":
        """Interactions, on the desk of responses; loaded with the first of them."""
        from smg_node.history.service.interaction_service import InteractionService

        return InteractionService(self.responses, self._parts)

    @property
    def store_timeout_s(self) -> float:
        """Time limit of one operation of the store, in seconds."""
        return self._options.store_timeout_s

    @property
    def context_headers(self) -> Sequence[str]:
        """Names of request headers that are passed to the store's hooks."""
        return self._options.context_headers
