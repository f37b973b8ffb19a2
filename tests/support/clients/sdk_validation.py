"""What the official SDK's own types say of a body or an event, more strictly than the SDK itself asks them.

The SDK builds whatever comes into its types without looking. Here everything is validated, strictly; every union is
decided by the type that a value names; and a key that neither the SDK nor the open schema knows is an objection.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, get_args

from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.conversations import (
    Conversation,
    ConversationDeletedResource,
    ConversationItem,
    ConversationItemList,
)
from openai.types.responses import (
    CompactedResponse,
    Response,
    ResponseItem,
    ResponseItemList,
    ResponseStreamEvent,
)
from openai.types.responses.input_token_count_response import InputTokenCountResponse
from pydantic import BaseModel, TypeAdapter, ValidationError

_ITEMS: Final[TypeAdapter[Any]] = TypeAdapter(ConversationItem)
_OWN_ITEMS: Final[TypeAdapter[Any]] = TypeAdapter(ResponseItem)
_SHOWN_MAX: Final = 8
# What the open schema demands and the SDK does not know, by its type.
_MORE: Final = frozenset(
    {
        ("Response", "store"),
        ("Response", "presence_penalty"),
        ("Response", "frequency_penalty"),
        ("Logprob", "bytes"),
        ("LogprobTopLogprob", "bytes"),
    }
)


def _event_classes() -> Mapping[str, type[BaseModel]]:
    union, _ = get_args(ResponseStreamEvent)
    return {
        name: one
        for one in get_args(union)
        for name in get_args(one.model_fields["type"].annotation)
    }


EVENTS: Final[Mapping[str, type[BaseModel]]] = _event_classes()
"""The SDK's events by their type."""


def opinion_of_response(raw: bytes) -> list[str]:
    """Return what is wrong with the object of a response."""
    return _validated(Response.model_validate_json, raw)


def opinion_of_event(raw: bytes) -> list[str]:
    """Return what is wrong with an event of a stream."""
    kind = json.loads(raw).get("type")
    if kind not in EVENTS:
        return [f"{kind!r} is no event of the SDK"]
    return _validated(EVENTS[kind].model_validate_json, raw)


def opinion_of_item(raw: bytes) -> list[str]:
    """Return what is wrong with an item of a conversation."""
    return _validated(_ITEMS.validate_json, raw)


def opinion_of_list(raw: bytes, *, own: bool) -> list[str]:
    """Return what is wrong with a page of items; `own`: of a response, not of a conversation.

    A page without items has no ids at its ends, which the SDK's types do not foresee.
    """
    page = json.loads(raw)
    if page.get("data") == []:
        wanted: dict[str, Any] = {
            "object": "list",
            "data": [],
            "first_id": None,
            "last_id": None,
            "has_more": False,
        }
        return [] if page == wanted else [f"an empty page is {page}"]
    items = _OWN_ITEMS if own else _ITEMS
    wrong = [
        f"data[{number}] {objection}"
        for number, item in enumerate(page["data"])
        for objection in _validated(items.validate_json, json.dumps(item).encode())
    ]
    if [page["first_id"], page["last_id"]] != [page["data"][0]["id"], page["data"][-1]["id"]]:
        wrong.append("the ids of a page are not those of its ends")
    if not wrong:
        # The items have been looked at one by one: here it is about the page.
        (ResponseItemList if own else ConversationItemList).model_validate_json(
            json.dumps({**page, "data": []}), strict=True
        )
    return wrong


def opinion_of_conversation(raw: bytes) -> list[str]:
    """Return what is wrong with a conversation, or with what says that it is gone."""
    gone = json.loads(raw).get("object") == "conversation.deleted"
    model: type[BaseModel] = ConversationDeletedResource if gone else Conversation
    return _validated(model.model_validate_json, raw)


def opinion_of_compaction(raw: bytes) -> list[str]:
    """Return what is wrong with a compaction."""
    values = json.loads(raw)
    # What the user said stands in it as it was said; the SDK's type has no place for that.
    asked = [item for item in values["output"] if item.get("role") == "user"]
    made = [item for item in values["output"] if item.get("role") != "user"]
    bare = json.dumps({**values, "output": made}).encode()
    return [
        *_validated(CompactedResponse.model_validate_json, bare),
        *(
            it
            for item in asked
            for it in _validated(_OWN_ITEMS.validate_json, json.dumps(item).encode())
        ),
    ]


def opinion_of_count(raw: bytes) -> list[str]:
    """Return what is wrong with a count of tokens."""
    return _validated(InputTokenCountResponse.model_validate_json, raw)


def opinion_of_whole(events: Sequence[bytes], final: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the SDK's own accumulator has against a whole stream that came to these items."""
    state: Any = ResponseStreamState(input_tools=omit, text_format=omit)
    try:
        for raw in events[:-1]:
            state.handle_event(_event(raw))
        # What it has put together by itself; the last event brings everything once more.
        said = [_said(item) for item in state._ResponseStreamState__current_snapshot.output]
        done = [item.to_dict() for _, item in sorted(state._completed_output.items())]
        told = state.handle_event(_event(events[-1]))[-1].response
    except Exception as error:
        # A door: whatever the accumulator stumbles over is a finding.
        return [f"the accumulator: {error!r}"]
    wrong = []
    if done != list(final):
        wrong.append(f"the accumulator has {done} and is told {final}")
    if said != [_said(item) for item in told.output]:
        wrong.append(f"the accumulator adds up {said} and is told {final}")
    return wrong


def _event(raw: bytes) -> Any:
    return EVENTS[json.loads(raw)["type"]].model_validate_json(raw, strict=True)


def _said(item: Any) -> tuple[str, str]:
    """Return what the accumulator adds up of an item: texts and arguments, nothing of other types."""
    texts = [part.text for part in item.content] if item.type == "message" else []
    return item.id, "".join(texts) or getattr(item, "arguments", "")


def _validated(validate: Callable[..., Any], raw: bytes) -> list[str]:
    try:
        value = validate(raw, strict=True)
    except ValidationError as error:
        # A union that nobody fits says so once for each of its members.
        rows = error.errors()[:_SHOWN_MAX]
        return [f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in rows]
    return list(_unknown(value, ""))


def _unknown(value: Any, where: str) -> Iterator[str]:
    """Yield keys that were taken without anybody knowing them."""
    if isinstance(value, BaseModel):
        for name in value.model_extra or ():
            if (type(value).__name__, name) not in _MORE:
                yield f"{where}.{name}: {type(value).__name__} has no such key"
        for name in value.model_fields_set & type(value).model_fields.keys():
            yield from _unknown(getattr(value, name), f"{where}.{name}")
    elif isinstance(value, list):
        for number, element in enumerate(value):
            yield from _unknown(element, f"{where}[{number}]")
