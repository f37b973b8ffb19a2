"""Tokens of one wake-up, kept together: told exactly as if each had come alone, whatever is between ids and events."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.answer import Choice, Collector
from smg_node.core.generation.events import Begin, End, Event, Finish, Usage
from smg_node.core.generation.request import Sampling, Tool
from smg_node.engines.chunk import Chunk
from smg_node.parsers.reading.parser import Parser, Plain
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.end_tokens import ends_of
from smg_node.tokens.decoding.token_table import TokenTable
from smg_node.tokens.tokenizer import Detokenizer
from support.models.bytewise_tokenizer import EOS, BytewiseTokenizer

PRINTING = Printing(Chosen("think", "hermes", frozenset({"implicit"})), ())
TOOLS = (Tool("look", parameters={"type": "object"}),)
CALL = '<tool_call>\n{"name": "look", "arguments": {"a": ["x", 1]}}\n</tool_call>'
WORDS = ("a", "é", "🙂", " ", "<", "</think>", "<think>", "STOP", "\n", CALL, CALL[:20], '{"a": 1}')


def hermes() -> Parser:
    return PRINTING.scanner(
        tools=TOOLS, calls=True, tail="<think>\n", new_id=lambda _name, _call: "call_1"
    )


def spoken() -> Parser:
    return PRINTING.scanner(tools=TOOLS, calls=True, tail="", new_id=lambda _name, _call: "call_1")


def bytewise() -> Detokenizer:
    return BytewiseTokenizer().detokenizer(
        prompt_tail=(), skip_special_tokens=True, spaces_between_special_tokens=True
    )


def play(
    chunks: Sequence[Chunk],
    parser: Callable[[], Parser],
    sampling: Sampling,
    *,
    single: bool,
    whole: bool = False,
    detokenizer: Detokenizer | None = None,
) -> tuple[list[Event], ChoiceStream]:
    tokenizer = BytewiseTokenizer()
    stream = ChoiceStream(
        0,
        sampling=sampling,
        ends=ends_of(sampling, tokenizer, ()),
        tokenizer=tokenizer,
        detokenizer=detokenizer or bytewise(),
        parser=parser(),
        single=single,
        whole=whole,
    )
    out: list[Event] = []
    for chunk in chunks:
        stream.feed(chunk, out)
    if not stream.over:
        stream.cut(out)
    return out, stream


def runs(ids: Sequence[int], borders: Sequence[int]) -> list[Chunk]:
    found, at = [], 0
    for border in [*sorted(borders), len(ids)]:
        run = tuple(ids[at:border])
        if run:
            found.append(Chunk(0, run, apart=len(run) > 1))
        at = max(at, border)
    return found


ANSWERS = given(
    words=st.lists(st.sampled_from(WORDS), max_size=6),
    ending=st.booleans(),
    borders=st.lists(st.integers(0, 120), max_size=5),
    parser=st.sampled_from([Plain, hermes, spoken]),
    sampling=st.builds(
        Sampling,
        max_tokens=st.sampled_from([5, 40, 1000]),
        min_tokens=st.sampled_from([0, 3]),
        stop=st.sampled_from([(), ("STOP",)]),
        ignore_eos=st.booleans(),
    ),
    single=st.booleans(),
)


@ANSWERS
def test_a_run_of_tokens_is_told_as_its_tokens_are(
    words: list[str],
    ending: bool,
    borders: list[int],
    parser: Callable[[], Parser],
    sampling: Sampling,
    single: bool,
) -> None:
    ids = [*"".join(words).encode(), *([EOS] if ending else [])]
    alone, one = play([Chunk(0, (byte,)) for byte in ids], parser, sampling, single=single)
    together, other = play(runs(ids, borders), parser, sampling, single=single)
    assert together == alone
    assert other.ids == one.ids
    assert other.reasoning_tokens == one.reasoning_tokens
    assert (other.over, other.cut_by_string, other.cut_by_call) == (
        one.over,
        one.cut_by_string,
        one.cut_by_call,
    )


@ANSWERS
def test_what_nobody_sees_before_its_end_is_the_same_in_the_end(
    words: list[str],
    ending: bool,
    borders: list[int],
    parser: Callable[[], Parser],
    sampling: Sampling,
    single: bool,
) -> None:
    ids = [*"".join(words).encode(), *([EOS] if ending else [])]
    shown, one = play(runs(ids, borders), parser, sampling, single=single)
    unseen, other = play(runs(ids, borders), parser, sampling, single=single, whole=True)
    assert len(unseen) <= len(shown)
    assert collected(unseen) == collected(shown)
    assert other.ids == one.ids
    assert other.reasoning_tokens == one.reasoning_tokens
    assert other.notes == one.notes


def collected(events: Sequence[Event]) -> Choice:
    collector = Collector(1)
    begin = Begin("x", "m", 0, 0)
    collector.feed([begin, *events, Usage(0, 0, 0), End()])
    return collector.answer().choices[0]


# Bytes, of which most are no characters alone, words, and one id that is hidden.
TABLE = TokenTable(
    [
        *(bytes((one,)) for one in range(256)),
        b"word ",
        "é🙂".encode(),
        b"",
        "日本".encode(),
        b"<hidden>",
    ],
    special_ids=frozenset({260}),
)
IDS = st.one_of(st.integers(97, 122), st.integers(0, 255), st.integers(256, 263))


@given(ids=st.lists(IDS, max_size=20), borders=st.lists(st.integers(0, 20), max_size=4))
def test_a_run_is_looked_up_as_its_tokens_are(ids: list[int], borders: list[int]) -> None:
    def machine() -> Detokenizer:
        return TABLE.detokenizer(
            prompt_tail=(), skip_special_tokens=True, spaces_between_special_tokens=True
        )

    # The end of the bytewise vocabulary is a word of this one.
    asked = Sampling(max_tokens=1000, ignore_eos=True)
    chunks = [Chunk(0, (one,)) for one in ids]
    alone, _ = play(chunks, Plain, asked, single=False, detokenizer=machine())
    together, _ = play(runs(ids, borders), Plain, asked, single=False, detokenizer=machine())
    assert together == alone


@pytest.mark.parametrize("logprobs", [None, 0])
def test_a_run_counts_for_the_limit_token_by_token(logprobs: int | None) -> None:
    sampling = Sampling(max_tokens=3, logprobs=logprobs)
    events, stream = play([Chunk(0, tuple(b"abcde"), apart=True)], Plain, sampling, single=False)
    assert list(stream.ids) == list(b"abc")
    assert stream.over
    assert events[-1] == Finish(0, "length")
