"""The grammar: every good stream passes, every broken one is caught where it breaks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.event_grammar import Grammar, GrammarError
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    PromptEcho,
    Usage,
)
from support.answers.grammatical_streams import streams

BEGIN = Begin("id", "m", 1, 3)
START = BlockStart(0, 0, "text")
DELTA = Delta(0, 0, "a")
CLOSE = BlockEnd(0, 0, "text", "a")
FINISH = Finish(0, "stop")
USAGE = Usage(1, 1, 0)
END = End()
FAIL = Fail(SmgError(ErrorKind.INTERNAL, "x"))
BLOCK: list[Event] = [START, DELTA, CLOSE]


@pytest.mark.parametrize(
    "events",
    [
        [BEGIN, *BLOCK, FINISH, USAGE, END],
        [BEGIN, FINISH, USAGE, END],
        [BEGIN, PromptEcho(0, "p", ()), *BLOCK, FINISH, USAGE, END],
        [
            BEGIN,
            START,
            BlockEnd(0, 0, "text", ""),
            BlockStart(0, 1, "call"),
            BlockEnd(0, 1, "call", ""),
            FINISH,
            USAGE,
            END,
        ],
        [FAIL],
        [BEGIN, FAIL],
        [BEGIN, *BLOCK, FAIL],
        [BEGIN, *BLOCK, FINISH, FAIL],
    ],
)
def test_a_good_stream_passes_and_is_over(events: list[Event]) -> None:
    grammar = Grammar(1)
    grammar.feed(events)
    assert grammar.over


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([START], "begins with Begin"),
        ([BEGIN, BEGIN], "begins once"),
        ([BEGIN, DELTA], "no such open block"),
        ([BEGIN, START, Delta(0, 1, "a")], "no such open block"),
        ([BEGIN, BlockStart(0, 1, "text")], "blocks count up"),
        ([BEGIN, *BLOCK, START], "blocks count up"),
        ([BEGIN, START, BlockStart(0, 1, "text")], "still open"),
        ([BEGIN, CLOSE], "no such open block"),
        ([BEGIN, START, BlockEnd(0, 0, "call", "")], "the kind changed"),
        ([BEGIN, START, DELTA, BlockEnd(0, 0, "text", "b")], "not its parts"),
        ([BEGIN, START, FINISH], "still open"),
        ([BEGIN, START, FAIL], "still open"),
        ([BEGIN, FINISH, FINISH], "finishes once"),
        ([BEGIN, FINISH, START], "has finished"),
        ([BEGIN, *BLOCK, PromptEcho(0, "p", ())], "an echo comes first"),
        ([BEGIN, USAGE], "has not finished"),
        ([BEGIN, FINISH, END], "Usage comes before End"),
        ([BEGIN, FINISH, USAGE, USAGE], "only End follows"),
        ([BEGIN, FINISH, USAGE, END, END], "nothing may follow"),
        ([FAIL, FAIL], "nothing may follow"),
    ],
)
def test_a_broken_stream_is_caught(events: list[Event], why: str) -> None:
    grammar = Grammar(1)
    grammar.feed(events[:-1])
    with pytest.raises(GrammarError, match=why):
        grammar.feed(events[-1:])


def test_every_choice_must_finish() -> None:
    grammar = Grammar(2)
    grammar.feed([BEGIN, FINISH])
    assert not grammar.over
    with pytest.raises(GrammarError, match="has not finished"):
        grammar.feed([USAGE])


@given(st.integers(1, 3), st.data())
@settings(max_examples=60)
def test_the_streams_of_our_tests_are_grammatical(choices: int, data: st.DataObject) -> None:
    events = data.draw(
        streams(choices=choices, echo=data.draw(st.booleans()), failing=data.draw(st.booleans()))
    )
    grammar = Grammar(choices)
    grammar.feed(events)
    assert grammar.over
