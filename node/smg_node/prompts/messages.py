"""Messages for chat templates: converts turns to dicts in the form that one template wants. Pure.

The hot path is the plain message: a role and a string. Everything else follows what was found out
about the template (`TemplateFacts`): whether it takes content as a string or as parts, what stands
for an assistant that said nothing, whether call arguments are an object or text.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec.structs import replace

from smg_node.core.generation.call_arguments import (
    UNREADABLE_KEY,
    read_arguments,
    without_halves,
)
from smg_node.core.generation.request import (
    ChatPrompt,
    HandedDocuments,
    Part,
    TextPart,
    Tool,
    ToolCall,
    Turn,
)
from smg_node.prompts.analysis.template_facts import (
    BUILTIN,
    DEFERRED,
    REFERENCE,
    TemplateFacts,
)
from smg_node.prompts.call_order import in_call_order
from smg_node.prompts.jinja.symbolic_text import Notes, Place, SymbolicText
from smg_node.prompts.message_forms import RESULT_ROLES, Message, as_parts, one_call_each

if TYPE_CHECKING:
    # Loaded with the first prompt that has more than text.
    from smg_node.prompts.media_forms import MediaForms


class Warn(Protocol):
    """Called with what was mended, or could not be honoured."""

    def __call__(self, what: str, parameter: str = "", /) -> None:
        """Take note of `what`; `parameter` is the JSON path of one that has no effect, "" if none has."""
        ...


_NO_PARAMETERS: Final = {"type": "object", "properties": {}}
_TURNS_A_REST: Final = 128
"""Turns that become messages between two rests; half a millisecond of work."""
# What a turn says itself; unknown keys of a message never replace it.
_OWNED: Final = frozenset({"role", "content", "tool_calls", "tool_call_id"})


def to_messages(
    turns: Iterable[Turn], facts: TemplateFacts, warn: Warn, media: "MediaForms | None" = None
) -> list[Message]:
    """Return one dict per turn, results of tools in the order of their calls.

    `media` is how the model sees media; INVALID_REQUEST (`unsupported_parameter`) at a part that it does not see.
    `warn` is told of call arguments that are no JSON object; their text is shown.
    """
    as_string = facts.content == "string"
    messages: list[Message] = []
    for turn in in_call_order(turns):
        content = turn.content
        role: str = turn.role
        if role == "developer" and not facts.knows_developer:
            role = "system"
        if (
            type(content) is str
            and as_string
            and not turn.calls
            and turn.reasoning is None
            and role not in RESULT_ROLES
        ):
            message: Message = {"role": role, "content": content}
        else:
            message = _message(turn, role, facts, warn, media)
        if turn.name is not None:
            message["name"] = turn.name
        if turn.extra:
            _add_unknown(message, turn)
        messages.append(message)
    return one_call_each(messages, facts.nothing()) if facts.one_call else messages


def with_rests(turns: Iterable[Turn], rest: Callable[[], None]) -> Iterator[Turn]:
    """Yield the turns, and rest after some of them."""
    for at, turn in enumerate(turns, 1):
        yield turn
        if not at % _TURNS_A_REST:
            rest()


def documents_handed(prompt: ChatPrompt, handed: HandedDocuments) -> ChatPrompt:
    """Return the prompt with the documents of its turns beside the messages."""
    turns = list(prompt.turns)
    for place, content in handed.contents:
        turns[place] = replace(turns[place], content=content)
    return replace(prompt, turns=tuple(turns), documents=handed.documents)


def symbolic_messages(
    messages: Sequence[Message], texts: Sequence[str], notes: Notes
) -> list[Message] | None:
    """Return the messages with their texts unseen; None where one does not stand in its message as it is."""
    hidden: list[Message] = []
    for at, (message, text) in enumerate(zip(messages, texts, strict=True)):
        content, unseen = message["content"], SymbolicText(notes, Place(at), text)
        if content == text:
            hidden.append({**message, "content": unseen})
        elif content == [{"type": "text", "text": text}]:
            hidden.append({**message, "content": [{"type": "text", "text": unseen}]})
        else:
            return None
    return hidden


def _add_unknown(message: Message, turn: Turn) -> None:
    for key, value in turn.extra.items():
        if value is not None and key not in _OWNED:
            message.setdefault(key, value)


def _message(
    turn: Turn, role: str, facts: TemplateFacts, warn: Warn, media: "MediaForms | None"
) -> Message:
    message: Message = {"role": role, "content": _content(turn.content, facts, role, media)}
    if turn.references and facts.knows_references:
        message["content"] = [{"type": REFERENCE, "name": name} for name in turn.references]
    if turn.reasoning is not None:
        if facts.thought_parts:
            thought = {"type": "thinking", "thinking": turn.reasoning}
            message["content"] = [thought, *as_parts(message["content"])]
        else:
            for key in facts.reasoning_keys:
                message[key] = turn.reasoning
    if turn.calls:
        message["tool_calls"] = [_call(call, facts, warn) for call in turn.calls]
    if turn.answers_call is not None:
        message["tool_call_id"] = turn.answers_call
    return message


def _content(
    content: str | tuple[Part, ...] | None,
    facts: TemplateFacts,
    role: str,
    media: "MediaForms | None",
) -> Any:
    result = role in RESULT_ROLES
    form = facts.tool_content if result else facts.content
    if not content:
        if content is None and role == "assistant":
            return facts.nothing()
        return "" if form == "string" else []
    if isinstance(content, str):
        return content if form == "string" else [{"type": "text", "text": content}]
    texts = [part.text for part in content if isinstance(part, TextPart)]
    if len(texts) < len(content):
        from smg_node.prompts.media_forms import MediaNames, content_with_media

        names = (
            MediaNames(facts.tool_picture_part, facts.tool_clip_parts)
            if result
            else MediaNames(facts.picture_part, facts.clip_parts)
        )
        return content_with_media(content, form, names, media)
    if form == "string":
        return "\n".join(texts)
    return [{"type": "text", "text": text} for text in texts]


def _call(call: ToolCall, facts: TemplateFacts, warn: Warn) -> Message:
    arguments = read_arguments(call.arguments)
    if arguments is None:
        warn(f"the arguments of the call {call.name!r} are not a JSON object")
    shown = (
        _text(call, arguments) if facts.arguments == "string" else _object(call, arguments, facts)
    )
    function = {"name": call.name, "arguments": shown}
    return {"id": call.call_id, "type": "function", "function": function}


def _text(call: ToolCall, arguments: Message | None) -> str:
    return "{}" if arguments == {} else without_halves(call.arguments)


def _object(call: ToolCall, arguments: Message | None, facts: TemplateFacts) -> Message | str:
    """Return the arguments for a template that wants an object: their text, where they are none and it prints that."""
    if arguments is not None:
        return arguments
    text = without_halves(call.arguments)
    return text if facts.prints_raw_arguments else {UNREADABLE_KEY: text}


def to_tools(tools: Sequence[Tool], facts: TemplateFacts) -> list[Message] | None:
    """Return the tools in OpenAI's form, or None if there are none to be shown.

    A tool is what the client made it; only a description is added, empty, where a template cannot do without.
    Deferred ones are not shown, but to a template that leaves them out itself until they are referred to.
    """
    shown: list[Message] = []
    for tool in tools:
        if tool.deferred and not facts.knows_references:
            continue
        function: Message = {"name": tool.name}
        if tool.description is not None:
            function["description"] = tool.description
        elif facts.needs_descriptions:
            function["description"] = ""
        # A function without parameters takes none; templates go through them without asking.
        function["parameters"] = _NO_PARAMETERS if tool.parameters is None else tool.parameters
        if tool.strict:
            function["strict"] = True
        if tool.deferred:
            function[DEFERRED] = True
        if tool.builtin and facts.knows_builtins:
            function[BUILTIN] = tool.builtin
        shown.append({"type": "function", "function": function})
    return shown or None
