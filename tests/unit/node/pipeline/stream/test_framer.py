"""Every block that starts is ended, and nothing the pieces said is lost."""

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    Usage,
)
from smg_node.core.generation.pieces import Arguments, Call, Piece, Reasoning, Text
from smg_node.pipeline.stream.framer import Framer

words = st.text(min_size=1, max_size=4)


def call(name: str, parts: list[str]) -> list[Piece]:
    return [Call(name, "id"), *map(Arguments, parts)]


def text(word: str) -> list[Piece]:
    return [Text(word)]


def thought(word: str) -> list[Piece]:
    return [Reasoning(word)]


calls = st.builds(call, words, st.lists(words, max_size=3))
runs = st.one_of(st.builds(text, words), st.builds(thought, words), calls)
scripts: st.SearchStrategy[list[list[Piece]]] = st.lists(runs, max_size=8)
BEGIN = Begin("gen-1", "m", 0, 1)


@given(script=scripts, broken=st.booleans())
def test_any_pieces_give_a_grammatical_stream(script: list[list[Piece]], broken: bool) -> None:
    out: list[Event] = [BEGIN]
    framer = Framer(0)
    for pieces in script:
        framer.pieces(out, pieces, 1, (7,))
    if broken:
        framer.abandon(out)
        out.append(Fail(SmgError(ErrorKind.INTERNAL, "broken")))
    else:
        framer.finish(out, "stop", None)
        out += [Usage(1, 1, 0), End()]
    grammar = Grammar(1)
    grammar.feed(out)
    assert grammar.over


@given(script=scripts)
def test_blocks_hold_all_that_was_said_by_kind(script: list[list[Piece]]) -> None:
    out: list[Event] = []
    framer = Framer(0)
    for pieces in script:
        framer.pieces(out, pieces, 1, ())
    framer.finish(out, "stop", None)
    flat = [piece for pieces in script for piece in pieces]
    for kind, spoken in (("text", Text), ("reasoning", Reasoning), ("call", Arguments)):
        said = "".join(piece.text for piece in flat if isinstance(piece, spoken))
        ends = [event for event in out if isinstance(event, BlockEnd) and event.kind == kind]
        assert "".join(end.text for end in ends) == said


@given(script=scripts)
def test_tokens_are_told_once(script: list[list[Piece]]) -> None:
    out: list[Event] = []
    framer = Framer(0)
    kept = 0
    for pieces in script:
        kept = 0 if framer.pieces(out, pieces, kept + 2, ()) else kept + 2
    framer.rest(out, kept, ())
    told = sum(event.tokens for event in out if isinstance(event, Delta))
    assert told == 2 * len(script)


def test_two_calls_in_a_row_are_two_blocks() -> None:
    out: list[Event] = []
    framer = Framer(3)
    framer.pieces(out, [Call("a", "1"), Arguments("{}"), Call("b", "2")], 1, ())
    framer.finish(out, "tool_calls", None)
    assert out == [
        BlockStart(3, 0, "call", "a", "1"),
        Delta(3, 0, "{}", 1, (), ()),
        BlockEnd(3, 0, "call", "{}", "a", "1"),
        BlockStart(3, 1, "call", "b", "2"),
        BlockEnd(3, 1, "call", "", "b", "2"),
        Finish(3, "tool_calls", None),
    ]
