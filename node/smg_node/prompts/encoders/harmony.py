"""Harmony prompts of gpt-oss: messages with a header, functions as types of TypeScript. Pure.

The system message holds the model's identity, the date, the reasoning effort and the channels; what
other APIs call the system message is the developer's. Thoughts before the last answer are
forgotten, those since then are kept: they belong to a task that is still under way. A call and its
result stand together, for the model makes one call at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from smg_node.prompts.analysis.template_facts import TemplateFacts
from smg_node.prompts.analysis.thinking_variables import Switch
from smg_node.prompts.encoders.conversation import (
    Conversation,
    Message,
    called,
    calls_of,
    is_result,
    json_text,
    thought_of,
)
from smg_node.prompts.encoders.typescript import namespace

FACTS: Final = TemplateFacts(
    arguments="string",
    knows_developer=True,
    switch=Switch(
        default="on",
        level_key="reasoning_effort",
        levels=(("low", "low"), ("medium", "medium"), ("high", "high")),
        thinks=True,
    ),
)
"""How messages are to be given to `encode`."""

_IDENTITY: Final = "You are ChatGPT, a large language model trained by OpenAI."
_CUTOFF: Final = "2024-06"
_INSTRUCTIONS: Final = ("system", "developer")


def encode(conversation: Conversation) -> str:
    """Return the prompt."""
    return "".join(_encode(conversation))


def _encode(conversation: Conversation) -> Iterator[str]:
    messages = conversation.messages
    first = next(
        (at for at, message in enumerate(messages) if message["role"] not in _INSTRUCTIONS),
        len(messages),
    )
    yield _message("system", _system(conversation))
    developer = _developer(conversation, messages[:first])
    if developer:
        yield _message("developer", developer)
    answered = _last_answer(messages, continued=conversation.continued)
    at = first
    while at < len(messages):
        message = messages[at]
        at += 1
        if message["role"] in _INSTRUCTIONS:
            yield _message("developer", f"# Instructions\n\n{message['content']}")
        elif message["role"] == "assistant":
            results = at
            while at < len(messages) and is_result(messages[at]):
                at += 1
            yield from _assistant(message, kept=results - 1 > answered)
            yield from _calls(messages, results - 1, at)
        elif is_result(message):
            yield _result(messages, at - 1)
        else:
            yield _message(message["role"], message["content"])
    if conversation.prompted:
        yield "<|start|>assistant"


def _message(role: str, body: str) -> str:
    return f"<|start|>{role}<|message|>{body}<|end|>"


def _system(conversation: Conversation) -> str:
    lines = [
        str(conversation.set("model_identity", otherwise=_IDENTITY)),
        f"Knowledge cutoff: {_CUTOFF}",
        f"Current date: {conversation.today('%Y-%m-%d')}",
        "",
        f"Reasoning: {conversation.set('reasoning_effort', otherwise='medium')}",
        "",
        "# Valid channels: analysis, commentary, final. Channel must be included for every message.",
    ]
    if conversation.tools:
        lines.append("Calls to these tools must go to the commentary channel: 'functions'.")
    return "\n".join(lines)


def _developer(conversation: Conversation, instructions: Sequence[Message]) -> str:
    sections: list[str] = []
    said = "\n\n".join(message["content"] for message in instructions if message["content"])
    if said:
        sections += ["# Instructions", said]
    if conversation.tools:
        sections += ["# Tools", namespace("functions", conversation.functions)]
    wanted = _response_format(conversation.set("response_format"))
    if wanted:
        sections += ["# Response Formats", wanted]
    return "\n\n".join(sections)


def _response_format(asked: Any) -> str:
    """Return the section for a form that the answer is to have, "" if there is none."""
    form = asked.get("json_schema") if isinstance(asked, Mapping) else None
    if not isinstance(form, Mapping) or not isinstance(form.get("schema"), Mapping):
        return ""
    said = [f"// {line}" for line in str(form.get("description") or "").splitlines()]
    return "\n".join([f"## {form.get('name') or 'answer'}", "", *said, json_text(form["schema"])])


def _last_answer(messages: Sequence[Message], *, continued: bool) -> int:
    """Return the place of the last answer to the user, -1 if there is none."""
    last = len(messages) - 1 if continued else len(messages)
    for at in range(last - 1, -1, -1):
        if messages[at]["role"] == "assistant" and not calls_of(messages[at]):
            return at
    return -1


def _assistant(message: Message, *, kept: bool) -> Iterator[str]:
    thought = thought_of(message)
    if thought and kept:
        yield f"<|start|>assistant<|channel|>analysis<|message|>{thought}<|end|>"
    calls = calls_of(message)
    if message["content"] or not calls:
        channel = "commentary" if calls else "final"
        yield f"<|start|>assistant<|channel|>{channel}<|message|>{message['content']}<|end|>"


def _calls(messages: Sequence[Message], at: int, end: int) -> Iterator[str]:
    """Yield the calls of the message at `at`, each with its result, and the results before `end` of no call."""
    left = list(range(at + 1, end))
    for call in calls_of(messages[at]):
        function = call["function"]
        yield (
            f"<|start|>assistant to=functions.{function['name']}<|channel|>commentary "
            f"<|constrain|>json<|message|>{function['arguments']}<|call|>"
        )
        for place in left:
            if messages[place].get("tool_call_id") == call["id"]:
                left.remove(place)
                yield _result(messages, place)
                break
    for place in left:
        yield _result(messages, place)


def _result(messages: Sequence[Message], at: int) -> str:
    name = called(messages, at)
    body = messages[at]["content"]
    return f"<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>{body}<|end|>"
