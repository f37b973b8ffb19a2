"""Pass turns: what a model said in one pass, and what came of its calls, as turns of the next pass's prompt. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from smg_node.core.generation.events import BlockEnd
from smg_node.core.generation.request import MediaPart, Part, TextPart, ToolCall, Turn, TurnBlock
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import RunResult

TOOLS: Final = "tools"
"""The path of a picture that a tool answered: what asked for it stands there."""
_ORDER = {"reasoning": 0, "text": 1, "refusal": 1, "call": 2}
"""The order in which templates show what an assistant said."""


def assistant_turn(blocks: Sequence[BlockEnd], owners: Mapping[str, ToolOwner]) -> Turn:
    """Return what a pass said as an assistant's turn; `owners` are those of calls of ours, by id of the call.

    Several texts of a pass, and several thoughts, are put together as readers of histories do it. Blocks of their own are kept where a vendor wants something back with them, or where their order is another than
    that in which templates show them.
    """
    texts = [block.text for block in blocks if block.kind in ("text", "refusal")]
    thoughts = [block.text for block in blocks if block.kind == "reasoning"]
    calls = tuple(
        ToolCall(block.call_id, block.name, block.text, owners.get(block.call_id))
        for block in blocks
        if block.kind == "call"
    )
    order = [_ORDER[block.kind] for block in blocks]
    kept: tuple[TurnBlock, ...] = ()
    if any(block.opaque for block in blocks) or order != sorted(order):
        kept = tuple(map(_kept, blocks))
    return Turn(
        "assistant",
        "\n".join(texts) or None,
        reasoning="\n\n".join(thoughts) or None,
        calls=calls,
        blocks=kept,
    )


def result_turn(call_id: str, result: RunResult) -> Turn:
    """Return what came of a call as a turn."""
    references = tuple(tool.name for tool in result.found)
    content: str | tuple[Part, ...] = result.text
    if result.pictures:
        shown = [MediaPart("image", url, TOOLS) for url in result.pictures]
        content = (TextPart(result.text), *shown)
    return Turn("tool", content, answers_call=call_id, references=references)


def without_pictures(turns: Sequence[Turn], why: str) -> tuple[Turn, ...]:
    """Return a history whose results say in words why the pictures in them are not shown."""
    return tuple([_told(turn, why) for turn in turns])


def _told(turn: Turn, why: str) -> Turn:
    content = turn.content
    if type(content) is not tuple:
        return turn
    texts = [part for part in content if not (isinstance(part, MediaPart) and part.where == TOOLS)]
    dropped = len(content) - len(texts)
    if not dropped:
        return turn
    what = "the picture is" if dropped == 1 else f"the {dropped} pictures are"
    return msgspec.structs.replace(turn, content=(*texts, TextPart(f"[{what} not shown: {why}]")))


def with_results(turns: Sequence[Turn], results: Mapping[str, RunResult]) -> tuple[Turn, ...]:
    """Return a history in which calls that had no result have one, directly after the turn that made them."""
    told: list[Turn] = []
    for turn in turns:
        told.append(turn)
        told += [
            result_turn(call.call_id, results[call.call_id])
            for call in turn.calls
            if call.call_id in results
        ]
    return tuple(told)


def _kept(block: BlockEnd) -> TurnBlock:
    kind = "text" if block.kind == "refusal" else block.kind
    return TurnBlock(kind, block.text, block.name, block.call_id, block.opaque)
