"""History options from settings: how much of history is read and how long it is kept."""

from typing import Final

from smg_node.config.frozen_settings import Settings
from smg_node.history.ports import HistoryOptions, Quota

_DAY_S: Final = 86_400


def history_options(settings: Settings) -> HistoryOptions:
    """Return the options that the settings choose."""
    quota = settings.storage.quota
    return HistoryOptions(
        items_max=settings.history.items_max,
        bytes_max=settings.history.bytes_max,
        store_timeout_s=settings.storage.timeout_s,
        responses_kept_s=round(settings.retention.responses_days * _DAY_S),
        conversations_kept_s=round(settings.retention.conversations_days * _DAY_S),
        keys_kept_s=settings.retention.idempotency_s,
        sweep_s=settings.retention.sweep_s,
        quota=Quota(quota.responses_max, quota.conversations_max, quota.max_bytes),
        context_headers=settings.storage.context_headers,
        reasoning_events=settings.responses.reasoning_events,
        resume_grace_s=settings.responses.resume_grace_s,
        interaction_grace_s=settings.interactions.resume_grace_s,
        checkpoint_ms=settings.interactions.checkpoint_ms,
        event_log_kept_s=settings.responses.event_log_ttl_s,
        background_deadline_s=settings.responses.background.deadline_s,
        background_node_max=settings.responses.background.per_node_max,
        background_tenant_max=settings.responses.background.per_tenant_max,
    )
