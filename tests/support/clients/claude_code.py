"""Conversations of a coding client, as Claude Code 2.1.332 sends them, with fewer tools and shorter texts.

The client sends the whole conversation with each request, and never twice in quite the same form. What is
new has the mark of the cache, and as blocks what is a string the next time; results of parallel calls come in
the order in which they were ready; tools that were searched for are put in their alphabetical place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

BILLING: Final = "x-anthropic-billing-header: cc_version=2.1.332."
_MARK: Final = {"type": "ephemeral"}
_SCHEMA: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"what": {"type": "string"}},
    "additionalProperties": False,
}
TOOLS: Final = ("Bash", "Edit", "Read", "ToolSearch", "Write")
DEFERRED: Final = ("Monitor", "NotebookEdit", "WebFetch")


@dataclass(frozen=True)
class Answer:
    """What the assistant says: a thought, a text, calls of tools, or a search for some of them.

    `notes` are what the client adds as the system when the results are there.
    """

    text: str = ""
    thought: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """The name of each tool, and what it returns."""
    found: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """What the user says, and all that is answered until the next question."""

    text: str
    answers: tuple[Answer, ...]
    notes: tuple[str, ...] = ()


@dataclass
class Conversation:
    """A whole conversation; `requests` are those that are sent while it goes on."""

    questions: Sequence[Question]
    system: str = "You help with code."
    model: str = "claude-smg"
    session: str = "11111111-1111-4111-8111-111111111111"
    thinking: dict[str, Any] = field(
        default_factory=lambda: {"type": "adaptive", "display": "omitted"}
    )

    def requests(self, chance: Random) -> Iterator[dict[str, Any]]:
        """Yield the body of each request, in forms that `chance` decides."""
        messages: list[dict[str, Any]] = []
        found: list[str] = []
        count = 0
        for question in self.questions:
            messages.append(_message("user", [_text(question.text)]))
            messages += [_message("system", [_text(note)]) for note in question.notes]
            for answer in question.answers:
                yield self._body(messages, found, chance)
                said, results = _answered(answer, count)
                count += len(results)
                found += answer.found
                messages.append(said)
                if results:
                    messages.append(_message("user", results))
                    messages += [_message("system", [_text(note)]) for note in answer.notes]

    def _body(
        self, messages: Sequence[dict[str, Any]], found: Sequence[str], chance: Random
    ) -> dict[str, Any]:
        sent = [
            _sent(message, chance, new=at >= len(messages) - 1)
            for at, message in enumerate(messages)
        ]
        last = sent[-1]["content"][-1]
        sent[-1]["content"][-1] = {**last, "cache_control": _MARK}
        deferred = {*found, "DeferredToolPlaceholder"}
        return {
            "model": self.model,
            "max_tokens": 32_000,
            "stream": True,
            "system": [
                _text(f"{BILLING}{chance.randrange(4_096):03x};"),
                {**_text("You are an agent."), "cache_control": _MARK},
                {**_text(self.system), "cache_control": _MARK},
            ],
            "tools": [_tool(name, later=name in deferred) for name in sorted({*TOOLS, *deferred})],
            "messages": sent,
            "thinking": self.thinking,
            "output_config": {"effort": "high"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "metadata": {"user_id": f'{{"device_id":"d","session_id":"{self.session}"}}'},
        }


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _message(role: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": role, "content": content}


def _answered(answer: Answer, count: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the assistant's message, and the results of its calls."""
    said: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    if answer.thought:
        said.append({"type": "thinking", "thinking": answer.thought, "signature": "smg1.x"})
    if answer.text:
        said.append(_text(answer.text))
    for name, returned in answer.calls:
        said.append(_call(count + len(results), name))
        results.append({**_result(count + len(results)), "content": returned, "is_error": False})
    if answer.found:
        said.append(_call(count + len(results), "ToolSearch"))
        names = [{"type": "tool_reference", "tool_name": name} for name in answer.found]
        results.append({**_result(count + len(results)), "content": names})
    return _message("assistant", said), results


def _call(number: int, name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {"what": name}}


def _result(number: int) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}"}


def _sent(message: dict[str, Any], chance: Random, *, new: bool) -> dict[str, Any]:
    """Return a message in one of the forms that mean the same."""
    content = list(message["content"])
    if message["role"] == "user" and content[0]["type"] == "tool_result":
        chance.shuffle(content)
    elif not new and len(content) == 1 and content[0]["type"] == "text" and chance.random() < 0.5:
        return {"role": message["role"], "content": content[0]["text"]}
    return {"role": message["role"], "content": content}


def _tool(name: str, *, later: bool) -> dict[str, Any]:
    tool = {"name": name, "description": f"Does {name}.", "input_schema": _SCHEMA}
    return {**tool, "defer_loading": True} if later else tool
