"""Open turn: a turn of the assistant that may go on, put together item by item. Pure.

Items that the model said in one pass are one turn, whatever came of its calls meanwhile: their ids say so. Of other items
a turn is over when all that it calls was run on this side.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.request import ToolCall, Turn, TurnBlock

if TYPE_CHECKING:
    # Loaded with the first context in which a tool of ours was run.
    from smg_node.dialects.responses.request.served.past_calls import PastCall

_BLANK_LINE: Final = "\n\n"
_ORDER: Final = {"reasoning": 0, "text": 1, "call": 2}


@dataclass(slots=True)
class OpenTurn:
    """One turn so far. `said_in` is the tag of the pass of its last item, "" where that is not known."""

    said_in: str = ""
    joined: bool = False
    """Whether items of one pass were put together that would be several turns otherwise."""
    phase: str | None = None
    texts: list[str] = field(default_factory=list)
    _thoughts: list[str] = field(default_factory=list)
    _calls: list[ToolCall] = field(default_factory=list)
    blocks: list[TurnBlock] = field(default_factory=list)
    _results: dict[str, Turn] = field(default_factory=dict)
    """Results of those of its calls that were run on this side, by their ids."""
    _searches: dict[str, ToolCall] = field(default_factory=dict)
    """Searches whose output has not come, by the ids of their items."""

    def go_on(self, said_in: str, *, says: bool, beside: bool = False) -> bool:
        """Take an item's pass; false if the item begins another turn. `says`: it is a text or a thought.

        `beside`: it belongs to the item before it, though their ids do not say so.
        """
        over = self._answered or (says and bool(self.texts) and not self._calls)
        together = beside or (bool(said_in) and said_in == self.said_in)
        if over and not together:
            return False
        self.joined = self.joined or over
        self.said_in = said_in
        return True

    @property
    def _answered(self) -> bool:
        """Whether all that it calls was run on this side."""
        called = len(self._calls) - len(self._searches)
        return bool(self._results) and len(self._results) == called

    def say(self, text: str, opaque: tuple[Opaque, ...] = ()) -> None:
        """Take a text."""
        self.texts.append(text)
        self.blocks.append(TurnBlock("text", text, opaque=opaque))

    def think(self, thought: str, opaque: tuple[Opaque, ...] = ()) -> None:
        """Take a thought, "" for one that was not shown."""
        if thought and self.joined and self._thoughts:
            self._thoughts[-1] += _BLANK_LINE + thought
        elif thought:
            self._thoughts.append(thought)
        if thought or opaque:
            self.blocks.append(TurnBlock("reasoning", thought, opaque=opaque))

    def call(self, call: ToolCall) -> None:
        """Take a call."""
        self._calls.append(call)
        self.blocks.append(TurnBlock("call", call.arguments, call.name, call.call_id))

    def answer(self, past: "PastCall") -> None:
        """Take what came of a call."""
        call_id = past.call.call_id
        self._results[call_id] = Turn(
            "tool", past.result, answers_call=call_id, references=past.references
        )

    def search(self, item_id: str, call: ToolCall) -> None:
        """Take a search for tools, whose output is an item of its own."""
        self.call(call)
        self._searches[item_id] = call

    def searched(self, item_id: str) -> ToolCall | None:
        """Return the search of an output: that with the same digits, or the first without output; None for none."""
        digits = item_id.partition("_")[2]
        found = next((one for one in self._searches if one.partition("_")[2] == digits), None)
        found = next(iter(self._searches), None) if found is None else found
        return None if found is None else self._searches.pop(found)

    def turns(self) -> list[Turn]:
        """Return the finished turn and the results of its calls, in their order; nothing if it is empty.

        Searches that came to nothing are left out.
        """
        lost = {call.call_id for call in self._searches.values()}
        calls = tuple(call for call in self._calls if call.call_id not in lost)
        results = [self._results[one.call_id] for one in calls if one.call_id in self._results]
        if not self.texts and not calls:
            return results
        turn = Turn(
            "assistant",
            "\n".join(self.texts) if self.texts else None,
            reasoning="\n".join(self._thoughts) if self._thoughts else None,
            calls=calls,
            extra={} if self.phase is None else {"phase": self.phase},
            blocks=self._kept(lost),
        )
        return [turn, *results]

    def _kept(self, lost: set[str]) -> tuple[TurnBlock, ...]:
        """Return the blocks where a vendor wants something back with them, or where their order is not a template's."""
        blocks = [
            block for block in self.blocks if block.kind != "call" or block.call_id not in lost
        ]
        order = [_ORDER[block.kind] for block in blocks]
        mixed = self.joined and order != sorted(order)
        return tuple(blocks) if mixed or any(block.opaque for block in blocks) else ()
