"""Messages for chat templates: converts turns to dicts in the form that one template wants. Pure.

The hot path is the plain message: a role and a string. Everything else follows what was found out
about the template (`TemplateFacts`): whether it takes content as a string or as parts, what stands
for an assistant that said nothing, whether call arguments are an object or text.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

from msgspec.structs import replace

from smg_node.core.errors import unsupported
from smg_node.core.generation.call_arguments import (
    UNREADABLE_KEY,
    read_arguments,
    without_halves,
)
from smg_node.core.generation.request import (
    ChatPrompt,
    HandedDocuments,
    MediaPart,
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
    ContentForm,
    TemplateFacts,
)
from smg_node.prompts.jinja.symbolic_text import Notes, Place, SymbolicText
from smg_node.prompts.message_forms import RESULT_ROLES, Message, as_parts, one_call_each


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


def to_messages(turns: Iterable[Turn], facts: TemplateFacts, warn: Warn) -> list[Message]:
    """Return one dict per turn, results of tools in the order of their calls.

    INVALID_REQUEST (`unsupported_parameter`) at a media part. `warn` is told of call arguments that
    are no JSON object; their text is shown.
    """
    as_string = facts.content == "string"
    messages: list[Message] = []
    has_results = False
    for turn in turns:
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
            message = _message(turn, role, facts, warn)
            has_results = has_results or role == "tool"
        if turn.name is not None:
            message["name"] = turn.name
        if turn.extra:
            _add_unknown(message, turn)
        messages.append(message)
    if has_results:
        messages = _in_call_order(messages)
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


def _message(turn: Turn, role: str, facts: TemplateFacts, warn: Warn) -> Message:
    form = facts.tool_content if role in RESULT_ROLES else facts.content
    message: Message = {"role": role, "content": _content(turn.content, form, facts, role)}
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
    content: str | tuple[Part, ...] | None, form: ContentForm, facts: TemplateFacts, role: str
) -> Any:
    if not content:
        if content is None and role == "assistant":
            return facts.nothing()
        return "" if form == "string" else []
    if form == "string":
        return content if isinstance(content, str) else "\n".join(_texts(content))
    texts = [content] if isinstance(content, str) else _texts(content)
    return [{"type": "text", "text": text} for text in texts]


def _texts(parts: Iterable[Part]) -> list[str]:
    texts: list[str] = []
    for part in parts:
        match part:
            case TextPart():
                texts.append(part.text)
            case MediaPart():
                raise unsupported(
                    f"this node cannot give {part.kind} input to a model yet; send text only",
                    part.where,
                )
    return texts


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


def _in_call_order(messages: list[Message]) -> list[Message]:
    """Return the messages with each run of tool results in the order of the calls before it."""
    ordered: list[Message] = []
    places: dict[str, int] = {}
    run: list[Message] = []
    for message in messages:
        if message["role"] == "tool":
            run.append(message)
            continue
        ordered += _sorted_run(run, places)
        run = []
        places = {call["id"]: at for at, call in enumerate(message.get("tool_calls", ()))}
        ordered.append(message)
    return ordered + _sorted_run(run, places)


def _sorted_run(run: list[Message], places: dict[str, int]) -> list[Message]:
    if len(run) > 1 and places:
        run.sort(key=lambda message: places.get(message.get("tool_call_id", ""), len(places)))
    return run


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
