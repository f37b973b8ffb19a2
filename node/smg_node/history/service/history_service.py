"""History, whole: what serves responses and conversations, built out of settings."""

from collections.abc import Sequence

from smg_node.core.request_context import RequestContext
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.history.service.compaction import Compaction, Compactor
from smg_node.history.service.conversation_service import ConversationService
from smg_node.history.service.history_parts import HistoryParts
from smg_node.history.service.response_service import ResponseService
from smg_storage.records import Access


class Responses(ResponseService):
    """Responses, and what is made of their history besides."""

    def __init__(self, parts: HistoryParts) -> None:
        super().__init__(parts)
        self._compactor = Compactor(parts, self)

    async def compact(
        self, ask: ResponseRequest, context: RequestContext, access: Access
    ) -> Compaction:
        """Return a compaction of what the request brings to mind; it has not begun."""
        return await self._compactor.start(ask, context, access)


class HistoryService:
    """Serves everything that is remembered."""

    def __init__(self, parts: HistoryParts) -> None:
        self.responses = Responses(parts)
        self.conversations = ConversationService(parts)
        self._options = parts.options

    @property
    def store_timeout_s(self) -> float:
        """How long one operation of the store may take."""
        return self._options.store_timeout_s

    @property
    def context_headers(self) -> Sequence[str]:
        """Names of headers that hooks of the store are told of."""
        return self._options.context_headers
