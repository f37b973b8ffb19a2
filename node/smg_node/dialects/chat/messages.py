"""Messages to turns: reads the `messages` of a chat into the turns that templates render.

A turn keeps the form of its content (string or parts) and every unknown key, because chat templates
may read any key. Unknown keys further inside reach no template, so the client is told of them. Most messages of most requests are a role and a string; those take a fast path.
"""

from typing import Any, Final

import msgspec

from smg_node.core.generation.request import Part, Role, ToolCall, Turn, TurnBlock
from smg_node.core.json_cursor import Cursor, kind_of, quoted
from smg_node.dialects.chat.content_parts import read_content
from smg_node.dialects.chat.state.returned_state import (
    EXTRA,
    has_state,
    returned_blocks,
    without_carried,
)
from smg_node.dialects.openai.functions import custom_arguments
from smg_node.dialects.openai.part_limits import PartCounter
from smg_node.dialects.options import ReaderOptions

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "function",
}
# Roles whose message is complete with nothing but a string.
_SIMPLE: Final = frozenset({"system", "developer", "user", "assistant"})
_KNOWN: Final = frozenset(
    {
        "role", "content", "name", "reasoning_content", "reasoning", "tool_calls", "tool_call_id",
        "function_call", "refusal", "audio", "prefix", "partial",
    }
)  # fmt: skip
PREFIXES: Final = ("prefix", "partial")
"""Switches of a last message that the answer goes on from, as DeepSeek and Mistral call it, and as Moonshot does."""
_KINDS: Final = ("function", "custom")
_FUNCTION_KEYS: Final = frozenset({"name", "arguments"})
_CALLS_MAX: Final = 1_024
_ID_MAX: Final = 256
_NAME_MAX: Final = 128
_encode: Final = msgspec.json.Encoder().encode


def read_messages(cursor: Cursor, key: str, options: ReaderOptions) -> tuple[Turn, ...]:
    """Return the turns of the messages at `key`; everything wrong with them is noted."""
    messages = cursor.array(key, required=True, at_least=1, at_most=options.messages_max)
    shelf = PartCounter(options)
    turns: list[Turn] = []
    for index, message in enumerate(messages or ()):
        plain = plain_turn(message)
        if plain is not None:
            turns.append(plain)
            continue
        inside = cursor.element(key, index, message)
        if inside is None:
            continue
        _check_prefixes(inside, last=index == len(messages or ()) - 1)
        turn = _read_message(inside, shelf)
        if turn is not None:
            turns.append(turn)
    return tuple(turns)


def plain_turn(message: Any) -> Turn | None:
    """Return the turn of a message that has a role, a string and nothing else; None for any other."""
    if type(message) is not dict or len(message) != 2:
        return None
    role, content = message.get("role"), message.get("content")
    if type(content) is str and type(role) is str and role in _SIMPLE:
        return Turn(_ROLES[role], content)
    return None


def _check_prefixes(message: Cursor, *, last: bool) -> None:
    """Check the switches; in a history, an answer may still have the one it went on from."""
    for key in PREFIXES:
        if message.flag(key) and not last:
            message.ignore(key)


def _read_message(message: Cursor, shelf: PartCounter) -> Turn | None:
    spelled = message.text("role", required=True)
    role = None if spelled is None else _ROLES.get(spelled)
    if role is None:
        if spelled is not None:
            message.problem("role", f"must be one of {', '.join(_ROLES)}; got {quoted(spelled)}")
        return None
    content = read_content(message, role, shelf)
    name = message.text(
        "name", required=role == "function", characters_min=1, characters_max=_NAME_MAX
    )
    extra = {
        key: value
        for key, value in message.values.items()
        if key not in _KNOWN and value is not None
    }
    if role == "assistant":
        return _read_assistant(message, content, name, extra)
    if content is None and role != "function":
        message.raw("content", required=True)
    answers = None
    if role == "tool":
        answers = message.text(
            "tool_call_id", required=True, characters_min=1, characters_max=_ID_MAX
        )
    return Turn(role, content, name=name, answers_call=answers, extra=extra)


def _read_assistant(
    message: Cursor, content: str | tuple[Part, ...] | None, name: str | None, extra: dict[str, Any]
) -> Turn:
    """Return the assistant's output: text, reasoning, calls, or a refusal in place of text."""
    calls = _read_calls(message)
    reasoning = message.text("reasoning_content")
    other = message.text("reasoning")
    if reasoning is not None and other is not None and other != reasoning:
        message.ignore("reasoning")
    refusal = message.text("refusal")
    if content is not None and refusal:
        message.ignore("refusal")
    if message.has("audio"):
        message.unsupported("audio", "is not supported: no engine here remembers spoken answers")
    if content is None:
        content = refusal
    if content is None and not (calls or reasoning or other):
        message.raw("content", required=True)
    thought = other if reasoning is None else reasoning
    blocks: tuple[TurnBlock, ...] = ()
    if has_state(message.values):
        blocks = returned_blocks(message, content=content, thought=thought or "", calls=calls)
        extra = without_carried(extra)
    return Turn(
        "assistant",
        content,
        name=name,
        reasoning=thought,
        calls=calls,
        extra=extra,
        blocks=blocks,
    )


def _read_calls(message: Cursor) -> tuple[ToolCall, ...]:
    calls = [
        call
        for cursor in message.objects("tool_calls", at_most=_CALLS_MAX)
        if (call := _read_call(cursor)) is not None
    ]
    legacy = message.object("function_call")
    if legacy is not None and calls:
        message.problem("function_call", "cannot be combined with tool_calls")
    elif legacy is not None:
        call = _read_function(legacy, "")
        calls = [] if call is None else [call]
    return tuple(calls)


def _read_call(call: Cursor) -> ToolCall | None:
    kind = call.text("type") or "function"
    if kind not in _KINDS:
        why = f"only calls of functions and custom tools are supported; got {quoted(kind)}"
        call.unsupported("type", why)
        return None
    call.only(("id", "type", kind, EXTRA))
    call_id = call.text("id", required=True, characters_max=_ID_MAX)
    place = call.object(kind, required=True)
    if call_id is None or place is None:
        return None
    return (_read_custom if kind == "custom" else _read_function)(place, call_id)


def _read_custom(custom: Cursor, call_id: str) -> ToolCall | None:
    custom.only(("name", "input"))
    name = custom.text("name", required=True, characters_min=1, characters_max=_NAME_MAX)
    given = custom.text("input", required=True)
    return (
        None if name is None or given is None else ToolCall(call_id, name, custom_arguments(given))
    )


def _read_function(function: Cursor, call_id: str) -> ToolCall | None:
    """Return a call; arguments may be the JSON text it printed, or an object some clients make of it."""
    function.only(_FUNCTION_KEYS)
    name = function.text("name", required=True, characters_min=1, characters_max=_NAME_MAX)
    arguments = function.values.get("arguments")
    if arguments is None:
        arguments = ""
    elif type(arguments) is dict:
        arguments = _encode(arguments).decode()
    elif type(arguments) is not str:
        function.problem(
            "arguments", f"must be a string of JSON, not {kind_of(arguments)}", "invalid_type"
        )
        return None
    return None if name is None else ToolCall(call_id, name, arguments)
