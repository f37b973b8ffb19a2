"""State of real answers: what is kept of each goes back into the turn that a client made of its text and calls alone."""

from typing import Final, get_args

import pytest

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import BlockEnd
from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    Sampling,
    ToolCall,
    Turn,
    TurnBlock,
)
from smg_node.dialects.worker_errors import WorkerError
from smg_node.pipeline.relay.vendors.cached_state import (
    before_answer,
    cached_row,
    lacking,
    with_state,
)
from support.recordings.heard import heard
from support.recordings.recorded_answer import Api, RecordedAnswer, answers_of

APIS: Final[tuple[Api, ...]] = get_args(Api)
USER: Final = Turn("user", "What was asked?")
# So many answers have state and something that a client keeps: a call or a text.
LEAST: Final[dict[Api, int]] = {
    "chat": 2,
    "responses": 43,
    "messages": 67,
    "generate_content": 68,
    "converse": 8,
}


def blocks_of_answer(answer: RecordedAnswer) -> list[BlockEnd]:
    """Return the blocks of an answer; none of one that is an error."""
    collector = Collector(1)
    try:
        collector.feed(heard(answer, [answer.body]))
    except WorkerError:
        return []
    return collector.answer().choices[0].blocks


def as_told(block: BlockEnd) -> TurnBlock:
    """Return a block as a writer is given it."""
    kind = "text" if block.kind == "refusal" else block.kind
    return TurnBlock(kind, block.text, block.name, block.call_id, block.opaque)


def request(*turns: Turn) -> GenerateRequest:
    return GenerateRequest("m", (ChatPrompt(turns),), Sampling(), stream=False)


def dropped(blocks: list[BlockEnd]) -> Turn:
    """Return the turn that a client makes of an answer: its text and its calls."""
    calls = tuple(
        ToolCall(block.call_id, block.name, block.text) for block in blocks if block.kind == "call"
    )
    text = "".join(block.text for block in blocks if block.kind in ("text", "refusal"))
    return Turn("assistant", text, calls=calls)


@pytest.mark.parametrize("api", APIS)
def test_every_answer_with_state_is_whole_again(api: Api) -> None:
    kept, wrong = 0, list[str]()
    for answer in answers_of(api):
        blocks = blocks_of_answer(answer)
        turn = dropped(blocks)
        shown = (turn.calls and turn.calls[0].call_id) or str(turn.content).strip()
        if not (shown and any(block.opaque for block in blocks)):
            continue
        kept += 1
        ids = [call.call_id for call in turn.calls]
        row = cached_row(blocks, ids, before_answer(request(USER)))
        asked = request(USER, turn)
        found = with_state(asked, lacking(asked), {} if row is None else {row[0]: row[1]})
        prompt = found.prompts[0]
        assert isinstance(prompt, ChatPrompt)
        if prompt.turns[1].blocks != tuple(map(as_told, blocks)):
            wrong.append(answer.name)
    assert wrong == []
    assert kept >= LEAST[api]
