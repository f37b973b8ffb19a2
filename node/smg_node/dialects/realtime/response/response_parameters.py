"""Response parameters: the `response` of a `response.create`, read over what its session says. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from smg_node.core.errors import SmgError
from smg_node.core.json_cursor import Cursor, Problems
from smg_node.dialects.openai.extras import take_metadata
from smg_node.dialects.openai.part_limits import PartCounter
from smg_node.dialects.openai.request_draft import Draft
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.realtime.config.audio_config import check_audio, shown_output
from smg_node.dialects.realtime.config.generation_parameters import INFINITE, NAMES, read_parameters
from smg_node.dialects.realtime.config.session_config import SessionConfig, merged
from smg_node.dialects.realtime.conversation import (
    Context,
    Conversation,
    check_calls,
    check_context,
)
from smg_node.dialects.realtime.items import REFERENCE, NewId, read_item
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.request.response_request import ResponseRequest

_OVER: Final = (*NAMES, "audio")
_TEXT: Final = {"output_modalities": ["text"]}
_KNOWN: Final = (*_OVER, "metadata", "conversation", "input")


@dataclass(frozen=True, slots=True)
class ResponseParameters:
    """What one answer is made of. `context` is what of the conversation its prompt has; `ask.items` are its own input.

    `is_beside`: it neither reads its place in the conversation nor writes to it.
    """

    ask: ResponseRequest
    context: Context
    is_beside: bool
    max_output_tokens: int | str
    output: Mapping[str, Any]
    metadata: Mapping[str, str] | None


def read_response(
    wish: Cursor,
    config: SessionConfig,
    conversation: Conversation,
    *,
    options: ReaderOptions,
    items_max: int,
    new_id: NewId,
) -> ResponseParameters:
    """Return what the client asks for. INVALID_REQUEST names all that is wrong; `item_not_found` for a reference."""
    wish.only(_KNOWN)
    # Many clients say with each answer what holds for all of them: that needs no other reading.
    over = {key: wish.values[key] for key in _OVER if wish.has(key)}
    if over == _TEXT:
        over = {}
    said = merged(config.said, over) if over else config.said
    ask = config.ask
    if over:
        whole = wish.standing_for(dict(said))
        ask = read_parameters(whole, options, model=ask.model, routing_key=ask.routing_key or "")
        check_audio(whole)
    draft = Draft(options)
    if wish.has("metadata"):
        take_metadata(draft, wish, "metadata")
    beside = wish.word("conversation", ("auto", "none")) == "none"
    given = _input(wish, conversation, options, items_max, new_id) if wish.has("input") else None
    wish.problems.check()
    context = Context()
    if given is None:
        context = conversation.context()
        check_context(context)
    else:
        check_calls(given, wish.path("input"))
    return ResponseParameters(
        replace(ask, items=given or ()),
        context,
        beside,
        said.get("max_output_tokens", INFINITE),
        shown_output(said),
        draft.view.get("metadata"),
    )


def _input(
    wish: Cursor,
    conversation: Conversation,
    options: ReaderOptions,
    items_max: int,
    new_id: NewId,
) -> tuple[ItemDoc, ...]:
    """Return the items that are the whole context of this answer: written out, or of the conversation."""
    counter = PartCounter(options)
    docs: list[ItemDoc] = []
    for row in wish.objects("input", at_most=items_max):
        if row.values.get("type") == REFERENCE:
            doc = _referred(row, conversation)
        else:
            item = read_item(row, counter, new_id)
            doc = None if item is None else item.prompt
        if doc is not None:
            docs.append(doc)
    return tuple(docs)


def _referred(row: Cursor, conversation: Conversation) -> ItemDoc | None:
    row.only(("type", "id"))
    item_id = row.text("id", required=True)
    if item_id is None:
        return None
    try:
        return conversation.finished_item(item_id, row.path("id")).prompt
    except SmgError as error:
        row.problem("id", error.message, error.code)
        return None


def nothing_asked() -> Cursor:
    """Return what stands for the `response` of an event that has none."""
    return Cursor({}, Problems())
