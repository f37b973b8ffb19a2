"""Message forms: the same conversation in forms that a template may take where it refuses another. Pure.

Each function here returns the very same list where it has nothing to change.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from smg_node.prompts.analysis.template_facts import REASONING_KEYS, TemplateFacts

Message = dict[str, Any]

RESULT_ROLES: Final = ("tool", "function")
_BLANK_LINE: Final = "\n\n"
_NEW_LINE: Final = "\n"
_SYSTEM: Final = "system"
_TELLERS: Final = ("user", *RESULT_ROLES)
_REMINDER: Final = ("<system-reminder>", "</system-reminder>")


def other_forms(messages: list[Message], facts: TemplateFacts) -> Iterator[list[Message]]:
    """Yield the messages in other forms, those that change the least first.

    Some templates want one system message, at the front; some want user and assistant in turn; some have one
    place for a thought and for what is said before a call; some take one call a message, or know none.
    """
    yield from _roles_mended(messages, facts)
    apart = one_call_each(messages, facts.nothing())
    for base in (apart, messages if facts.knows_calls else calls_as_text(messages)):
        if base is not messages:
            yield base
            yield from _roles_mended(base, facts)


def _roles_mended(messages: list[Message], facts: TemplateFacts) -> Iterator[list[Message]]:
    # Roles are mended one after the other; what is said keeps its place unless that alone was wrong.
    for change in _CHANGES_OF_A_TAKER if facts.later_systems else _CHANGES:
        changed = change(messages)
        if changed is messages:
            continue
        if change is not thoughts_joined:
            messages = changed
        yield changed


def one_call_each(messages: list[Message], nothing: Any) -> list[Message]:
    """Return the messages with one call each, followed by its results; `nothing` is what a mere caller says.

    The very same list if no message has several calls.
    """
    if not any(len(message.get("tool_calls", ())) > 1 for message in messages):
        return messages
    apart: list[Message] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        end = at
        while end < len(messages) and messages[end]["role"] == "tool":
            end += 1
        results = messages[at:end]
        calls = message.get("tool_calls", ())
        if len(calls) > 1:
            apart += _one_call_each(message, calls, results, nothing)
            at = end
        else:
            apart.append(message)
    return apart


def _one_call_each(
    message: Message, calls: Sequence[Message], results: Sequence[Message], nothing: Any
) -> list[Message]:
    """Return a message and its results, call by call; results of no call of it come last."""
    waiting = list(results)
    apart: list[Message] = []
    for place, call in enumerate(calls):
        head = {"role": message["role"], "content": nothing} if place else message
        apart.append({**head, "tool_calls": [call]})
        mine = [each for each in waiting if each.get("tool_call_id") == call["id"]]
        if any(other["id"] == call["id"] for other in calls[place + 1 :]):
            mine = mine[:1]
        apart += mine
        waiting = [each for each in waiting if all(each is not one for one in mine)]
    return apart + waiting


def calls_as_text(messages: list[Message]) -> list[Message]:
    """Return the messages with calls as JSON in what was said, and their results as said by the user.

    The very same list if there are none. For templates that know no tools at all.
    """
    if not any("tool_calls" in each or each["role"] in RESULT_ROLES for each in messages):
        return messages
    return [_as_text(message) for message in messages]


def _as_text(message: Message) -> Message:
    if message["role"] in RESULT_ROLES:
        return {"role": "user", "content": message["content"]}
    if "tool_calls" not in message:
        return message
    functions = [call["function"] for call in message["tool_calls"]]
    said = {"role": "assistant", "content": _NEW_LINE.join(_json(each) for each in functions)}
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return _merged(rest, said)


def _json(value: Message) -> str:
    return json.dumps(value, ensure_ascii=False)


def systems_first(messages: list[Message]) -> list[Message]:
    """Return the messages with all system messages merged into one at the front.

    The very same list if they are already so.
    """
    systems = [message for message in messages if message["role"] == "system"]
    if not systems or (len(systems) == 1 and messages[0] is systems[0]):
        return messages
    merged = systems[0]
    for message in systems[1:]:
        merged = _merged(merged, message)
    return [merged, *(message for message in messages if message["role"] != "system")]


def later_systems_as_reminders(messages: list[Message]) -> list[Message]:
    """Return the messages with what the system says later told where it stands: by the user, or behind the
    result of a tool that comes before it.

    The very same list if nothing is. Moved to the front it would change all of the prompt, and no engine could
    go on from what it remembers of the conversation. A turn of its own it only gets behind an assistant's, so
    that what was thought between calls stays behind the last question.
    """
    first = next((at for at, each in enumerate(messages) if each["role"] != _SYSTEM), len(messages))
    if not any(message["role"] == _SYSTEM for message in messages[first:]):
        return messages
    told = messages[:first]
    waiting: Message | None = None
    for message in messages[first:]:
        if message["role"] == _SYSTEM:
            reminder = {"role": "user", "content": _reminder(message["content"])}
            if waiting is not None:
                waiting = _merged(waiting, reminder, _NEW_LINE)
            elif told and told[-1]["role"] in _TELLERS:
                told[-1] = _merged(told[-1], reminder, _NEW_LINE)
            else:
                waiting = reminder
            continue
        if waiting is not None and message["role"] == "user":
            message = {**message, **_merged(waiting, message, _NEW_LINE)}
        elif waiting is not None:
            told.append(waiting)
        waiting = None
        told.append(message)
    return told if waiting is None else [*told, waiting]


def _reminder(content: Any) -> Any:
    if isinstance(content, list):
        return [_text_part(_REMINDER[0]), *content, _text_part(_REMINDER[1])]
    return _NEW_LINE.join((_REMINDER[0], content or "", _REMINDER[1]))


def _text_part(text: str) -> Message:
    return {"type": "text", "text": text}


def thoughts_joined(messages: list[Message]) -> list[Message]:
    """Return the messages with what was said before a call made part of the thought before it.

    The very same list if none has both. Some templates have one place for the two.
    """
    result = [_thought_joined(message) for message in messages]
    changed = any(one is not other for one, other in zip(messages, result, strict=True))
    return result if changed else messages


def _thought_joined(message: Message) -> Message:
    keys = [key for key in REASONING_KEYS if message.get(key)]
    said = message["content"]
    if not keys or not said or type(said) is not str or "tool_calls" not in message:
        return message
    return {**message, "content": "", **{key: message[key] + _BLANK_LINE + said for key in keys}}


def neighbours_merged(messages: list[Message]) -> list[Message]:
    """Return the messages with plain neighbours of one role (user, assistant) merged.

    The very same list if there are none.
    """
    result: list[Message] = []
    for message in messages:
        before = result[-1] if result else None
        if before is not None and _mergeable(before, message):
            result[-1] = _merged(before, message)
        else:
            result.append(message)
    return result if len(result) < len(messages) else messages


def _mergeable(first: Message, second: Message) -> bool:
    return (
        first["role"] == second["role"] in ("user", "assistant")
        and "tool_calls" not in first
        and "tool_calls" not in second
    )


def _merged(first: Message, second: Message, between: str = _BLANK_LINE) -> Message:
    one, other = first["content"], second["content"]
    if isinstance(one, list) or isinstance(other, list):
        content: Any = [*as_parts(one), *as_parts(other)]
    else:
        content = between.join(text for text in (one, other) if text)
    return {**second, **first, "content": content}


def as_parts(content: Any) -> list[Any]:
    """Return content in the form of parts."""
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


_CHANGES: Final = (
    thoughts_joined,
    later_systems_as_reminders,
    systems_first,
    neighbours_merged,
    thoughts_joined,
)
# Where later system messages are taken, something else was wrong; so they are touched last.
_CHANGES_OF_A_TAKER: Final = (
    thoughts_joined,
    neighbours_merged,
    later_systems_as_reminders,
    systems_first,
    neighbours_merged,
    thoughts_joined,
)
