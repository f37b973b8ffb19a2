"""Message: a finished choice as the `message` object of Chat Completions."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.generation.answer import Choice
from smg_node.core.generation.events import BlockEnd, FinishReason
from smg_node.dialects.chat.state.shown_state import call_state, details_of
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.openai.functions import custom_input
from smg_node.dialects.options import ReasoningField

_FIELDS: Final[dict[ReasoningField, tuple[str, ...]]] = {
    "reasoning_content": ("reasoning_content",),
    "reasoning": ("reasoning",),
    "both": ("reasoning_content", "reasoning"),
}


def reasoning_fields(view: ChatView) -> tuple[str, ...]:
    """Return the names of the reasoning fields."""
    return _FIELDS[view.reasoning_field]


_REASONS: Final[Mapping[FinishReason, str]] = {
    "refusal": "content_filter",
    "pause": "stop",
    "context_window": "length",
}
"""What this API calls the ends that only vendors' models come to."""


def finish_reason(reason: FinishReason, view: ChatView, *, refused: bool = False) -> str:
    """Return the dialect's finish reason of a choice; `refused`: it has a refusal in words, which is an answer."""
    if reason == "tool_calls":
        return "function_call" if view.legacy_call else reason
    if reason == "pause" and view.served:
        return "length"
    return "stop" if refused and reason == "refusal" else _REASONS.get(reason, reason)


def arguments_of(call: BlockEnd) -> str:
    """Return the arguments of a call; a call without any has an empty object."""
    return call.text or "{}"


def message_of(choice: Choice, view: ChatView) -> dict[str, Any]:
    """Return the message of a choice. Its content is null only if there is nothing but calls, or a refusal."""
    calls = [block for block in choice.blocks if block.kind == "call"]
    content = "".join(block.text for block in choice.blocks if _is_content(block, view))
    refusal = "".join(block.text for block in choice.blocks if block.kind == "refusal")
    message: dict[str, Any] = {
        "role": "assistant",
        "content": content or (None if calls or refusal else ""),
        "refusal": refusal or None,
    }
    if view.include_reasoning and view.separate_reasoning:
        reasoning = choice.reasoning()
        if reasoning:
            message |= dict.fromkeys(reasoning_fields(view), reasoning)
    if calls and view.legacy_call:
        first = calls[0]
        message["function_call"] = {"name": first.name, "arguments": arguments_of(first)}
    elif calls:
        message["tool_calls"] = [_call_of(call, view) for call in calls]
    if any(block.opaque for block in choice.blocks):
        details = details_of(choice.blocks, view)
        if details:
            message["reasoning_details"] = details
    return message


def has_refusal(choice: Choice) -> bool:
    """Whether a choice has a refusal in words."""
    return any(block.kind == "refusal" for block in choice.blocks)


def _call_of(call: BlockEnd, view: ChatView) -> dict[str, Any]:
    extra = call_state(call.opaque) if call.opaque else None
    state = {} if extra is None else {"extra_content": extra}
    if call.name in view.custom_tools:
        custom = {"name": call.name, "input": custom_input(call.text)}
        return {"id": call.call_id, "type": "custom", "custom": custom, **state}
    function = {"name": call.name, "arguments": arguments_of(call)}
    return {"id": call.call_id, "type": "function", "function": function, **state}


def _is_content(block: BlockEnd, view: ChatView) -> bool:
    if block.kind == "reasoning":
        return view.include_reasoning and not view.separate_reasoning
    return block.kind == "text"
