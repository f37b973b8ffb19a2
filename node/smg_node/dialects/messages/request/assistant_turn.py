"""Assistant turn: what an assistant said in neighbouring messages, collected block by block.

Where it called tools of this node's side, their results stand in the same message, and what it said then behind them:
that is another turn.
"""

from dataclasses import dataclass, field
from typing import Final

import msgspec

from smg_node.core.generation.request import ToolCall, Turn, TurnBlock
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.messages.cache_control import check_cache_control
from smg_node.dialects.messages.errors import spelled
from smg_node.dialects.messages.request.blocks import (
    Piece,
    content_of,
    is_blank,
    read_text,
    strange,
)
from smg_node.dialects.messages.request.messages_draft import MessagesDraft
from smg_node.dialects.messages.request.returned_state import (
    Spoken,
    blocks_in_order,
    redacted_thought,
    state_in,
)
from smg_node.dialects.opaque_envelope import Envelope

_BLANK_LINE: Final = "\n\n"
_ID_MAX: Final = 256
_NAME_MAX: Final = 128
_SAID: Final = ("text", "thinking", "redacted_thinking", "tool_use")
_DROPPED: Final = ("fallback",)
_LEFT_OUT: Final = "thinking_dropped"
_UNREADABLE: Final = "model_binding_mismatch"
"""Another vendor's model thought it, or another one of ours, or for another tenant: one seal knows no more."""
_encode: Final = msgspec.json.Encoder().encode


@dataclass(slots=True)
class AssistantTurn:
    """One turn so far."""

    texts: list[Piece] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    spoken: list[Spoken] = field(default_factory=list)
    """All of it in its order."""
    stated: bool = False
    """Whether there is opaque state in it."""
    blocks: dict[str, Cursor] = field(default_factory=dict)
    """The blocks of the calls that the client answers, by their ids."""
    run_blocks: dict[str, Cursor] = field(default_factory=dict)
    """Those of the calls of tools on this node's side."""
    results: dict[str, Turn] = field(default_factory=dict)
    """Results of those, as far as they stand in the same message."""
    resumed: bool = False
    """Whether it follows the results of an earlier part of the message, or brings those of an earlier message."""
    forgot: bool = False
    """Whether a thought was left out."""
    last: Cursor | None = None
    """The last message."""

    def say(self, text: str) -> None:
        """Take a text."""
        self.texts.append(text)
        self.spoken.append(text)

    def think(self, thought: str) -> None:
        """Take a thought without opaque state."""
        self.thoughts.append(thought)
        self.spoken.append(TurnBlock("reasoning", thought))

    def call(self, call: ToolCall, block: Cursor) -> None:
        """Take a call."""
        self.calls.append(call)
        self.spoken.append(call)
        self.blocks[call.call_id] = block

    def run(self, call: ToolCall, block: Cursor) -> None:
        """Take a call of a tool on this node's side."""
        self.calls.append(call)
        self.spoken.append(call)
        self.run_blocks[call.call_id] = block

    def state(self, one: TurnBlock | Envelope) -> None:
        """Take a thought as its issuer wants it back, or the state of another block; templates are told of neither."""
        self.spoken.append(one)
        self.stated = True

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was said behind results."""
        return self.resumed and not self.spoken

    def turns(self) -> list[Turn]:
        """Return the turn, and behind it the results that stand in the same message.

        Calls of tools on this node's side come first, so that results are in the order of their calls.
        """
        content = content_of(self.texts)
        assert type(content) is str, "an assistant says nothing but texts"
        calls = self.calls
        if self.run_blocks and self.blocks:
            calls = sorted(calls, key=_is_answered_by_client)
        turn = Turn(
            "assistant",
            None if calls and is_blank(content) else content,
            reasoning=_BLANK_LINE.join(self.thoughts) if self.thoughts else None,
            calls=tuple(calls),
            blocks=blocks_in_order(self.spoken) if self.stated else (),
        )
        results = self.results
        return [turn, *(results[call.call_id] for call in calls if call.call_id in results)]


def _is_answered_by_client(call: ToolCall) -> bool:
    return call.owner is None


class AssistantBlocks:
    """Reads blocks of assistants' messages that stand for themselves: texts, thoughts and calls of the client's tools."""

    def __init__(self, draft: MessagesDraft) -> None:
        self._draft = draft
        # Templates get the thoughts of the last turn only; their issuer wants all of them, unless an edit says otherwise.
        self._keeps_state = draft.edits is None or not draft.edits.thinking_asked

    def take(self, said: AssistantTurn, block: Cursor, kind: str | None, *, remembers: bool) -> int:
        """Take a block of this type, and return how many characters were opened or encoded."""
        if kind == "text":
            text = read_text(block)
            if text is not None:
                said.say(text)
        elif kind == "thinking":
            return self._think(said, block, remembers=remembers)
        elif kind == "tool_use":
            return _call(said, block)
        elif kind == "redacted_thinking":
            self._take_redacted(said, block, remembers=remembers)
        elif kind is not None and kind not in _DROPPED:
            strange(block, kind, _SAID)
        return 0

    def _think(self, said: AssistantTurn, block: Cursor, *, remembers: bool) -> int:
        block.only(("type", "thinking", "signature"))
        text = block.text("thinking")
        signature = block.text("signature")
        draft = self._draft
        state = state_in(signature) if signature else None
        if state is not None:
            if state.place:
                said.state(state)
                return 0
            if remembers or self._keeps_state:
                thought = state.thought or text or ""
                said.state(TurnBlock("reasoning", thought, opaque=state.opaque))
            text = text or state.thought
        if not remembers:
            said.forgot = True
            draft.forgotten_characters += len(text or "")
            return 0
        if not text and signature:
            text = draft.seals.opened(signature, tenant=draft.caller.tenant, model=draft.model)
        if not text:
            if signature:
                self._drop(block)
            return 0
        if state is None:
            said.think(text)
        else:
            said.thoughts.append(text)
        return len(text)

    def _take_redacted(self, said: AssistantTurn, block: Cursor, *, remembers: bool) -> None:
        data = block.values.get("data")
        if type(data) is str and data and (remembers or self._keeps_state):
            said.state(redacted_thought(data))
        if remembers:
            self._drop(block)

    def _drop(self, block: Cursor) -> None:
        """Leave out a thought that cannot be read, and tell of it where that was asked for."""
        dropped = self._draft.dropped
        if dropped is not None:
            dropped.append(
                {"type": _LEFT_OUT, "path": spelled(block.path()), "reason": _UNREADABLE}
            )


def _call(said: AssistantTurn, block: Cursor) -> int:
    block.only(("type", "id", "name", "input", "cache_control", "caller", "toolset_name"))
    check_cache_control(block)
    call_id = block.text("id", required=True, characters_min=1, characters_max=_ID_MAX)
    name = block.text("name", required=True, characters_min=1, characters_max=_NAME_MAX)
    given = block.object("input", required=True)
    if call_id is None or name is None or given is None:
        return 0
    if call_id in said.blocks or call_id in said.run_blocks:
        block.problem("id", f"two calls have the id {quoted(call_id)}")
        return 0
    arguments = _encode(given.values).decode()
    said.call(ToolCall(call_id, name, arguments), block)
    return len(arguments)
