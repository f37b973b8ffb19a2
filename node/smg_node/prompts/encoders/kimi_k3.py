"""Kimi K3 prompts: elements whose brackets are tokens, with attributes in quotes. Pure."""

from collections.abc import Iterator
from typing import Any, Final

from smg_node.prompts.analysis.template_facts import TemplateFacts
from smg_node.prompts.analysis.thinking_variables import Switch
from smg_node.prompts.encoders.conversation import (
    Conversation,
    Message,
    RefusedError,
    called,
    calls_of,
    is_result,
    json_text,
    packed_json,
    thought_of,
)

_LEVELS: Final = ("low", "high", "max")
_END: Final = "<|end_of_msg|>"

FACTS: Final = TemplateFacts(
    switch=Switch(
        key="thinking",
        on=True,
        off=False,
        default="on",
        level_key="thinking_effort",
        levels=(("low", "low"), ("high", "high"), ("max", "max")),
        thinks=True,
    )
)
"""How messages are to be given to `encode`."""

_TOOLS: Final = (
    "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n{tools}\n```"
)
_EFFORT: Final = (
    "`thinking_effort` guides on how much to think in your thinking channel (not including the "
    "response channel), supported values include `low`, `medium`, `high`, and `max`.\n"
    "Now the system is invoked with `thinking_effort={effort}`."
)
_CHOICES: Final = {
    "required": "You MUST call tools in the next message.",
    "none": "You MUST NOT call any tools in the next message.",
}
_RAW_JSON: Final = (
    "Your response must be raw JSON data without markdown code blocks (```json) or any additional "
    "formatting."
)


def encode(conversation: Conversation) -> str:
    """Return the prompt; RefusedError for an effort that the model does not know."""
    return "".join(_encode(conversation))


def _encode(conversation: Conversation) -> Iterator[str]:
    thinking = bool(conversation.set("thinking", "enable_thinking", otherwise=True))
    effort = conversation.set("thinking_effort", otherwise="max")
    if thinking and effort not in _LEVELS:
        raise RefusedError(f"thinking_effort can be {', '.join(_LEVELS)}, not {effort!r}")
    if conversation.tools:
        tools = packed_json(conversation.tools)
        yield _internal("tool-declare", _TOOLS.replace("{tools}", tools))
    if thinking:
        yield _internal("thinking-effort", _EFFORT.replace("{effort}", effort))
    place = 0
    for at, message in enumerate(conversation.messages):
        place = place + 1 if is_result(message) else 0
        if place:
            name = called(conversation.messages, at)
            yield _message("tool", message["content"], ("tool", name), ("index", place))
        elif message["role"] == "assistant":
            yield _message("assistant", "".join(_assistant(message, thinking=thinking)))
        else:
            named = [("name", message["name"])] if message.get("name") else []
            yield _message(message["role"], message["content"], *named)
    yield from _wishes(conversation)
    if conversation.prompted:
        yield _open("message", ("role", "assistant")) + _open("think" if thinking else "response")


def _wishes(conversation: Conversation) -> Iterator[str]:
    """Yield the requested form of the answer, as the last text before it."""
    choice = conversation.set("tool_choice")
    if isinstance(choice, str) and choice in _CHOICES:
        body = f"The system is invoked with `tool_choice={choice}`.\n{_CHOICES[choice]}"
        yield _internal("tool-choice", body)
    asked = conversation.set("response_format")
    kind = asked.get("type") if isinstance(asked, dict) else asked
    if kind not in ("json_object", "json_schema"):
        return
    body = f"The system is invoked with `response_format={kind}`.\n{_RAW_JSON}"
    if kind == "json_schema" and isinstance(asked, dict):
        form = asked.get("json_schema") or {}
        schema = packed_json(form.get("schema", form))
        body += f"\nThe JSON data must match the following schema:\n```json\n{schema}\n```"
    yield _internal("response-format", body)


def _assistant(message: Message, *, thinking: bool) -> Iterator[str]:
    if thinking:
        thought = thought_of(message)
        yield _element("think", thought if thought.strip() else "")
    yield _element("response", message["content"])
    calls = calls_of(message)
    if calls:
        yield _element("tools", "".join(_call(call, at) for at, call in enumerate(calls, 1)))


def _call(call: Any, place: int) -> str:
    function = call["function"]
    arguments = "".join(
        _element(
            "argument",
            value if isinstance(value, str) else json_text(value),
            ("key", key),
            ("type", _type(value)),
        )
        for key, value in function["arguments"].items()
    )
    return _element("call", arguments, ("tool", function["name"]), ("index", place))


def _type(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case None:
            return "null"
        case int() | float():
            return "number"
        case str():
            return "string"
        case dict():
            return "object"
        case _:
            return "array"


def _internal(kind: str, body: str) -> str:
    return _message("system", body, ("type", kind))


def _message(role: str, body: str, *attributes: tuple[str, Any]) -> str:
    return _element("message", body, ("role", role), *attributes) + _END


def _element(name: str, body: str, *attributes: tuple[str, Any]) -> str:
    return f"{_open(name, *attributes)}{body}<|close|>{name}<|sep|>"


def _open(name: str, *attributes: tuple[str, Any]) -> str:
    said = "".join(f' {key}="{_escaped(value)}"' for key, value in attributes)
    return f"<|open|>{name}{said}<|sep|>"


def _escaped(value: Any) -> str:
    return str(value).replace("&", "&amp;").replace('"', "&quot;")
