"""Inkling prompts: messages that begin with a token for their author and one for what they hold.
Pure.
"""

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
    packed_json,
    thought_of,
)

_EFFORTS: Final = {
    "none": 0.0,
    "minimal": 0.1,
    "low": 0.2,
    "medium": 0.7,
    "high": 0.9,
    "xhigh": 0.99,
    "max": 0.99,
}
_DEFAULT: Final = _EFFORTS["high"]
_MOST: Final = 0.99

FACTS: Final = TemplateFacts(
    switch=Switch(
        key="reasoning_effort",
        on=_DEFAULT,
        off=_EFFORTS["none"],
        default="on",
        level_key="reasoning_effort",
        levels=(
            ("minimal", _EFFORTS["minimal"]),
            ("low", _EFFORTS["low"]),
            ("medium", _EFFORTS["medium"]),
            ("high", _EFFORTS["high"]),
            ("max", _EFFORTS["max"]),
        ),
        numbers=True,
        thinks=True,
    )
)
"""How messages are to be given to `encode`."""

_AUTHORS: Final = {
    "user": "<|message_user|>",
    "assistant": "<|message_model|>",
    "system": "<|message_system|>",
    "tool": "<|message_tool|>",
}
_END: Final = "<|end_message|>"
_OVER: Final = "<|content_model_end_sampling|>"


def encode(conversation: Conversation) -> str:
    """Return the prompt; RefusedError for an effort that is none."""
    return "".join(_encode(conversation))


def _encode(conversation: Conversation) -> Iterator[str]:
    if conversation.tools:
        yield _message(
            "system",
            "xml",
            packed_json([_declared(tool) for tool in conversation.tools]),
            "tool_declare",
        )
    told = False
    effort = _effort(conversation.set("reasoning_effort", otherwise=_DEFAULT))
    for at, message in enumerate(conversation.messages):
        if not told and message["role"] != "system":
            told = True
            yield _message("system", "text", effort)
        if is_result(message):
            yield _message("tool", "text", message["content"], called(conversation.messages, at))
        elif message["role"] == "assistant":
            yield from _assistant(message)
        elif message["content"]:
            yield _message(message["role"], "text", message["content"])
    if not told:
        yield _message("system", "text", effort)
    if conversation.prompted:
        yield _AUTHORS["assistant"]


def _message(role: str, kind: str, body: str, name: str = "") -> str:
    return f"{_AUTHORS[role]}{name}<|content_{kind}|>{body}{_END}"


def _declared(tool: Any) -> dict[str, Any]:
    function = tool["function"]
    return {
        "description": function.get("description") or "",
        "name": function["name"],
        "parameters": function.get("parameters") or {},
        "type": tool.get("type", "function"),
    }


def _effort(asked: Any) -> str:
    value = _EFFORTS.get(asked) if isinstance(asked, str) else asked
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        raise RefusedError(
            f"reasoning_effort is a number from 0 to {_MOST} for this model, not {asked!r}"
        )
    text = f"{value:.2f}".rstrip("0")
    return (
        f"Thinking effort level: {text}0"
        if text.endswith(".")
        else f"Thinking effort level: {text}"
    )


def _assistant(message: Message) -> Iterator[str]:
    thought = thought_of(message)
    if thought:
        yield _message("assistant", "thinking", thought)
    if message["content"]:
        yield _message("assistant", "text", message["content"])
    for call in calls_of(message):
        function = call["function"]
        body = f'{{"name":{packed_json(function["name"])},"args":{packed_json(function["arguments"])}}}'
        yield _message("assistant", "invoke_tool_json", body, function["name"])
    yield _OVER
