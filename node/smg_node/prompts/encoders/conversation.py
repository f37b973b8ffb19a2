"""Conversation: input of an encoder: one conversation in the form of a chat template's variables.
Pure.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smg_node.prompts.jinja.sandbox import Today

Message = Mapping[str, Any]


class RefusedError(Exception):
    """The conversation has no form in this family's prompts; the message is for the client."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages, and the template variables beside them.

    `tools` are in OpenAI's form. `prompted`: the model is to answer; `continued`: it goes on with the last
    message. `variables` are all that a template would see.
    """

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]]
    variables: Mapping[str, Any]
    prompted: bool
    continued: bool
    today: Today

    def set(self, *names: str, otherwise: Any = None) -> Any:
        """Return the first of the variables that is there and not None."""
        values = (self.variables.get(name) for name in names)
        return next((value for value in values if value is not None), otherwise)

    @property
    def functions(self) -> Iterator[Mapping[str, Any]]:
        """The functions themselves."""
        return (tool["function"] for tool in self.tools)


def calls_of(message: Message) -> Sequence[Mapping[str, Any]]:
    """Return the calls of a message, each with `id` and `function`."""
    calls: Sequence[Mapping[str, Any]] = message.get("tool_calls") or ()
    return calls


def thought_of(message: Message) -> str:
    """Return what an assistant thought, "" if nothing is known of it."""
    return str(message.get("reasoning_content") or "")


def is_result(message: Message) -> bool:
    """Return whether the message is the result of a call."""
    return message["role"] in ("tool", "function")


def last_asked(messages: Sequence[Message], *roles: str) -> int:
    """Return the place of the last message of one of `roles`, -1 if there is none."""
    places = (at for at in range(len(messages) - 1, -1, -1) if messages[at]["role"] in roles)
    return next(places, -1)


def called(messages: Sequence[Message], at: int) -> str:
    """Return the name of the function that the result at `at` is of; RefusedError if it is unknown.

    By the id of the call, by its own name, or by its place among the results behind the calls.
    """
    result = messages[at]
    first = at
    while first > 0 and is_result(messages[first - 1]):
        first -= 1
    for message in reversed(messages[:first]):
        for call in calls_of(message):
            if call["id"] and call["id"] == result.get("tool_call_id"):
                return str(call["function"]["name"])
    if result.get("name"):
        return str(result["name"])
    calls = calls_of(messages[first - 1]) if first > 0 else ()
    if at - first < len(calls):
        return str(calls[at - first]["function"]["name"])
    raise RefusedError("a tool's result answers no call of the conversation")


def json_text(value: Any) -> str:
    """Return `value` as the reference programs print JSON: a blank behind commas and colons."""
    return json.dumps(value, ensure_ascii=False)


def packed_json(value: Any) -> str:
    """Return `value` as JSON without blanks, its keys in order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
