"""Items to turns: converts conversation items into the turns that a chat template renders.

An item is small: a reasoning item, one call, one message. A turn of the assistant is all of them up
to an item of another role, because that is how templates print it: reasoning first, then text, then
calls. A turn is only divided where nothing has been called yet, so that the results of calls follow
their calls; and where all that was called was run on this side, unless the ids of items tell of one pass.

Reasoning is shown again where the model still needs it: since the last message of the user, or all
of it. A reasoning item that led to nothing, because the answer was cut there, is not shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from smg_node.core.cooperative_steps import Steps, whole
from smg_node.core.errors import SmgError, invalid
from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.request import (
    DETAILS,
    MediaKind,
    MediaPart,
    Part,
    Role,
    TextPart,
    ToolCall,
    Turn,
)
from smg_node.dialects.opaque_envelope import PREFIX, unpack
from smg_node.dialects.openai.functions import custom_arguments
from smg_node.dialects.responses.items.flat_names import FlatNames
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.items.item_groups import last_model_item
from smg_node.dialects.responses.items.item_state import LAST, PHASE, PHASES, state_of
from smg_node.dialects.responses.items.item_types import (
    APPROVAL_REQUEST,
    APPROVAL_RESPONSE,
    CALL_OUTPUTS,
    ITEM_REFERENCE,
    OUTPUTS,
    SERVED_CALLS,
    kind_named,
)
from smg_node.dialects.responses.request.open_turn import OpenTurn
from smg_node.dialects.responses.request.response_request import ReasoningContext
from smg_storage.ids import pass_of

if TYPE_CHECKING:
    # Loaded with the first request that names tools of this node.
    from smg_node.core.generation.tool_serving import ToolServing

_ROLES: Final[Mapping[str, Role]] = {"user": "user", "system": "system", "developer": "developer"}
_MEDIA: Final[Mapping[str, MediaKind]] = {
    "input_image": "image",
    "computer_screenshot": "image",
    "input_file": "file",
    "input_audio": "audio",
}
_SERVED_PARTS: Final = frozenset(
    {APPROVAL_REQUEST, APPROVAL_RESPONSE, "tool_search_call", "tool_search_output"}
)
_WITH_SERVERS: Final = frozenset({"mcp_list_tools", APPROVAL_REQUEST, APPROVAL_RESPONSE})
_REFUSED: Final = "refused"
"""Tag of calls that a person did not approve: those of one request are made at once."""
_PHASE_ISSUER: Final = "openai"
"""Whose models tell the phases of their messages."""
_encode: Final = msgspec.json.Encoder().encode


def turns_of(
    items: Sequence[ItemDoc],
    *,
    reasoning: ReasoningContext,
    opened: Mapping[str, str] | None = None,
    new_from: int = 0,
    names: FlatNames | None = None,
) -> tuple[Turn, ...]:
    """Return the turns of these items, oldest first.

    `opened` maps sealed content to its text. INVALID_REQUEST `invalid_encrypted_content` for one
    that is needed and not in it. Items from `new_from` on are those of the request's own `input`.
    `names` are those of tools in namespaces.
    """
    return whole(
        turns_in_steps(items, reasoning=reasoning, opened=opened, new_from=new_from, names=names)
    )


def turns_in_steps(
    items: Sequence[ItemDoc],
    *,
    reasoning: ReasoningContext,
    opened: Mapping[str, str] | None = None,
    new_from: int = 0,
    names: FlatNames | None = None,
) -> Steps[tuple[Turn, ...]]:
    """Return what `turns_of` does, in steps."""
    weaver = _Weaver(opened or {}, names or FlatNames())
    first_thought = 0 if reasoning == "all_turns" else _last_question(items)
    said: int | None = None
    for place, item in enumerate(items):
        where = f"input[{place - new_from}]" if place >= new_from else "previous_response_id"
        if item.type == APPROVAL_RESPONSE:
            said = last_model_item(items) if said is None else said
            if place > said:
                # What comes of it is told by what does it.
                continue
        if item.type != "reasoning" or place >= first_thought:
            weaver.add(item, where)
            yield item.weight
    return weaver.turns()


def sealed(items: Sequence[ItemDoc]) -> Steps[tuple[str, ...]]:
    """Return all content in these items that was sealed here, each once, in steps; vendors' state is not sealed."""
    found: dict[str, bool] = {}
    for item in items:
        if item.type in ("compaction", "reasoning"):
            content = item.values().get("encrypted_content")
            if type(content) is str and content and not content.startswith(PREFIX):
                found[content] = True
            yield item.weight
    return tuple(found)


def _last_question(items: Sequence[ItemDoc]) -> int:
    for place in range(len(items) - 1, -1, -1):
        if items[place].type == "message" and items[place].role == "user":
            return place
    return 0


class _Weaver:
    """Joins items to turns, one after the other."""

    def __init__(self, opened: Mapping[str, str], names: FlatNames) -> None:
        self._opened = opened
        self._names = names
        self._turns: list[Turn] = []
        self._open = OpenTurn()
        self._said_in = ""
        """Tag of the pass of the item that is read."""
        self._asked: dict[str, dict[str, Any]] = {}

    def turns(self) -> tuple[Turn, ...]:
        """Return all turns so far."""
        self._close()
        return tuple(self._turns)

    def add(self, item: ItemDoc, where: str) -> None:
        """Take the next item; `where` is its place in the body."""
        assert item.type != ITEM_REFERENCE, "references are resolved before"
        self._said_in = pass_of(item.id)
        if item.type == "message":
            self._hear(item, where)
        elif item.type == "reasoning":
            self._think(item.values(), where)
        elif item.type in CALL_OUTPUTS:
            self._go_on()
            self._open.call(_call(item.type, item.values(), self._names))
        elif item.type in SERVED_CALLS or item.type in _SERVED_PARTS:
            self._serve(item)
        elif item.type in OUTPUTS:
            values = item.values()
            self._close()
            content = _output(item.type, values, where)
            self._turns.append(Turn("tool", content, answers_call=_text_at(values, "call_id")))
        elif item.type == "compaction":
            self._close()
            sealed_text = _text_at(item.values(), "encrypted_content")
            text = self._unsealed(sealed_text, where)
            if sealed_text and not text:
                # A summary of another model's: the conversation would go on without its beginning.
                raise not_opened(f"{where}.encrypted_content")
            self._turns.append(Turn("developer", text))

    def _go_on(self, *, says: bool = False, beside: bool = False) -> None:
        """Begin another turn, unless the one that is open goes on; see `OpenTurn.go_on`."""
        if not self._open.go_on(self._said_in, says=says, beside=beside):
            self._close()
            self._open.said_in = self._said_in

    def _serve(self, item: ItemDoc) -> None:
        """Take an item of a tool that was run on this side."""
        from smg_node.dialects.responses.request.served.past_calls import (
            asked_search,
            past_call,
            refused_call,
            search_result,
        )

        values, past, beside = item.values(), None, False
        if item.type == APPROVAL_REQUEST:
            self._asked[item.id] = values
        elif item.type == APPROVAL_RESPONSE:
            request = self._asked.pop(_text_at(values, "approval_request_id"), None)
            if request is not None and values.get("approve") is False:
                past = refused_call(request, values)
                beside = self._open.said_in == _REFUSED
                self._said_in = _REFUSED
        elif item.type == "tool_search_call":
            self._go_on()
            self._open.search(item.id, asked_search(values))
        elif item.type == "tool_search_output":
            found = self._open.searched(item.id)
            if found is not None:
                self._open.answer(search_result(found, values))
            return
        else:
            past = past_call(item.type, values)
            # What a person allowed is called with what was refused at the same time.
            beside = self._open.said_in == _REFUSED and bool(values.get("approval_request_id"))
        if past is not None:
            self._go_on(beside=beside)
            self._open.call(past.call)
            self._open.answer(past)

    def _hear(self, message: ItemDoc, where: str) -> None:
        values = message.values()
        content = _content(values.get("content"), f"{where}.content")
        if message.role != "assistant":
            self._close()
            self._turns.append(Turn(_ROLES.get(message.role, "user"), content))
            return
        self._go_on(says=True)
        if type(content) is not str:
            content = "".join(part.text for part in content if type(part) is TextPart)
        phase = _text_at(values, PHASE)
        opaque = (Opaque(_PHASE_ISSUER, PHASE, phase),) if phase in PHASES else ()
        self._open.say(content, opaque)
        self._open.phase = phase or self._open.phase

    def _think(self, values: Mapping[str, Any], where: str) -> None:
        blob = _text_at(values, "encrypted_content")
        envelope = unpack(blob) if blob.startswith(PREFIX) else None
        state = envelope or state_of(values)
        if state is not None and state.place == LAST:
            self._sign(state.opaque)
            return
        self._go_on(says=True)
        text = "".join(_text_at(part, "text") for part in _parts_at(values, "content"))
        if envelope is not None:
            text = text or envelope.thought
        elif not text and blob:
            text = self._unsealed(blob, where)
        self._open.think(text, () if state is None else state.opaque)

    def _sign(self, opaque: tuple[Opaque, ...]) -> None:
        """Put opaque state on the block before it."""
        blocks = self._open.blocks
        if blocks:
            blocks[-1] = msgspec.structs.replace(blocks[-1], opaque=(*blocks[-1].opaque, *opaque))

    def _unsealed(self, blob: str, where: str) -> str:
        text = self._opened.get(blob)
        if text is None:
            raise not_opened(f"{where}.encrypted_content")
        return text

    def _close(self) -> None:
        self._turns += self._open.turns()
        self._open = OpenTurn()


def not_opened(where: str) -> SmgError:
    """Return the error for sealed content that is not ours, or not this tenant's."""
    return invalid("this content was not sealed here", where, "invalid_encrypted_content")


# What is stored was read by us, or by another gateway whose tables were adopted: its shape is likely, not certain.


def _text_at(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value if type(value) is str else ""


def _parts_at(values: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = values.get(key)
    return [part for part in value if type(part) is dict] if type(value) is list else []


def _content(content: Any, where: str) -> str | tuple[Part, ...]:
    """Return one text as a string, as a client of Chat Completions would send it; else the parts."""
    if type(content) is str:
        return content
    parts = _parts_at({"content": content}, "content")
    made = [_part(part, f"{where}[{index}]") for index, part in enumerate(parts)]
    match made:
        case []:
            return ""
        case [TextPart() as only]:
            return only.text
        case _:
            return tuple(made)


def _part(part: Mapping[str, Any], where: str) -> Part:
    kind = _text_at(part, "type")
    if kind not in _MEDIA:
        return TextPart(_text_at(part, "text") or _text_at(part, "refusal"))
    if kind == "input_audio":
        audio = part.get("input_audio")
        known = audio if type(audio) is dict else {}
        form, encoded = _text_at(known, "format"), _text_at(known, "data")
        return MediaPart("audio", f"data:audio/{form};base64,{encoded}", where)
    keys = ("file_data", "file_url") if kind == "input_file" else ("image_url",)
    source = next((text for key in keys if (text := _text_at(part, key))), "")
    detail = part.get("detail")
    # `auto` is what our own reader writes where nothing was said.
    if _MEDIA[kind] == "image" and detail != "auto" and detail in DETAILS:
        return MediaPart("image", source, where, detail)
    return MediaPart(_MEDIA[kind], source, where, name=_text_at(part, "filename"))


def _call(kind: str, values: Mapping[str, Any], names: FlatNames) -> ToolCall:
    call_id = _text_at(values, "call_id")
    name = names.of(_text_at(values, "namespace"), _text_at(values, "name"))
    if kind == "function_call":
        return ToolCall(call_id, name, _text_at(values, "arguments"))
    if kind == "custom_tool_call":
        return ToolCall(call_id, name, custom_arguments(_text_at(values, "input")))
    action = next((values[key] for key in ("action", "operation") if values.get(key)), None)
    if type(action) is not dict:
        action = {"actions": _parts_at(values, "actions")}
    return ToolCall(call_id, kind.removesuffix("_call"), _json(action))


def _output(kind: str, values: Mapping[str, Any], where: str) -> str | tuple[Part, ...]:
    output = values.get("output")
    if kind == "computer_call_output":
        output = [output]
    elif kind not in ("function_call_output", "custom_tool_call_output"):
        # The client's own words for what happened, which a model reads as well as any others.
        said = _text_at(values, "status") if output is None else output
        return said if type(said) is str else _json(said)
    return _content(output, f"{where}.output")


def _json(value: Any) -> str:
    return _encode(value).decode()


def not_rendered(items: Iterable[ItemDoc], serving: "ToolServing | None" = None) -> tuple[int, ...]:
    """Return the places of items that have no effect: no prompt shows them, and no tool of ours has to do with them."""
    return tuple(place for place, item in enumerate(items) if not _has_effect(item, serving))


def _has_effect(item: ItemDoc, serving: "ToolServing | None") -> bool:
    if item.type in SERVED_CALLS:
        from smg_node.dialects.responses.request.served.past_calls import past_call

        return past_call(item.type, item.values()) is not None
    kind = kind_named(item.type)
    if kind is not None and kind.rendered:
        return True
    return serving is not None and item.type in _WITH_SERVERS
