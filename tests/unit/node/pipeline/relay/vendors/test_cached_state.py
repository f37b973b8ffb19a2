"""State of an answer finds its way back into a turn that a client wrote anew, and into no other one."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.events import BlockEnd
from smg_node.core.generation.opaque import ENCRYPTED, SIGNATURE, Opaque
from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    Sampling,
    TextPart,
    ToolCall,
    Turn,
    TurnBlock,
    blocks_of,
)
from smg_node.pipeline.relay.vendors.cached_state import (
    ROW_MAX_BYTES,
    TURNS_MAX,
    before_answer,
    cached_row,
    call_key,
    lacking,
    text_key,
    with_state,
)

PROOF = Opaque("google", SIGNATURE, "c2lnbmVk")
THOUGHT = Opaque("openai", ENCRYPTED, "ZW5j", "rs_1")
LONG_ID = "call_0123456789abcdef"
USER = Turn("user", "What is the weather?")


def end(kind: Any, text: str, *opaque: Opaque, call_id: str = "", name: str = "") -> BlockEnd:
    return BlockEnd(0, 0, kind, text, name, call_id, opaque)


def call(text: str = '{"city": "Paris"}', *opaque: Opaque, call_id: str = LONG_ID) -> BlockEnd:
    return end("call", text, *opaque, call_id=call_id, name="weather")


def request(*turns: Turn) -> GenerateRequest:
    return GenerateRequest("m", (ChatPrompt(turns),), Sampling(), stream=False)


def turn(text: str | None, *calls: ToolCall) -> Turn:
    return Turn("assistant", text, calls=calls)


def wanted(text: str = '{"city": "Paris"}', call_id: str = LONG_ID) -> ToolCall:
    return ToolCall(call_id, "weather", text)


def returned(
    blocks: Sequence[BlockEnd], answer: Turn, *, before: Turn = USER, then: Turn | None = None
) -> tuple[TurnBlock, ...]:
    """Return the blocks of `answer` after a request in which `then`, or the same, stands before it."""
    asked = request(before)
    ids = [block.call_id for block in blocks if block.kind == "call"]
    row = cached_row(blocks, ids, before_answer(asked))
    later = request(then or before, answer)
    found = with_state(later, lacking(later), {} if row is None else dict([row]))
    prompt = found.prompts[0]
    assert isinstance(prompt, ChatPrompt)
    return prompt.turns[1].blocks


def test_a_thought_and_a_signed_call_come_back_in_their_order() -> None:
    answer = [
        end("reasoning", "hm", THOUGHT),
        end("text", "I look."),
        call('{"city":"Paris"}', PROOF),
    ]
    assert returned(answer, turn("I look.", wanted())) == (
        TurnBlock("reasoning", "hm", opaque=(THOUGHT,)),
        TurnBlock("text", "I look."),
        TurnBlock("call", '{"city": "Paris"}', "weather", LONG_ID, (PROOF,)),
    )


def test_texts_between_thoughts_keep_their_places() -> None:
    answer = [
        end("reasoning", "one", THOUGHT),
        end("text", "A"),
        end("reasoning", "two", THOUGHT),
        end("text", "BC", PROOF),
        call(),
    ]
    found = returned(answer, turn("ABC", wanted()))
    assert [(block.kind, block.text) for block in found] == [
        ("reasoning", "one"),
        ("text", "A"),
        ("reasoning", "two"),
        ("text", "BC"),
        ("call", '{"city": "Paris"}'),
    ]
    assert found[3].opaque == (PROOF,)


def test_a_text_that_was_changed_is_told_once_and_without_its_state() -> None:
    answer = [end("reasoning", "hm", THOUGHT), end("text", "A", PROOF), end("text", "B"), call()]
    found = returned(answer, turn("something else", wanted()))
    assert [(block.kind, block.text, block.opaque) for block in found] == [
        ("reasoning", "hm", (THOUGHT,)),
        ("text", "something else", ()),
        ("call", '{"city": "Paris"}', ()),
    ]


def test_a_text_that_was_dropped_is_no_block() -> None:
    answer = [end("reasoning", "hm", THOUGHT), end("text", "I look."), call()]
    assert [block.kind for block in returned(answer, turn(None, wanted()))] == ["reasoning", "call"]


def test_a_text_of_parts_is_a_text() -> None:
    answer = [end("reasoning", "", THOUGHT), end("text", "Hello")]
    parts = (TextPart("Hel"), TextPart("lo"))
    found = returned(answer, Turn("assistant", parts))
    assert found == (TurnBlock("reasoning", "", opaque=(THOUGHT,)), TurnBlock("text", "Hello"))


@pytest.mark.parametrize(
    "calls",
    [
        (),
        (wanted('{"city": "Rome"}'),),
        (wanted(call_id="call_0123456789abcdee"),),
        (wanted(), wanted(call_id="call_another_0123456789")),
    ],
)
def test_a_turn_with_other_calls_gets_nothing(calls: tuple[ToolCall, ...]) -> None:
    answer = [end("reasoning", "hm", THOUGHT), call()]
    assert returned(answer, turn("I look.", *calls)) == ()


def test_an_id_that_counts_is_known_by_what_was_said_before() -> None:
    answer = [end("reasoning", "hm", THOUGHT), call(call_id="call_0")]
    again = turn(None, wanted(call_id="call_0"))
    assert returned(answer, again) != ()
    assert returned(answer, again, then=Turn("user", "Another question")) == ()
    whole = [end("reasoning", "hm", THOUGHT), call()]
    assert returned(whole, turn(None, wanted()), then=Turn("user", "Another question")) != ()


def test_a_short_text_is_known_by_what_was_said_before() -> None:
    answer = [end("reasoning", "hm", THOUGHT), end("text", "Yes.")]
    assert returned(answer, turn(" Yes. "))[0].opaque == (THOUGHT,)
    assert returned(answer, turn("Yes."), then=Turn("user", "Another question")) == ()
    result = Turn("tool", "sunny", answers_call="a")
    other = Turn("tool", "sunny", answers_call="b")
    assert returned(answer, turn("Yes."), before=result) != ()
    assert returned(answer, turn("Yes."), before=result, then=other) == ()


def test_what_came_back_by_itself_is_not_looked_up() -> None:
    own = Turn("assistant", "A", blocks=(TurnBlock("text", "A", opaque=(PROOF,)),))
    bare = Turn("assistant", "A", blocks=(TurnBlock("text", "A"),))
    assert lacking(request(USER, own)) == {}
    assert list(lacking(request(USER, bare, USER, turn(None, wanted()), USER))) == [3, 1]
    assert lacking(request(USER, turn(""), USER)) == {}
    assert lacking(request(turn("A"))) == {}


def test_so_many_turns_are_looked_up_and_no_more() -> None:
    long = request(*[one for n in range(TURNS_MAX + 9) for one in (USER, turn(f"{n}"))])
    found = lacking(long)
    assert len(found) == TURNS_MAX
    assert max(found) == 2 * (TURNS_MAX + 9) - 1


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [end("text", "A")],
        [end("reasoning", "hm"), call()],
        [end("reasoning", "", THOUGHT)],
        [end("reasoning", "", THOUGHT), call(call_id="")],
        [end("reasoning", "x" * ROW_MAX_BYTES, THOUGHT), call()],
        [end("reasoning", "half \ud800", THOUGHT), call()],
    ],
)
def test_without_state_or_with_too_much_nothing_is_kept(blocks: list[BlockEnd]) -> None:
    ids = [block.call_id for block in blocks if block.kind == "call"]
    assert cached_row(blocks, ids, "") is None


def test_large_arguments_and_texts_are_not_in_a_row() -> None:
    large = json.dumps({"content": "x" * 2 * ROW_MAX_BYTES})
    answer = [end("reasoning", "hm", THOUGHT), end("text", "y" * ROW_MAX_BYTES), call(large)]
    row = cached_row(answer, [LONG_ID], "")
    assert row is not None
    assert len(row[1]) < 200


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":[true,null]}', '{ "b": [true, null], "a": 1.0 }'),
        ('{"a":"\\u00e9"}', '{"a":"é"}'),
        ("{}", " {} "),
    ],
)
def test_arguments_are_the_same_however_they_are_written(one: str, other: str) -> None:
    assert call_key(LONG_ID, one, "") == call_key(LONG_ID, other, "")


@pytest.mark.parametrize("other", ['{"a":2}', '{"a":"1"}', "", "{", '{"a":1}}', '{"a":true}'])
def test_other_arguments_are_another_answer(other: str) -> None:
    assert call_key(LONG_ID, '{"a":1}', "") != call_key(LONG_ID, other, "")


def test_a_call_is_no_text() -> None:
    assert call_key("a", "{}", "") != text_key("a", "{}")


@given(row=st.binary(max_size=200))
def test_garbage_in_the_cache_is_left_out(row: bytes) -> None:
    asked = request(USER, turn("A", wanted()))
    keys = lacking(asked)
    found = with_state(asked, keys, dict.fromkeys(keys.values(), row))
    prompt = found.prompts[0]
    assert isinstance(prompt, ChatPrompt)
    assert all(len(block.text) < 100 for block in blocks_of(prompt.turns[1]))


_OPAQUES = st.lists(st.sampled_from([PROOF, THOUGHT]), max_size=2).map(tuple)
_SAID = st.tuples(st.sampled_from(["text", "reasoning", "call"]), st.text(max_size=8), _OPAQUES)


@given(said=st.lists(_SAID, max_size=6))
def test_whatever_was_answered_comes_back_as_it_was(
    said: list[tuple[Any, str, tuple[Opaque, ...]]],
) -> None:
    blocks, calls = list[BlockEnd](), list[ToolCall]()
    for number, (kind, text, opaque) in enumerate(said):
        if kind == "call":
            arguments = msgspec.json.encode({"text": text}).decode()
            calls.append(ToolCall(f"{LONG_ID}{number}", "f", arguments))
            blocks.append(end(kind, arguments, *opaque, call_id=calls[-1].call_id, name="f"))
        else:
            blocks.append(end(kind, text, *opaque))
    text = "".join(block.text for block in blocks if block.kind == "text")
    row = cached_row(blocks, [one.call_id for one in calls], before_answer(request(USER)))
    found = returned(blocks, turn(text, *calls))
    if row is None:
        assert found == ()
        return
    told = [block for block in blocks if block.kind != "text" or block.text or block.opaque]
    assert [(block.kind, block.text, block.opaque) for block in found] == [
        (block.kind, block.text, block.opaque) for block in told
    ]
