"""Conversation: turns as the messages of a Converse body. Pure.

Users and assistants take turns, so neighbours of one role are joined, and text that says nothing is left out. Results
of calls stand first in the message behind them; a call without one gets one that says so. What is no id or name there
is written anew. Thoughts go along only with what their issuer signed.

Where no tool may be called the API would still want tools for the calls of the history, and the model might call them.
So there earlier calls and their results are told as text.
"""

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from smg_node.core.errors import invalid, unsupported
from smg_node.core.generation.call_arguments import (
    UNREADABLE_KEY,
    read_arguments,
    without_halves,
)
from smg_node.core.generation.opaque import REDACTED, SIGNATURE
from smg_node.core.generation.request import (
    ChatPrompt,
    MediaPart,
    Part,
    TextPart,
    Turn,
    TurnBlock,
    blocks_of,
)
from smg_node.dialects.converse.media_blocks import media_block
from smg_node.dialects.converse.redacted_thoughts import write_redacted
from smg_node.dialects.converse.vendor_answer import ANTHROPIC

Block = dict[str, Any]
NO_RESULT: Final = "There is no result of this call: it was not executed, or its result was lost."
"""What the model is told of a call that nobody answered."""
NO_OUTPUT: Final = "(no output)"
"""What it is told of a result that says nothing: blank text is not taken."""
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z", re.ASCII)
_SYSTEMS: Final = ("system", "developer")
_RESULTS: Final = ("tool", "function")
_THOUGHT: Final = "reasoningContent"
_CALL_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}\Z", re.ASCII)
_NO_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)
_NAME_MAX: Final = 64
_DIGEST_BYTES: Final = 12


class Conversation(NamedTuple):
    """Blocks of the system prompt, and the messages."""

    system: list[Block]
    messages: list[Block]


class _Call(NamedTuple):
    """A call that waits for its result: the id there, the id here, its name."""

    theirs: str
    ours: str
    name: str


def conversation_of(
    prompt: ChatPrompt, issuer: str, *, calls_as_text: bool, systems_stay: bool
) -> Conversation:
    """Return the turns of a prompt; INVALID_REQUEST for those that no messages say.

    Without `systems_stay` later system turns are moved to the first ones.
    """
    writer = _Messages(issuer, calls_as_text=calls_as_text)
    started = False
    for turn in prompt.turns:
        started = started or turn.role not in _SYSTEMS
        if turn.role in _SYSTEMS:
            writer.add_system(turn, stays=systems_stay and started)
        elif turn.role == "assistant":
            writer.add_answer(turn)
        elif turn.role in _RESULTS:
            writer.add_result(turn)
        else:
            writer.add_words(turn)
    said = writer.finished()
    _check(said.messages, prompt, issuer)
    return said


class _Messages:
    """Messages so far, and what is said since the last one of the assistant."""

    def __init__(self, issuer: str, *, calls_as_text: bool) -> None:
        self._issuer = issuer
        self._calls_as_text = calls_as_text
        self._system: list[Block] = []
        self._messages: list[Block] = []
        self._heard: list[tuple[str, list[Block]]] = []
        """What users and the system say, by role."""
        self._waiting: list[_Call] = []
        self._results: dict[str, list[Block]] = {}
        """Results by the ids here."""
        self._ids: set[str] = set()
        self._documents = 0

    def add_system(self, turn: Turn, *, stays: bool) -> None:
        """Take what the system says."""
        blocks = self._said(turn.content)
        if any("text" not in block for block in blocks):
            raise unsupported("Bedrock takes only text from the system", _where(turn))
        if stays:
            self._heard.append(("system", blocks))
        else:
            self._system += blocks

    def add_words(self, turn: Turn) -> None:
        """Take what a user says."""
        self._heard.append(("user", self._said(turn.content)))

    def add_answer(self, turn: Turn) -> None:
        """Take what the assistant said and called."""
        spoken: list[Block] = []
        calls: list[_Call] = []
        blocks = blocks_of(turn)
        # A thought is signed together with the calls behind it.
        retold = self._calls_as_text and any(block.kind == "call" for block in blocks)
        for block in blocks:
            if block.kind == "text":
                spoken += _texts((block.text,))
            elif block.kind == "reasoning":
                spoken += [] if retold else _thoughts(block, self._issuer)
            else:
                call = _Call(block.call_id, self._fresh_id(block.call_id), called_name(block.name))
                calls.append(call)
                spoken.append(self._called(call, block.text))
        while spoken and _THOUGHT in spoken[-1]:
            spoken.pop()
        if spoken:
            self._close()
            self._append("assistant", spoken)
            self._waiting = calls

    def add_result(self, turn: Turn) -> None:
        """Take a result; one that no call waits for is something that the user says."""
        for call in self._waiting:
            asked = call.theirs == turn.answers_call or (
                not turn.answers_call and turn.name == call.name
            )
            if asked and call.ours not in self._results:
                failed = turn.extra.get("is_error") is True
                said = self._said(turn.content)
                self._results[call.ours] = self._result(call, said, failed=failed)
                return
        self.add_words(turn)

    def finished(self) -> Conversation:
        """Return all of it. A system prompt without anything else is what the user says."""
        self._close()
        if not self._messages and self._system:
            return Conversation([], [{"role": "user", "content": self._system}])
        return Conversation(self._system, self._messages)

    # ── Step by step ─────────────────────────────────────────────────────────

    def _close(self) -> None:
        """Append what was said since the assistant's last message."""
        waiting, results, heard = self._waiting, self._results, self._heard
        self._waiting, self._results, self._heard = [], {}, []
        for call in waiting:
            blocks = results.get(call.ours)
            if blocks is None:
                blocks = self._result(call, [{"text": NO_RESULT}], failed=True)
            self._append("user", blocks)
        for role, blocks in heard:
            self._append(role, blocks)

    def _append(self, role: str, blocks: list[Block]) -> None:
        if not blocks:
            return
        last = self._messages[-1] if self._messages else None
        if last is not None and last["role"] == role:
            last["content"] += blocks
        else:
            self._messages.append({"role": role, "content": blocks})

    def _called(self, call: _Call, arguments: str) -> Block:
        given = read_arguments(arguments)
        if self._calls_as_text:
            return {"text": f"[call of {call.name}: {without_halves(arguments) or '{}'}]"}
        if given is None:
            given = {UNREADABLE_KEY: without_halves(arguments)}
        return {"toolUse": {"toolUseId": call.ours, "name": call.name, "input": given}}

    def _result(self, call: _Call, said: list[Block], *, failed: bool) -> list[Block]:
        said = said or [{"text": NO_OUTPUT}]
        if self._calls_as_text:
            word = "error" if failed else "result"
            return [{"text": f"[{word} of {call.name}]"}, *said]
        result: Block = {"toolUseId": call.ours, "content": said}
        if failed:
            result["status"] = "error"
        return [{"toolResult": result}]

    def _fresh_id(self, call_id: str) -> str:
        """Return the id as it is, or one of its own where that is none here or stands for another call."""
        ours, number = call_id, 0
        while ours in self._ids or not _CALL_ID.match(ours):
            said = f"{call_id}:{number}".encode("utf-8", "replace")
            digest = blake2b(said, digest_size=_DIGEST_BYTES)
            ours, number = f"tooluse_{digest.hexdigest()}", number + 1
        self._ids.add(ours)
        return ours

    def _said(self, content: str | tuple[Part, ...] | None) -> list[Block]:
        """Return content as blocks, without what says nothing."""
        if content is None or isinstance(content, str):
            return _texts((content or "",))
        blocks: list[Block] = []
        for part in content:
            if isinstance(part, MediaPart):
                self._documents += part.kind == "file"
                blocks.append(media_block(part, self._documents))
            else:
                blocks += _texts((part.text,))
        return blocks


def called_name(name: str) -> str:
    """Return a name of a function as it may stand in a history."""
    return name if TOOL_NAME.match(name) else _NO_NAME.sub("_", name)[:_NAME_MAX] or "_"


def _texts(texts: Iterable[str]) -> list[Block]:
    return [{"text": text} for text in texts if text and not text.isspace()]


def _thoughts(block: TurnBlock, issuer: str) -> list[Block]:
    """Return a thought with each signature of this issuer, unchanged; nothing without any."""
    found: list[Block] = []
    for opaque in block.opaque:
        if opaque.issuer != issuer:
            continue
        if opaque.kind == SIGNATURE:
            shown = {"text": block.text, "signature": opaque.data}
            found.append({_THOUGHT: {"reasoningText": shown}})
        elif opaque.kind == REDACTED:
            found.append({_THOUGHT: {"redactedContent": write_redacted(opaque.data, issuer)}})
    return found


def _check(messages: Sequence[Block], prompt: ChatPrompt, issuer: str) -> None:
    """Refuse what the models do not take; trim what the answer goes on from."""
    if not messages:
        raise invalid("Bedrock is sent no empty conversation", prompt.where)
    if messages[0]["role"] != "user" and issuer != ANTHROPIC:
        raise unsupported(
            "for this model of Bedrock a conversation begins with a user's message", prompt.where
        )
    if messages[-1]["role"] != "assistant":
        return
    if not prompt.continue_final_message:
        raise unsupported(
            "at Bedrock an assistant's message at the end is what the answer goes on from; end with a user's",
            prompt.where,
        )
    last = messages[-1]["content"][-1]
    if "text" in last:
        last["text"] = last["text"].rstrip()


def _where(turn: Turn) -> str | None:
    parts = () if turn.content is None or isinstance(turn.content, str) else turn.content
    return next((part.where for part in parts if not isinstance(part, TextPart)), None)
