"""Assistant turn: what an assistant said in neighbouring messages, collected block by block."""

from dataclasses import dataclass, field
from typing import Final

from smg_node.core.generation.request import ToolCall, Turn, TurnBlock
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.messages.request.blocks import Piece, content_of, is_blank
from smg_node.dialects.messages.request.returned_state import Spoken, blocks_in_order
from smg_node.dialects.opaque_envelope import Envelope

_BLANK_LINE: Final = "\n\n"


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
    """The blocks of the calls, by their ids."""
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

    def state(self, one: TurnBlock | Envelope) -> None:
        """Take a thought as its issuer wants it back, or the state of another block; templates are told of neither."""
        self.spoken.append(one)
        self.stated = True

    def turn(self) -> Turn:
        """Return the turn."""
        content = content_of(self.texts)
        assert type(content) is str, "an assistant says nothing but texts"
        return Turn(
            "assistant",
            None if self.calls and is_blank(content) else content,
            reasoning=_BLANK_LINE.join(self.thoughts) if self.thoughts else None,
            calls=tuple(self.calls),
            blocks=blocks_in_order(self.spoken) if self.stated else (),
        )
