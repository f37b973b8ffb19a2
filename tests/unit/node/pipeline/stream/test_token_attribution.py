"""One choice of a model with thoughts and calls: the same ids say the same, whatever is asked beside them."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.events import BlockEnd, BlockStart, Delta, Event, Finish
from smg_node.core.generation.request import Sampling, Tool
from smg_node.engines.chunk import Chunk, EngineFinish, IdLogprob
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.end_tokens import ends_of
from support.models.bytewise_tokenizer import EOS, BytewiseTokenizer

CALL = '<tool_call>\n{"name": "find", "arguments": {"city": "Ghent"}}\n</tool_call>'
ANSWER = f"<think>So 2 < 3.</think>I look.{CALL}\n{CALL}"
TOOLS = (Tool("find"),)
places = st.lists(st.integers(0, 250), max_size=12)


class WordDetokenizer:
    """Each id prints its word."""

    alone = None

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    def feed(self, token_id: int) -> str:
        return self._words[token_id]

    def finish(self) -> str:
        return ""


class WordTokenizer(BytewiseTokenizer):
    """Ids are places in a list of words; none of them ends an answer."""

    eos_ids = frozenset()
    special_ids = frozenset()

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    def token_text(self, token_id: int) -> str:
        return self._words[token_id]

    def token_bytes(self, token_id: int) -> bytes:
        return self._words[token_id].encode()

    def detokenizer(self, **_options: Any) -> Any:
        return WordDetokenizer(self._words)


def stream_of(
    sampling: Sampling,
    *,
    tail: str = "",
    calls: bool = True,
    single: bool = False,
    words: Sequence[str] = (),
) -> ChoiceStream:
    tokenizer = WordTokenizer(words) if words else BytewiseTokenizer()
    ids = itertools.count()
    printing = Printing(Chosen("think", "hermes", frozenset({"implicit"})))
    return ChoiceStream(
        0,
        sampling=sampling,
        ends=ends_of(sampling, tokenizer, ()),
        tokenizer=tokenizer,
        detokenizer=tokenizer.detokenizer(
            prompt_tail=(), skip_special_tokens=False, spaces_between_special_tokens=True
        ),
        parser=printing.scanner(
            tools=TOOLS, calls=calls, tail=tail, new_id=lambda _name, _at: f"call_{next(ids)}"
        ),
        single=single,
    )


def play(
    stream: ChoiceStream,
    ids: Sequence[int],
    cuts: Sequence[int],
    finish: EngineFinish = "stop",
    *,
    logprobs: bool = False,
) -> list[Event]:
    out: list[Event] = []
    bounds = [0, *sorted({min(at, len(ids)) for at in cuts}), len(ids)]
    for start, end in itertools.pairwise(bounds):
        part = tuple(ids[start:end])
        rows = tuple(IdLogprob(one, -0.5) for one in part) if logprobs else ()
        stream.feed(Chunk(0, part, rows), out)
    stream.feed(Chunk(0, (), finish=finish), out)
    return out


def blocks_of(events: Sequence[Event]) -> list[tuple[str, str, str]]:
    """Return the blocks, once it is sure that their deltas say the same and none is left open."""
    texts: dict[int, str] = {}
    blocks: list[tuple[str, str, str]] = []
    for event in events:
        match event:
            case BlockStart():
                assert event.block == len(texts) == len(blocks)
                texts[event.block] = ""
            case Delta():
                texts[event.block] += event.text
            case BlockEnd():
                assert event.text == texts[event.block]
                blocks.append((event.kind, event.name, event.text))
            case _:
                pass
    assert len(blocks) == len(texts)
    return blocks


def finish_of(events: Sequence[Event]) -> Finish:
    (finish,) = [event for event in events if isinstance(event, Finish)]
    return finish


WHOLE = [
    ("reasoning", "", "So 2 < 3."),
    ("text", "", "I look."),
    ("call", "find", '{"city": "Ghent"}'),
    ("call", "find", '{"city": "Ghent"}'),
]


@given(cuts=places, kind=st.sampled_from(["quick", "stop", "logprobs"]))
def test_blocks_finish_and_tokens_of_thoughts_do_not_depend_on_the_cutting(
    cuts: list[int], kind: str
) -> None:
    sampling = Sampling(
        max_tokens=1000,
        stop=("NEVER",) if kind == "stop" else (),
        logprobs=0 if kind == "logprobs" else None,
    )
    stream = stream_of(sampling)
    ids = [*ANSWER.encode(), EOS]
    events = play(stream, ids, cuts, logprobs=kind == "logprobs")
    assert blocks_of(events) == WHOLE
    assert finish_of(events) == Finish(0, "tool_calls", None)
    assert stream.reasoning_tokens == len("So 2 < 3.")
    deltas = [event for event in events if isinstance(event, Delta)]
    assert sum(delta.tokens for delta in deltas) == len(ids)
    assert [one for delta in deltas for one in delta.ids] == ids


@given(cuts=places, tokens=st.lists(st.integers(1, 9), min_size=60, max_size=60))
def test_a_log_probability_rides_on_the_block_that_has_its_tokens_first_character(
    cuts: list[int], tokens: list[int]
) -> None:
    text = "<think>So 2 < 3.</think>I look < there.<tool_call> is none.</thin"
    # Which tokens there are, and in which block each begins, -1 for a marker's.
    kinds = "".join(
        character * len(part)
        for character, part in [
            ("-", "<think>"),
            ("r", "So 2 < 3."),
            ("-", "</think>"),
            ("t", "I look < there.<tool_call> is none.</thin"),
        ]
    )
    bounds = [0, *itertools.takewhile(lambda at: at < len(text), itertools.accumulate(tokens))]
    words = [text[a:b] for a, b in itertools.pairwise([*bounds, len(text)])]
    expected = {
        kind: [word for word, at in zip(words, bounds, strict=True) if kinds[at] == kind]
        for kind in "rt"
    }
    stream = stream_of(Sampling(max_tokens=1000, logprobs=0), words=words)
    events = play(stream, range(len(words)), cuts, logprobs=True)
    told: dict[str, list[str]] = {"reasoning": [], "text": []}
    kind = ""
    for event in events:
        if isinstance(event, BlockStart):
            kind = event.kind
        elif isinstance(event, Delta):
            told[kind] += [row.token for row in event.logprobs]
    assert told == {"reasoning": expected["r"], "text": expected["t"]}
    assert blocks_of(events) == [
        ("reasoning", "", "So 2 < 3."),
        ("text", "", "I look < there.<tool_call> is none.</thin"),
    ]


@given(cuts=places)
def test_tokens_of_markers_have_no_log_probabilities(cuts: list[int]) -> None:
    stream = stream_of(Sampling(max_tokens=1000, logprobs=0))
    events = play(stream, ANSWER.encode(), cuts, logprobs=True)
    told = [row.token for event in events if isinstance(event, Delta) for row in event.logprobs]
    assert "".join(told) == "".join(text for _, _, text in WHOLE)


@pytest.mark.parametrize("cuts", [[], range(400)], ids=["at once", "by tokens"])
@pytest.mark.parametrize("stop", [(), ("NEVER",)], ids=["quick", "with a stop string"])
def test_with_one_call_allowed_the_choice_is_over_with_it(
    cuts: Sequence[int], stop: tuple[str, ...]
) -> None:
    stream = stream_of(Sampling(max_tokens=1000, stop=stop), single=True)
    events = play(stream, (ANSWER + " and more").encode(), cuts)
    assert blocks_of(events) == WHOLE[:3]
    assert finish_of(events) == Finish(0, "tool_calls", None)
    assert stream.cut_by_call
    assert not stream.cut_by_string


@pytest.mark.parametrize("cuts", [[], range(400)], ids=["at once", "by tokens"])
def test_a_stop_string_inside_a_call_ends_it_there_and_stays_a_stop(cuts: Sequence[int]) -> None:
    stream = stream_of(Sampling(max_tokens=1000, stop=('"Gh',)))
    events = play(stream, ANSWER.encode(), cuts)
    assert blocks_of(events) == [*WHOLE[:2], ("call", "find", '{"city": ')]
    assert finish_of(events) == Finish(0, "stop", '"Gh')


def test_a_stop_string_counts_in_the_markers_of_calls_too() -> None:
    stream = stream_of(Sampling(max_tokens=1000, stop=("<tool_c",)))
    events = play(stream, ANSWER.encode(), range(400))
    assert blocks_of(events) == WHOLE[:2]
    assert finish_of(events) == Finish(0, "stop", "<tool_c")


def test_length_beats_calls() -> None:
    stream = stream_of(Sampling(max_tokens=len(ANSWER) - len("\n</tool_call>")))
    events = play(stream, ANSWER.encode(), range(400))
    assert blocks_of(events) == WHOLE
    assert finish_of(events).reason == "length"
    events = play(stream_of(Sampling(max_tokens=1000)), ANSWER.encode(), [], finish="length")
    assert finish_of(events).reason == "length"


@given(cuts=places)
def test_what_opened_nothing_is_text_with_its_log_probabilities(cuts: list[int]) -> None:
    text = "<tool_call> is <thinking> a </tool_cal"
    stream = stream_of(Sampling(max_tokens=1000, logprobs=0))
    events = play(stream, text.encode(), cuts, logprobs=True)
    assert blocks_of(events) == [("text", "", text)]
    told = [row.token for event in events if isinstance(event, Delta) for row in event.logprobs]
    assert "".join(told) == text
    assert finish_of(events).reason == "stop"
    assert stream.notes == {"tool_markup_unparsed": 1}


@given(cuts=places)
def test_a_prompt_that_opened_a_thought_is_gone_on_with(cuts: list[int]) -> None:
    stream = stream_of(Sampling(max_tokens=1000), tail="user\n<think>\n")
    events = play(stream, b"Ferries: 9:40.</think>Go.", cuts)
    assert blocks_of(events) == [("reasoning", "", "Ferries: 9:40."), ("text", "", "Go.")]
    assert stream.reasoning_tokens == len("Ferries: 9:40.")


def test_without_tools_a_call_is_text() -> None:
    events = play(stream_of(Sampling(max_tokens=1000), calls=False), CALL.encode(), range(99))
    assert blocks_of(events) == [("text", "", CALL)]
    assert finish_of(events).reason == "stop"


def test_an_abandoned_choice_says_what_was_held() -> None:
    stream = stream_of(Sampling(max_tokens=1000))
    out: list[Event] = []
    for one in b"Hm <tool_ca":
        stream.feed(Chunk(0, (one,)), out)
    stream.abandon(out)
    assert blocks_of(out) == [("text", "", "Hm <tool_ca")]
