"""Prompt fit: the ids and sampling that engines of one kind can be sent for a prompt: checked, cut, clamped. Pure."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from smg_node.core.context_limit import TOO_LONG_CODE, prompt_too_long
from smg_node.core.errors import invalid, unsupported
from smg_node.core.generation.request import Constraint, GenerateRequest, Sampling, TokenIds
from smg_node.engines.contracts.sampling_rules import Refusal, with_defaults
from smg_node.pipeline.prompt.preparation import Prepared
from smg_node.pipeline.prompt.request_bounds import RequestBounds


def fit(
    prepared: Prepared, request: GenerateRequest, terms: RequestBounds, told: Constraint | None
) -> tuple[TokenIds, Sampling]:
    """Return the ids and sampling to send to an engine of these `terms`: checked, cut, clamped.

    INVALID_REQUEST for an empty prompt, an id outside the vocabulary, or a prompt that leaves no
    room (`context_length_exceeded`). An unset or too large `max_tokens` becomes the rest of the
    context, unless the request wants that refused. The engine gets the constraint `told` in the
    place of the client's own. The model's recommended sampling is filled in: the engine would do so
    itself, but an answer that goes on elsewhere must be drawn as it began.
    """
    ids, sampling = prepared.ids, request.sampling
    if not ids:
        raise invalid("the prompt is empty: it has no tokens", prepared.where)
    prompt_max = terms.prompt_max
    if request.truncate_prompt_tokens is not None:
        ids = _truncate(ids, request.truncate_prompt_tokens, prompt_max)
        if prepared.media is not None and len(ids) < len(prepared.ids):
            raise unsupported(
                f"the prompt has {len(prepared.ids)} tokens and pictures among them: it cannot be cut to"
                f" {len(ids)} without cutting those",
                "truncate_prompt_tokens",
            )
    if prompt_max is not None and len(ids) > prompt_max:
        raise prompt_too_long(len(ids), prompt_max, prepared.where, context=terms.context)
    # Ids of our own making lie in the tokenizer's vocabulary; looking at 8,000 costs 0.2 ms.
    if not (terms.trusted and prepared.text):
        _check_ids(prepared, ids, terms.vocabulary)
    if sampling.logit_bias or sampling.stop_token_ids:
        check_bias(sampling, terms.vocabulary)
    most = _bounded(request, len(ids), terms.context)
    if most != sampling.max_tokens or told is not sampling.constraint:
        sampling = replace(sampling, max_tokens=most, constraint=told)
    defaults = terms.card.sampling_defaults
    return ids, with_defaults(sampling, defaults) if defaults else sampling


def _check_ids(prepared: Prepared, ids: TokenIds, vocabulary: int) -> None:
    """Check the `ids` that are left of a prompt, the last ones."""
    if max(ids) < vocabulary:
        return
    left_out = len(prepared.ids) - len(ids)
    at, token_id = next((at, one) for at, one in enumerate(ids, left_out) if one >= vocabulary)
    # An id has a place of its own only in a prompt that came as ids.
    where = prepared.where if prepared.text else f"{prepared.where}[{at}]"
    raise invalid(f"token id {token_id} is outside the vocabulary of {vocabulary} tokens", where)


def check_bias(sampling: Sampling, vocabulary: int) -> None:
    """Refuse ids in `logit_bias` or `stop_token_ids` that the vocabulary does not have."""
    for name, ids in (
        ("logit_bias", sampling.logit_bias),
        ("stop_token_ids", sampling.stop_token_ids),
    ):
        for token_id in ids:
            if not 0 <= token_id < vocabulary:
                where = sampling.path(name)
                raise invalid(
                    f"token id {token_id} is outside the vocabulary of {vocabulary} tokens",
                    f"{where}.{token_id}" if name == "logit_bias" else where,
                )


def _truncate(ids: TokenIds, keep: int, prompt_max: int | None) -> TokenIds:
    if keep == -1:
        keep = prompt_max if prompt_max is not None else len(ids)
    return ids[-keep:] if len(ids) > keep else ids


def _bounded(request: GenerateRequest, prompt_tokens: int, context: int | None) -> int:
    """Return how long an answer may be."""
    sampling = request.sampling
    wanted = sampling.max_tokens
    if context is None:
        # No engine said how long an answer may be: a bound of ours, so that nothing runs for ever.
        return wanted if wanted is not None else ANSWER_TOKENS_MAX
    room = context - prompt_tokens
    assert room >= 1, "a prompt that fills the context was refused above"
    if wanted is not None and wanted > room and not request.max_tokens_clamped:
        raise invalid(
            f"this model's maximum context length is {context} tokens, but the prompt has"
            f" {prompt_tokens} and max_tokens asks for {wanted} more",
            sampling.path("max_tokens"),
            code=TOO_LONG_CODE,
        )
    most = room if wanted is None else min(wanted, room)
    if sampling.min_tokens > most:
        raise invalid(
            f"min_tokens is {sampling.min_tokens}, but there is room for {most} tokens",
            sampling.path("min_tokens"),
        )
    return most


ANSWER_TOKENS_MAX: Final = 32_768
"""Default answer length where no context is known; a client may ask for more."""


def check_able(sampling: Sampling, refused: Sequence[Refusal]) -> tuple[str, ...]:
    """Refuse what an engine cannot do and what must not be dropped silently; return what is
    ignored.
    """
    for refusal in refused:
        if refusal.fatal:
            raise unsupported(refusal.message, _where(sampling, refusal))
    return tuple(_where(sampling, refusal) for refusal in refused)


def _where(sampling: Sampling, refusal: Refusal) -> str:
    constraint = sampling.constraint if refusal.field == "constraint" else None
    return sampling.path(refusal.field) if constraint is None else constraint.where
