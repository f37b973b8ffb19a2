"""Fitted conversation: as much of a realtime session as its model has room for, and which items that leaves out.

Counting tokens means rendering the prompt. So nothing is counted where its bytes say that it fits: no text has more tokens
than bytes, an item's document has more bytes around its text than any template has tokens, and what a template says of itself
is known to be short.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from smg_node.core.generation.request import ChatPrompt, GenerateRequest, media_of
from smg_node.dialects.realtime.config.retention import AUTO, Retention
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.request.generate_request import generate_request_in_steps
from smg_node.dialects.responses.request.input_items import user_message
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.history.context.paced_steps import paced
from smg_node.history.context.truncation import Search, budget_of, layout_of, too_long
from smg_node.history.ports import Measure

_FIELD: Final = "session.truncation"
_TEMPLATE_TOKENS_MAX: Final = 1_024
"""What templates say beside items and tools: a date, a default system message, how to call. The longest seen has some 400."""
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class FittedConversation:
    """A request that fits, and the places of the history that it has no room for."""

    request: GenerateRequest
    left_out: tuple[int, ...] = ()


async def fitted_conversation(
    ask: ResponseRequest,
    history: Sequence[ItemDoc],
    rule: Retention | None,
    measure: Measure,
) -> FittedConversation:
    """Return the request of an answer, with the newest groups of its history that the rule lets stay.

    None leaves everything in, for the generation to refuse. INVALID_REQUEST `context_length_exceeded` if the prompt is too
    long with nothing left to leave out, and for the field `session.truncation` where tokens are to be counted and cannot be.
    """
    whole = FittedConversation(await _request(ask, history))
    if rule is None or not history:
        return whole
    if rule != AUTO:
        measure.check(_FIELD)
    context = measure.context
    if context is None:
        return whole
    wanted = ask.sampling.max_tokens
    # An answer that may be longer than the context may be as long as there is room.
    budget = budget_of(context, wanted if wanted is None or wanted < context else None)
    # The instructions of a prompt whose tokens do not matter to the rule need not be counted.
    fixed = 0 if rule == AUTO else await measure.count(await _prompt(ask, (user_message(" "),)))
    most = rule.prompt_max(budget, instructions=fixed)
    if _surely_fits(whole.request, ask, history, most):
        return whole
    if await measure.count(whole.request.prompts[0]) <= most:
        return whole
    kept = rule.prompt_kept(budget, instructions=fixed)
    return await _cut(ask, history, kept, budget, measure)


async def _cut(
    ask: ResponseRequest,
    history: Sequence[ItemDoc],
    kept: int,
    budget: int,
    measure: Measure,
) -> FittedConversation:
    """Return the request with as many groups as have `kept` tokens; the newest one stays if it fits into the context."""
    layout = layout_of(history, new_from=len(history))
    groups = [layout.stay, *layout.may_go]
    search = Search([sum(len(history[at].document) for at in group) for group in groups], kept)
    while (count := search.wanted) is not None:
        chosen = [history[place] for place in layout.places(count)]
        search.measured(count, await measure.count(await _prompt(ask, chosen)))
    if search.best is None and (search.shortest or 0) > budget:
        assert measure.context is not None, "only what has a context is cut"
        raise too_long(search.shortest or 0, budget, measure.context)
    stay = layout.places(search.best or 0)
    gone = sorted({*range(len(history))} - {*stay})
    request = await _request(ask, [history[place] for place in stay])
    return FittedConversation(request, tuple(gone))


async def _request(ask: ResponseRequest, history: Sequence[ItemDoc]) -> GenerateRequest:
    return await paced(generate_request_in_steps(ask, (*history, *ask.items)))


async def _prompt(ask: ResponseRequest, history: Sequence[ItemDoc]) -> Any:
    return (await _request(ask, history)).prompts[0]


def _surely_fits(
    request: GenerateRequest, ask: ResponseRequest, history: Sequence[ItemDoc], most: int
) -> bool:
    """Whether the prompt has fewer bytes than it may have tokens, pictures not counted."""
    size = _TEMPLATE_TOKENS_MAX + sum(len(doc.document) for doc in (*history, *ask.items))
    if size > most:
        return False
    size += len((ask.instructions or "").encode())
    size += sum(len(_encode([tool.name, tool.description, tool.parameters])) for tool in ask.tools)
    prompt = request.prompts[0]
    return size <= most and not (isinstance(prompt, ChatPrompt) and media_of(prompt.turns))
