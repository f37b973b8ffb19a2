"""Harmony prompts of gpt-oss: messages with a header, functions as types of TypeScript. Pure.

The system message holds the model's identity, the date, the reasoning effort and the channels; what
other APIs call the system message is the developer's. Thoughts before the last answer are
forgotten, those since then are kept: they belong to a task that is still under way. A call and its
result stand together, for the model makes one call at a time. Built-in tools are told in the system message, and called
and answered on the analysis channel, in the forms that the models have learnt.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from smg_node.prompts.analysis.template_facts import BUILTIN, TemplateFacts
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
    knows_builtins=True,
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
_PYTHON: Final = "python"
RECIPIENTS: Final = {
    "web_search": "browser.search",
    "web_fetch": "browser.open",
    "code_interpreter": _PYTHON,
}
"""Recipients of calls of the built-in tools that these models have learnt to use, by kind."""


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
    known = {
        function["name"]: RECIPIENTS[function[BUILTIN]]
        for function in conversation.functions
        if function.get(BUILTIN) in RECIPIENTS
    }
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
            yield from _calls(messages, results - 1, at, known)
        elif is_result(message):
            yield _result(messages, at - 1, known)
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
    builtins = list(_builtin_sections(conversation))
    if builtins:
        lines[-1:-1] = ["# Tools", "", "\n\n".join(builtins), ""]
    if any(one.get(BUILTIN) not in RECIPIENTS for one in conversation.functions):
        lines.append("Calls to these tools must go to the commentary channel: 'functions'.")
    return "\n".join(lines)


def _builtin_sections(conversation: Conversation) -> Iterator[str]:
    """Yield what the system message says of tools that the model has learnt a form of its own for."""
    known = {
        function[BUILTIN]: function for function in conversation.functions if BUILTIN in function
    }
    browser = [
        {**known[kind], "name": recipient.partition(".")[2]}
        for kind, recipient in RECIPIENTS.items()
        if kind in known and recipient != _PYTHON
    ]
    if browser:
        yield namespace("browser", browser)
    if "code_interpreter" in known:
        yield f"## {_PYTHON}\n\n{known['code_interpreter'].get('description') or ''}".rstrip()


def _developer(conversation: Conversation, instructions: Sequence[Message]) -> str:
    sections: list[str] = []
    said = "\n\n".join(message["content"] for message in instructions if message["content"])
    if said:
        sections += ["# Instructions", said]
    functions = [one for one in conversation.functions if one.get(BUILTIN) not in RECIPIENTS]
    if functions:
        sections += ["# Tools", namespace("functions", functions)]
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


def _calls(
    messages: Sequence[Message], at: int, end: int, known: Mapping[str, str]
) -> Iterator[str]:
    """Yield the calls of the message at `at`, each with its result, and the results before `end` of no call.

    `known` are the recipients of built-in tools, by the names of their functions.
    """
    left = list(range(at + 1, end))
    for call in calls_of(messages[at]):
        function = call["function"]
        yield _call(function["name"], function["arguments"], known)
        for place in left:
            if messages[place].get("tool_call_id") == call["id"]:
                left.remove(place)
                yield _result(messages, place, known)
                break
    for place in left:
        yield _result(messages, place, known)


def _call(name: str, arguments: str, known: Mapping[str, str]) -> str:
    recipient = _own_recipient(name, known)
    if recipient:
        body = _program(arguments) if recipient == _PYTHON else arguments
        return f"<|start|>assistant<|channel|>analysis to={recipient} code<|message|>{body}<|call|>"
    return (
        f"<|start|>assistant to=functions.{name}<|channel|>commentary "
        f"<|constrain|>json<|message|>{arguments}<|call|>"
    )


def _program(arguments: str) -> str:
    """Return the program that the arguments of a call hold; the arguments themselves where they hold none."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    code = given.get("code") if isinstance(given, dict) else None
    return code if isinstance(code, str) else arguments


def _result(messages: Sequence[Message], at: int, known: Mapping[str, str]) -> str:
    name = called(messages, at)
    body = messages[at]["content"]
    recipient = _own_recipient(name, known)
    if recipient:
        return f"<|start|>{recipient} to=assistant<|channel|>analysis<|message|>{body}<|end|>"
    return f"<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>{body}<|end|>"


def _own_recipient(name: str, known: Mapping[str, str]) -> str:
    """Return the recipient of a built-in tool, also of one that the model only believed to have; "" of any other."""
    return known.get(name) or (name if known and name.startswith("browser.") else "")
