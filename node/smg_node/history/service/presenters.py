"""Presenters by API: that of a stored answer which is about to be made."""

from smg_node.dialects.responses.events.presenter import ResponsePresenter
from smg_node.history.context.history_loading import LoadedHistory
from smg_node.history.context.sealed_content import sealer
from smg_node.history.service.history_parts import HistoryParts
from smg_node.history.turns.answer_presenter import AnswerPresenter
from smg_storage.records import NO_TENANT


def presenter_of(
    parts: HistoryParts,
    hydrated: LoadedHistory,
    *,
    model: str,
    answer_id: str,
    tenant: str,
    now_ms: int,
) -> AnswerPresenter:
    """Return the presenter of this answer; `model` is the model's own name, where that is known."""
    ask = hydrated.ask
    if ask.api == "interactions":
        return _interaction(parts, hydrated, answer_id, tenant, now_ms)
    seal = sealer(parts.vault, tenant=tenant, model=model) if ask.wants_encrypted else None
    return ResponsePresenter(
        ask,
        response_id=answer_id,
        thread=hydrated.thread,
        created_s=now_ms // 1000,
        now_ms=now_ms,
        chance=parts.rng,
        seal=seal,
        reasoning_events=parts.options.reasoning_events,
    )


def _interaction(
    parts: HistoryParts,
    hydrated: LoadedHistory,
    answer_id: str,
    tenant: str,
    now_ms: int,
) -> AnswerPresenter:
    # Imported here: most nodes never need it.
    from smg_node.dialects.interactions.events.presenter import InteractionPresenter
    from smg_node.dialects.interactions.request.interaction_request import InteractionRequest
    from smg_node.dialects.thought_seals import ThoughtSeals

    ask = hydrated.ask
    assert isinstance(ask, InteractionRequest), "its reader makes no other"
    seals = ThoughtSeals(parts.vault)
    sign = seals.sign if ask.shows_thoughts else seals.seal
    # As a dialect's reader knows the caller, who may bring the signature back by any API.
    tenant = "" if tenant == NO_TENANT else tenant
    return InteractionPresenter(
        ask,
        interaction_id=answer_id,
        thread=hydrated.thread,
        created_s=now_ms // 1000,
        now_ms=now_ms,
        chance=parts.rng,
        sign=lambda thought: sign(thought, tenant=tenant, model=ask.model),
    )
