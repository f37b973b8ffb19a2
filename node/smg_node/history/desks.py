"""History, whole: what serves responses and conversations, built out of settings."""

from smg_node.config.plain import Settings
from smg_node.core.context import RequestContext
from smg_node.dialects.responses.ask import ResponseAsk
from smg_node.history.compacting import Compaction, Compactor
from smg_node.history.conversations import ConversationDesk
from smg_node.history.desk import HistoryParts, ResponseDesk
from smg_node.history.ports import HistoryOptions
from smg_storage.records import Access

_DAY_S = 86_400


class Responses(ResponseDesk):
    """Responses, and what is made of their history besides."""

    def __init__(self, parts: HistoryParts) -> None:
        super().__init__(parts)
        self._compactor = Compactor(parts, self)

    async def compact(
        self, ask: ResponseAsk, context: RequestContext, access: Access
    ) -> Compaction:
        """Return a compaction of what the request brings to mind; it has not begun."""
        return await self._compactor.start(ask, context, access)


class HistoryDesks:
    """Serves everything that is remembered."""

    def __init__(self, parts: HistoryParts) -> None:
        self.responses = Responses(parts)
        self.conversations = ConversationDesk(parts)
        self.store_timeout_s = parts.options.store_timeout_s
        self.context_headers = parts.options.context_headers


def history_options(settings: Settings) -> HistoryOptions:
    """Return how much is read and how long it is kept, as the settings choose."""
    return HistoryOptions(
        items_max=settings.history.items_max,
        bytes_max=settings.history.bytes_max,
        store_timeout_s=settings.storage.timeout_s,
        responses_kept_s=round(settings.retention.responses_days * _DAY_S),
        conversations_kept_s=round(settings.retention.conversations_days * _DAY_S),
        context_headers=settings.storage.context_headers,
        reasoning_events=settings.responses.reasoning_events,
    )
