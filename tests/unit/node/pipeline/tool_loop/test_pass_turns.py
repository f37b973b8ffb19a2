"""Pass turns: what was said comes back as it was said, with what vendors want."""

from smg_node.core.generation.events import BlockEnd
from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.core.generation.request import ToolCall, Turn, TurnBlock, blocks_of
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import ListedTool, RunResult
from smg_node.pipeline.tool_loop.pass_turns import assistant_turn, result_turn, with_results

OWNER = ToolOwner("s", "f")


def end(block: int, kind: str, text: str, call_id: str = "", *opaque: Opaque) -> BlockEnd:
    name = "f" if kind == "call" else ""
    return BlockEnd(0, block, kind, text, name, call_id, opaque)  # type: ignore[arg-type]  # a test's own word


def test_a_thought_a_text_and_calls_need_no_blocks_of_their_own() -> None:
    blocks = [end(0, "reasoning", "hm"), end(1, "text", "so"), end(2, "call", "{}", "c1")]
    turn = assistant_turn(blocks, {"c1": OWNER})
    assert turn == Turn(
        "assistant", "so", reasoning="hm", calls=(ToolCall("c1", "f", "{}", OWNER),)
    )
    assert [block.kind for block in blocks_of(turn)] == ["reasoning", "text", "call"]


def test_another_order_is_kept() -> None:
    blocks = [end(0, "call", "{}", "c1"), end(1, "text", "so"), end(2, "call", "{}", "c2")]
    turn = assistant_turn(blocks, {})
    assert [block.kind for block in turn.blocks] == ["call", "text", "call"]
    assert (turn.content, len(turn.calls)) == ("so", 2)


def test_what_a_vendor_wants_back_is_kept() -> None:
    proof = Opaque("anthropic", SIGNATURE, "c2ln")
    turn = assistant_turn([end(0, "reasoning", "hm", "", proof), end(1, "call", "{}", "c1")], {})
    assert turn.blocks == (
        TurnBlock("reasoning", "hm", opaque=(proof,)),
        TurnBlock("call", "{}", "f", "c1"),
    )
    assert turn.content is None


def test_a_result_names_the_tools_that_were_found() -> None:
    turn = result_turn("c1", RunResult("two", found=(ListedTool("a"), ListedTool("b"))))
    assert turn == Turn("tool", "two", answers_call="c1", references=("a", "b"))


def test_results_stand_behind_the_turn_of_their_calls() -> None:
    first = Turn("assistant", None, calls=(ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}")))
    turns = (Turn("user", "x"), first, Turn("tool", "had", answers_call="b"))
    told = with_results(turns, {"a": RunResult("now")})
    assert [turn.answers_call for turn in told] == [None, None, "a", "b"]
    assert with_results(turns, {}) == turns
