"""Turn blocks: thoughts, texts and calls of a model's turn in the order of its parts, with vendors' state on them. Pure."""

from typing import Literal

from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.request import ToolCall, TurnBlock


class TurnBlocks:
    """Blocks of one turn. `texts` are its texts, which its owner appends to: most turns are nothing else."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts
        self._told = 0
        """So many of them are in blocks."""
        self._thought: list[str] = []
        """A thought that is not in a block yet; what is in no block of the texts came after it."""
        self._found: list[TurnBlock] = []
        self._signed = False

    def think(self, text: str) -> None:
        """Take more of a thought."""
        if self._told < len(self._texts):
            self._flush()
        self._thought.append(text)

    def remember(self, thought: str) -> None:
        """Take a thought that led to what is in no block yet."""
        self._thought.append(thought)

    def call(self, call: ToolCall, opaque: tuple[Opaque, ...]) -> None:
        """Take a call."""
        self._flush()
        self._add(TurnBlock("call", call.arguments, call.name, call.call_id, opaque))

    def sign(self, kind: Literal["text", "reasoning"], opaque: tuple[Opaque, ...]) -> None:
        """Take opaque state of the thought or text that comes to its end."""
        if kind == "text":
            self._flush(opaque)
            return
        thought, self._thought = "".join(self._thought), []
        self._flush()
        self._add(TurnBlock("reasoning", thought, opaque=opaque))

    def all(self) -> tuple[TurnBlock, ...]:
        """Return all blocks; none where no opaque state makes them needed."""
        if not self._signed:
            return ()
        self._flush()
        return tuple(self._found)

    def _flush(self, opaque: tuple[Opaque, ...] = ()) -> None:
        """Put a thought and a text into blocks, where there are some; the opaque state is the text's."""
        thought, text = "".join(self._thought), "".join(self._texts[self._told :])
        self._thought, self._told = [], len(self._texts)
        if thought:
            self._add(TurnBlock("reasoning", thought))
        if text or opaque:
            self._add(TurnBlock("text", text, opaque=opaque))

    def _add(self, block: TurnBlock) -> None:
        self._found.append(block)
        self._signed = self._signed or block.opaque != ()
