"""DeepSeek V3.2 and V4 prompts: roles as tokens, thoughts between tags, calls in DSML. Pure.

A turn of the assistant begins with what closes or opens its thought: the closer alone where it is not to
think, or where what it thought is forgotten. V3.2 forgets what was thought before the user's last word; V4
keeps it as soon as tools are about, and takes the results of calls for a part of what the user says.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from smg_node.prompts.analysis.template_facts import TemplateFacts
from smg_node.prompts.analysis.thinking_variables import Switch
from smg_node.prompts.encoders.conversation import (
    Conversation,
    Message,
    calls_of,
    is_result,
    json_text,
    last_asked,
    thought_of,
)
from smg_node.prompts.encoders.deepseek_texts import EFFORT_MAX, V4_TOOLS, V32_TOOLS

_SWITCH: Final = Switch(key="thinking", on=True, off=False, default="off", thinks=True)
V32_FACTS: Final = TemplateFacts(later_systems=False, switch=_SWITCH)
"""How messages are to be given to `encode_v32`."""
V4_FACTS: Final = TemplateFacts(
    later_systems=False,
    switch=Switch(
        key="thinking",
        on=True,
        off=False,
        default="off",
        level_key="reasoning_effort",
        levels=(("high", "high"), ("max", "max")),
        thinks=True,
    ),
)
"""How messages are to be given to `encode_v4`."""

_BEGIN: Final = "<｜begin▁of▁sentence｜>"
_END: Final = "<｜end▁of▁sentence｜>"
_USER: Final = "<｜User｜>"
_ASSISTANT: Final = "<｜Assistant｜>"
_THINK: Final = "<think>"
_THOUGHT: Final = "</think>"
_DSML: Final = "｜DSML｜"


def encode_v32(conversation: Conversation) -> str:
    """Return the prompt for V3.2."""
    return "".join(_v32(conversation))


def encode_v4(conversation: Conversation) -> str:
    """Return the prompt for V4."""
    return "".join(_v4(conversation))


def _thinking(conversation: Conversation) -> bool:
    return bool(conversation.set("thinking", "enable_thinking", otherwise=False))


def _v32(conversation: Conversation) -> Iterator[str]:
    messages = _without_system(conversation)
    thinking = _thinking(conversation)
    asked = last_asked(messages, "user")
    yield str(conversation.set("bos_token", otherwise=_BEGIN))
    yield _system(conversation, V32_TOOLS)
    for at, message in enumerate(messages):
        over = at + 1 == len(messages)
        if message["role"] == "assistant":
            if at > asked and thinking:
                yield f"{thought_of(message)}{_THOUGHT}"
            yield f"{message['content']}{_calls(message, 'function_calls')}{_END}"
        elif is_result(message):
            yield from _v32_result(messages, at)
            if over or not is_result(messages[at + 1]):
                yield "\n</function_results>"
                if not over or conversation.prompted:
                    yield "\n\n" + (_THINK if at > asked and thinking else _THOUGHT)
        else:
            yield f"{_USER}{message['content']}"
            if not over or conversation.prompted:
                yield _ASSISTANT + (_THINK if at == asked and thinking else _THOUGHT)
    if conversation.prompted and (not messages or messages[-1]["role"] == "assistant"):
        yield _ASSISTANT + (_THINK if thinking else _THOUGHT)


def _v32_result(messages: Sequence[Message], at: int) -> Iterator[str]:
    if at == 0 or not is_result(messages[at - 1]):
        yield "\n\n<function_results>"
    yield f"\n<result>{messages[at]['content']}</result>"


def _v4(conversation: Conversation) -> Iterator[str]:
    messages = _without_system(conversation)
    thinking = _thinking(conversation)
    asked = last_asked(messages, "user", "tool", "function")
    keeps = bool(conversation.tools) or any(is_result(message) for message in messages)
    keeps = keeps or conversation.set("drop_thinking", otherwise=True) is False
    yield str(conversation.set("bos_token", otherwise=_BEGIN))
    if messages and thinking and conversation.set("reasoning_effort") == "max":
        yield EFFORT_MAX
    yield _system(conversation, V4_TOOLS)
    asking = False
    for at, message in enumerate(messages):
        if message["role"] == "assistant":
            kept = thinking and (keeps or at > asked)
            yield _ASSISTANT + (f"{_THINK}{thought_of(message)}" if kept else "") + _THOUGHT
            yield f"{message['content']}{_calls(message, 'tool_calls')}{_END}"
            asking = False
            continue
        said = message["content"]
        yield "\n\n" if asking else _USER
        yield f"<tool_result>{said}</tool_result>" if is_result(message) else said
        asking = True
    if conversation.prompted:
        yield _ASSISTANT + (_THINK if thinking else _THOUGHT)


def _without_system(conversation: Conversation) -> Sequence[Message]:
    return [message for message in conversation.messages if message["role"] != "system"]


def _system(conversation: Conversation, tools: str) -> str:
    """Return what stands before the conversation: all that the system says, then the tools."""
    said = [each["content"] for each in conversation.messages if each["role"] == "system"]
    text = "\n\n".join(said)
    if not conversation.tools:
        return text
    schemas = "\n".join(json_text(function) for function in conversation.functions)
    return f"{text}\n\n{tools.replace('{tools}', schemas)}"


def _calls(message: Message, block: str) -> str:
    calls = calls_of(message)
    if not calls:
        return ""
    lines = [f"\n\n<{_DSML}{block}>"]
    for call in calls:
        function = call["function"]
        lines.append(f'<{_DSML}invoke name="{function["name"]}">')
        lines.append("\n".join(_parameter(*item) for item in function["arguments"].items()))
        lines.append(f"</{_DSML}invoke>")
    return "\n".join([*lines, f"</{_DSML}{block}>"])


def _parameter(key: str, value: Any) -> str:
    text = isinstance(value, str)
    said = value if text else json_text(value)
    mark = "true" if text else "false"
    return f'<{_DSML}parameter name="{key}" string="{mark}">{said}</{_DSML}parameter>'
