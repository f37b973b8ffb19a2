"""Generate request of a response: its history and its own input, joined and converted to turns."""

from collections.abc import Mapping, Sequence
from typing import Final

from smg_node.core.cooperative_steps import Steps, whole
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Turn
from smg_node.dialects.responses.items.flat_names import FlatNames
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.request.items_to_turns import not_rendered, turns_in_steps
from smg_node.dialects.responses.request.response_request import ResponseRequest

_IGNORED_MAX: Final = 32


def generate_request(
    ask: ResponseRequest, items: Sequence[ItemDoc], *, opened: Mapping[str, str] | None = None
) -> GenerateRequest:
    """Return the request for these items: history, then the request's own input with its references
    resolved.

    INVALID_REQUEST `invalid_encrypted_content` where sealed content is needed that `opened` does
    not hold.
    """
    return whole(generate_request_in_steps(ask, items, opened=opened))


def generate_request_in_steps(
    ask: ResponseRequest,
    items: Sequence[ItemDoc],
    *,
    opened: Mapping[str, str] | None = None,
    context: Sequence[ItemDoc] | None = None,
) -> Steps[GenerateRequest]:
    """Return what `generate_request` does, in steps. `context` are the items before any were left out, None for all."""
    assert len(items) >= len(ask.items), "the ask's own input is always part of it"
    new_from = len(items) - len(ask.items)
    turns = yield from turns_in_steps(
        items,
        reasoning=ask.reasoning_context,
        opened=opened,
        new_from=new_from,
        names=FlatNames(ask.namespaced, (tool.name for tool in ask.tools)),
    )
    if ask.instructions:
        turns = (Turn("system", ask.instructions), *turns)
    prompt = ChatPrompt(
        turns,
        tools=ask.tools,
        choice=ask.choice,
        thinking=ask.thinking,
        kwargs=ask.kwargs,
        where="input",
    )
    serving = ask.serving
    if serving is not None:
        from smg_node.dialects.responses.request.served.served_context import serving_in_steps

        known = items if context is None else context
        serving = yield from serving_in_steps(serving, known, new_from=len(known) - len(ask.items))
    unseen = [f"input[{place}]" for place in not_rendered(items[new_from:], serving)]
    return GenerateRequest(
        model=ask.model,
        prompts=(prompt,),
        sampling=ask.sampling,
        stream=ask.stream,
        routing_key=ask.routing_key,
        ignored=(*ask.ignored, *unseen)[:_IGNORED_MAX],
        polled=ask.background,
        serving=serving,
    )
