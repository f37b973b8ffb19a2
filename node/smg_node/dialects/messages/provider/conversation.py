"""Conversation: turns as the messages of a vendor's Messages API. Pure.

Users and assistants take turns, so neighbours of one role are joined, and text that says nothing is left out. Results
of tools come first in the message behind their calls, in the order of these; a call without one gets one that says so.
A call's id is written anew where the API would not take it, or had it before. Thoughts go along only with what their
issuer signed.
"""

import re
from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from smg_node.core.errors import unsupported
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
from smg_node.dialects.messages.provider.media_blocks import media_block

Block = dict[str, Any]
NO_RESULT: Final = "There is no result of this call: it was not executed, or its result was lost."
"""What the model is told of a call that nobody answered."""
_SYSTEMS: Final = ("system", "developer")
_THOUGHTS: Final = ("thinking", "redacted_thinking")
_CALL_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z", re.ASCII)
_DIGEST_BYTES: Final = 12


class Conversation(NamedTuple):
    """Blocks of the system prompt, and the messages."""

    system: list[Block]
    messages: list[Block]


def conversation_of(
    prompt: ChatPrompt, issuer: str, *, systems_stay: bool, references: Collection[str] = ()
) -> Conversation:
    """Return the turns of a prompt; INVALID_REQUEST for media that no message carries.

    Without `systems_stay` later system turns are moved to the first ones. A system prompt without anything else is
    what the user says. Results that tell of nothing but tools of these `references` are told by their names.
    """
    turns = prompt.turns
    first = next((at for at, turn in enumerate(turns) if turn.role not in _SYSTEMS), len(turns))
    system = [block for turn in turns[:first] for block in _instructed(turn)]
    writer = _Messages(issuer, system, references, systems_stay=systems_stay)
    for turn in turns[first:]:
        writer.add(turn)
    messages = writer.finished()
    if not messages:
        return Conversation([], [{"role": "user", "content": system}] if system else [])
    if prompt.continue_final_message:
        _trim(messages)
    return Conversation(system, messages)


class _Messages:
    """Messages so far, and what is said since the last one of the assistant."""

    def __init__(
        self, issuer: str, system: list[Block], references: Collection[str], *, systems_stay: bool
    ) -> None:
        self._issuer = issuer
        self._references = references
        self._system = system
        self._stay = systems_stay
        self._messages: list[Block] = []
        self._heard: list[tuple[str, list[Block]]] = []
        """What users and the system say, by role."""
        self._waiting: list[tuple[str, str, str]] = []
        """Calls of the last assistant's turn: the id there, the id here, the name."""
        self._results: dict[str, Block] = {}
        """Results by the ids here."""
        self._ids: set[str] = set()

    def add(self, turn: Turn) -> None:
        """Take the next turn."""
        if turn.role == "assistant":
            blocks = self._spoken(blocks_of(turn))
            if blocks:
                self._close()
                self._append("assistant", blocks)
                self._wait(blocks, turn)
        elif turn.role in _SYSTEMS:
            self._hear_system(turn)
        elif turn.role in ("tool", "function"):
            self._answer(turn)
        else:
            self._heard.append(("user", _said(turn.content)))

    def finished(self) -> list[Block]:
        """Return all messages."""
        self._close()
        return self._messages

    # ── Users ────────────────────────────────────────────────────────────────

    def _hear_system(self, turn: Turn) -> None:
        blocks = _instructed(turn)
        if self._stay:
            self._heard.append(("system", blocks))
        else:
            self._system += blocks

    def _answer(self, turn: Turn) -> None:
        """Take a result; one that no call waits for is something that the user says."""
        for call_id, ours, name in self._waiting:
            asked = call_id == turn.answers_call or (not turn.answers_call and name == turn.name)
            if asked and ours not in self._results:
                self._results[ours] = _result(turn, ours, self._references)
                return
        self._heard.append(("user", _said(turn.content)))

    def _close(self) -> None:
        """Append what was said since the assistant's last message."""
        results = [self._results.get(ours) or _no_result(ours) for _, ours, _ in self._waiting]
        heard, self._heard = self._heard, []
        self._waiting, self._results = [], {}
        if results:
            self._append("user", results)
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

    # ── Assistants ───────────────────────────────────────────────────────────

    def _spoken(self, blocks: Iterable[TurnBlock]) -> list[Block]:
        """Return the blocks of an assistant's turn; thoughts at its end would not be taken."""
        spoken: list[Block] = []
        for block in blocks:
            if block.kind == "text":
                spoken += _texts((block.text,))
            elif block.kind == "reasoning":
                spoken += _thoughts(block, self._issuer)
            else:
                spoken.append(_call(block, self._fresh_id(block.call_id)))
        while spoken and spoken[-1]["type"] in _THOUGHTS:
            spoken.pop()
        return spoken

    def _fresh_id(self, call_id: str) -> str:
        """Return the id as it is, or one of its own where that is none here or stands for another call."""
        ours, number = call_id, 0
        while ours in self._ids or not _CALL_ID.match(ours):
            digest = blake2b(
                f"{call_id}:{number}".encode("utf-8", "replace"), digest_size=_DIGEST_BYTES
            )
            ours, number = f"toolu_{digest.hexdigest()}", number + 1
        self._ids.add(ours)
        return ours

    def _wait(self, blocks: list[Block], turn: Turn) -> None:
        calls = [block for block in blocks if block["type"] == "tool_use"]
        theirs = [block.call_id for block in blocks_of(turn) if block.kind == "call"]
        self._waiting = [
            (call_id, call["id"], call["name"]) for call_id, call in zip(theirs, calls, strict=True)
        ]


def _thoughts(block: TurnBlock, issuer: str) -> list[Block]:
    """Return a thought with each signature of this issuer, unchanged; nothing without any."""
    found: list[Block] = []
    for opaque in block.opaque:
        if opaque.issuer != issuer:
            continue
        if opaque.kind == SIGNATURE:
            found.append({"type": "thinking", "thinking": block.text, "signature": opaque.data})
        elif opaque.kind == REDACTED:
            found.append({"type": "redacted_thinking", "data": opaque.data})
    return found


def _call(block: TurnBlock, call_id: str) -> Block:
    given = read_arguments(block.text)
    if given is None:
        given = {UNREADABLE_KEY: without_halves(block.text)}
    return {"type": "tool_use", "id": call_id, "name": block.name, "input": given}


# ── Contents ─────────────────────────────────────────────────────────────────


def _said(content: str | tuple[Part, ...] | None) -> list[Block]:
    """Return content as blocks, without what says nothing."""
    if content is None:
        return []
    if isinstance(content, str):
        return _texts((content,))
    blocks: list[Block] = []
    for part in content:
        if isinstance(part, MediaPart):
            blocks.append(media_block(part))
        else:
            assert isinstance(part, TextPart), "a part is a text or a medium"
            blocks += _texts((part.text,))
    return blocks


def _instructed(turn: Turn) -> list[Block]:
    """Return what a system turn says, which is text only."""
    for part in turn.content or ():
        if isinstance(part, MediaPart):
            why = "the vendor of this model takes no media in system messages"
            raise unsupported(why, part.where)
    return _said(turn.content)


def _texts(texts: Iterable[str]) -> list[Block]:
    return [{"type": "text", "text": text} for text in texts if text and not text.isspace()]


def _result(turn: Turn, call_id: str, references: Collection[str]) -> Block:
    result: Block = {"type": "tool_result", "tool_use_id": call_id}
    named = [name for name in turn.references if name in references]
    # What stands for the definitions of all tools that it tells of is no text; a reference to any other is refused.
    blocks = [] if named and len(named) == len(turn.references) else _said(turn.content)
    blocks += [{"type": "tool_reference", "tool_name": name} for name in named]
    if blocks:
        result["content"] = blocks
    if turn.extra.get("is_error") is True:
        result["is_error"] = True
    return result


def _no_result(call_id: str) -> Block:
    result: Block = {"type": "tool_result", "tool_use_id": call_id, "is_error": True}
    return {**result, "content": NO_RESULT}


def _trim(messages: list[Block]) -> None:
    """Leave out white space at the end of what the answer goes on from: it is not taken there."""
    last = messages[-1]["content"][-1]
    if messages[-1]["role"] == "assistant" and last["type"] == "text":
        last["text"] = last["text"].rstrip()
