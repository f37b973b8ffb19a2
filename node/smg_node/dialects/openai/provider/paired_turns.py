"""Paired turns: the turns of a prompt in the form that vendors insist on: every call has its result, right behind it. Pure.

    results                      behind the turn that called, in the order of the calls
    a call without a result      gets one that says so
    a result without a call      is what the user says
    an id that is none, too long, or that an earlier call has     is another, in the call and in its result

Vendors refuse a history that is otherwise; clients, and other vendors' answers, are less strict.
"""

from collections.abc import Iterator, Sequence

import msgspec

from smg_node.core.generation.request import (
    MediaPart,
    TextPart,
    ToolCall,
    Turn,
    TurnBlock,
    blocks_of,
)
from smg_node.dialects.answer_blocks import CALL_ID_MAX

NO_RESULT = "there is no result of this call"
_RESULTS = ("tool", "function")


def paired_turns(turns: Sequence[Turn]) -> Iterator[Turn]:
    """Yield the turns. Those with calls have blocks, whose calls are those of `Turn.calls`."""
    taken: set[str] = set()
    at = 0
    while at < len(turns):
        turn = turns[at]
        at += 1
        if turn.role in _RESULTS:
            yield _told(turn)
            continue
        if turn.role != "assistant" or not (turn.calls or turn.blocks):
            yield turn
            continue
        results = list[Turn]()
        while at < len(turns) and turns[at].role in _RESULTS:
            results.append(turns[at])
            at += 1
        yield from _answered(turn, results, taken)


def _answered(turn: Turn, results: list[Turn], taken: set[str]) -> Iterator[Turn]:
    """Yield a turn of the assistant and the results of its calls."""
    blocks, answers = list[TurnBlock](), list[Turn]()
    for block in blocks_of(turn):
        if block.kind != "call":
            blocks.append(block)
            continue
        call_id = _free(block.call_id, taken)
        taken.add(call_id)
        blocks.append(msgspec.structs.replace(block, call_id=call_id))
        answers.append(_result(block, call_id, results))
    calls = tuple(ToolCall(one.call_id, one.name, one.text) for one in blocks if one.kind == "call")
    yield msgspec.structs.replace(turn, blocks=tuple(blocks), calls=calls)
    yield from answers
    yield from map(_told, results)


def _result(call: TurnBlock, call_id: str, results: list[Turn]) -> Turn:
    """Return the result of a call, which is then none of the others' any more."""
    for at, one in enumerate(results):
        if one.answers_call == call.call_id or (not one.answers_call and one.name == call.name):
            found = results.pop(at)
            return msgspec.structs.replace(found, role="tool", name=None, answers_call=call_id)
    return Turn("tool", NO_RESULT, answers_call=call_id)


def _told(result: Turn) -> Turn:
    """Return a result that belongs to no call as the user's words."""
    content = result.content
    if content is None or content == "":
        content = "(a result without content)"
    return Turn("user", content)


def _free(call_id: str, taken: set[str]) -> str:
    if 0 < len(call_id) <= CALL_ID_MAX and call_id not in taken:
        return call_id
    number = len(taken)
    head = call_id[: CALL_ID_MAX - 16] or "call"
    while f"{head}_{number}" in taken:
        number += 1
    return f"{head}_{number}"


def text_in(content: str | tuple[TextPart | MediaPart, ...] | None) -> str:
    """Return the text of a content, parts joined."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.text for part in content if isinstance(part, TextPart))
