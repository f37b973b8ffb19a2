"""Composer: what the stand-in's model says to a conversation, decided by words in it and nothing else.

Words of the user's last text:

    call NAME         calls that tool; a tool's name alone does so too
    call all          calls every tool
    KEY=VALUE         an argument of the calls, by name
    rounds=N          calls again after results, until there were N rounds
    words=N           answers with N words
    refuse            refuses, in the vendor's way
    filter            is stopped by the vendor's filter
    redact            thinks, and shows it as redacted
    mute              thinks and says nothing

Otherwise it tells facts of the request: how many turns, tools and images there are, and what was said.
"""

import re
from collections.abc import Mapping
from typing import Final

from smg_chaos.vendor.answers.answer import CallMade, Draft, Ending
from smg_chaos.vendor.answers.conversation import Conversation, Tool
from smg_chaos.vendor.answers.schema_values import value_of
from smg_chaos.vendor.answers.token_counts import pieces_of
from smg_chaos.vendor.wire.sse import encode

WORDS_MAX: Final = 100_000
_VALUE: Final = re.compile(r"([\w-]+)=([^\s,;]+)")
_WORD: Final = re.compile(r"[\w.-]+")
_THOUGHT_CHARACTERS: Final = 60


def compose(conversation: Conversation, script: tuple[str, ...]) -> Draft:
    """Return what is said; `script` is said where nothing else is asked for, unless it is empty."""
    words = frozenset(_WORD.findall(conversation.said))
    given = dict(_VALUE.findall(conversation.said))
    if "filter" in words:
        return _cut(conversation, _thought(conversation), ("I", " must"), (), "filter")
    if "refuse" in words:
        return Draft(text=pieces_of("I will not help with that."), ending="refusal")
    calls = _calls(conversation, words, given)
    text = () if calls and "say" not in words else _text(conversation, given, script)
    if "mute" in words:
        text = ()
    ending: Ending = "calls" if calls else "stop"
    draft = _cut(conversation, _thought(conversation), text, calls, ending)
    if "redact" in words:
        return Draft(draft.thought, draft.text, draft.calls, draft.ending, redacted=True)
    return draft


def _thought(conversation: Conversation) -> tuple[str, ...]:
    if not conversation.thinks:
        return ()
    about = conversation.results[0] if conversation.results else conversation.said
    return pieces_of(f"I think about: {about[:_THOUGHT_CHARACTERS]}".rstrip())


def _calls(
    conversation: Conversation, words: frozenset[str], given: Mapping[str, str]
) -> tuple[CallMade, ...]:
    tools = conversation.tools
    if not tools or conversation.choice == "none":
        return ()
    if conversation.rounds >= _count(given.get("rounds"), 1):
        return ()
    chosen = _chosen(conversation, words, tools)
    if not conversation.parallel:
        chosen = chosen[:1]
    calls = []
    for tool in chosen:
        made = value_of(tool.schema or {"type": "object"}, given)
        calls.append(CallMade(tool.name, made if isinstance(made, dict) else {}))
    return tuple(calls)


def _chosen(conversation: Conversation, words: frozenset[str], tools: list[Tool]) -> list[Tool]:
    if conversation.choice == "named":
        return [tool for tool in tools if tool.name == conversation.named]
    if "call" in words and "all" in words:
        return tools
    chosen = [tool for tool in tools if tool.name in words]
    if not chosen and (conversation.choice == "any" or "call" in words):
        return tools[:1]
    return chosen


def _text(
    conversation: Conversation, given: Mapping[str, str], script: tuple[str, ...]
) -> tuple[str, ...]:
    if conversation.schema is not None or conversation.wants_json:
        schema = conversation.schema or {"type": "object"}
        return pieces_of(encode(value_of(schema, given)).decode())
    if "words" in given:
        return ("so",) + (" on",) * (min(WORDS_MAX, _count(given["words"], 1)) - 1)
    if conversation.results:
        return pieces_of("The results are: " + "; ".join(conversation.results))
    return script or pieces_of(_facts(conversation))


def _facts(conversation: Conversation) -> str:
    facts = {
        "turns": conversation.turns,
        "system": len(conversation.system),
        "tools": len(conversation.tools),
        "images": conversation.images,
    }
    told = " ".join(f"{name}={value}" for name, value in facts.items() if value)
    return f"You said: {conversation.said} ({told})"


def _count(text: str | None, default: int) -> int:
    return max(1, int(text)) if text is not None and text.isdecimal() else default


def _cut(
    conversation: Conversation,
    thought: tuple[str, ...],
    text: tuple[str, ...],
    calls: tuple[CallMade, ...],
    ending: Ending,
) -> Draft:
    """Return what is said up to a stop string and to the length that was asked for; a call is whole or left out."""
    stop = ""
    if conversation.stops and text:
        text, stop = _stopped("".join(text), conversation.stops, text)
        if stop:
            calls, ending = (), "stop_sequence"
    left = conversation.answer_max
    if left is None or Draft(thought, text, calls).tokens <= left:
        return Draft(thought, text, calls, ending, stop=stop)
    thought = thought[:left]
    text = text[: left - len(thought)]
    left -= len(thought) + len(text)
    kept = []
    for call in calls:
        left -= len(call.slices)
        if left < 0:
            break
        kept.append(call)
    return Draft(thought, text, tuple(kept), "length")


def _stopped(whole: str, stops: list[str], pieces: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    found = [(whole.find(stop), stop) for stop in stops if stop and stop in whole]
    if not found:
        return pieces, ""
    at, stop = min(found)
    return pieces_of(whole[:at]), stop
