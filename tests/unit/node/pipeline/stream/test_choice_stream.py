"""One choice: the same ids give the same text and the same end, however they were cut."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.events import BlockEnd, Delta, Event, Finish, TokenLogprob
from smg_node.core.generation.request import Sampling
from smg_node.engines.chunk import Chunk, IdLogprob
from smg_node.parsers.reading.parser import Plain
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.end_tokens import ends_of
from support.models.bytewise_tokenizer import EOS, TURN, BytewiseTokenizer


def stream_of(sampling: Sampling, engine_eos: Sequence[int] = ()) -> ChoiceStream:
    tokenizer = BytewiseTokenizer()
    return ChoiceStream(
        0,
        sampling=sampling,
        ends=ends_of(sampling, tokenizer, engine_eos),
        tokenizer=tokenizer,
        detokenizer=tokenizer.detokenizer(
            prompt_tail=(), skip_special_tokens=True, spaces_between_special_tokens=True
        ),
        parser=Plain(),
    )


def cut(ids: Sequence[int], cuts: Sequence[int]) -> list[Chunk]:
    """Cut `ids` at the given places into chunks, the last with the engine's finish."""
    places = sorted({min(at, len(ids)) for at in cuts})
    bounds = [0, *places, len(ids)]
    chunks = [Chunk(0, tuple(ids[a:b])) for a, b in itertools.pairwise(bounds)]
    return [*chunks, Chunk(0, (), finish="stop")]


def play(stream: ChoiceStream, chunks: Sequence[Chunk]) -> list[Event]:
    out: list[Event] = []
    for chunk in chunks:
        stream.feed(chunk, out)
    return out


def text_of(events: Sequence[Event]) -> str:
    said = "".join(event.text for event in events if isinstance(event, Delta))
    assert said == "".join(event.text for event in events if isinstance(event, BlockEnd))
    return said


def finish_of(events: Sequence[Event]) -> Finish:
    (finish,) = [event for event in events if isinstance(event, Finish)]
    return finish


answers = st.text(max_size=20)
places = st.lists(st.integers(0, 60), max_size=8)
stops = st.lists(st.text(min_size=1, max_size=3, alphabet="ab é🙂"), max_size=3).map(tuple)


@given(
    text=st.text(max_size=20, alphabet="abé🙂 "), cuts=places, stop=stops, logprobs=st.booleans()
)
def test_text_and_finish_do_not_depend_on_the_cutting(
    text: str, cuts: list[int], stop: tuple[str, ...], logprobs: bool
) -> None:
    sampling = Sampling(max_tokens=1000, stop=stop, logprobs=0 if logprobs else None)
    ids = [*text.encode(), EOS]
    whole = play(stream_of(sampling), cut(ids, []))
    pieces = play(stream_of(sampling), cut(ids, cuts))
    assert text_of(pieces) == text_of(whole)
    assert finish_of(pieces) == finish_of(whole)
    # The stop string that is complete first counts; of several that end there, the longest.
    ends = [(text.find(item) + len(item), -len(item)) for item in stop if item in text]
    assert text_of(whole) == (text[: sum(min(ends))] if ends else text)


@given(raw=st.binary(max_size=24), cuts=places)
def test_broken_bytes_become_replacement_characters(raw: bytes, cuts: list[int]) -> None:
    stream = stream_of(Sampling(max_tokens=1000))
    assert "\ufffd" in text_of(play(stream, cut([0xFF, *raw], cuts)))


@given(text=answers, cuts=places)
def test_every_id_is_counted_once_and_told_once(text: str, cuts: list[int]) -> None:
    stream = stream_of(Sampling(max_tokens=1000))
    ids = [*text.encode(), EOS]
    deltas = [item for item in play(stream, cut(ids, cuts)) if isinstance(item, Delta)]
    assert stream.generated == len(ids)
    assert sum(delta.tokens for delta in deltas) == len(ids)
    assert [token_id for delta in deltas for token_id in delta.ids] == ids


@given(text=answers, cuts=places)
def test_log_probabilities_come_once_each_and_in_order(text: str, cuts: list[int]) -> None:
    stream = stream_of(Sampling(max_tokens=1000, logprobs=1))
    ids = list(text.encode())
    chunks = cut(ids, cuts)
    for chunk in chunks:
        chunk.logprobs = tuple(IdLogprob(item, -0.5, ((item, -0.5),)) for item in chunk.ids)
    told: list[TokenLogprob] = []
    for event in play(stream, chunks):
        if isinstance(event, Delta):
            told += event.logprobs
    assert [item.token_id for item in told] == ids
    assert b"".join(item.raw for item in told) == text.encode()


def test_tokens_cut_off_by_a_stop_string_lose_their_log_probabilities() -> None:
    stream = stream_of(Sampling(max_tokens=99, stop=("cd",), logprobs=0))
    logprobs = tuple(IdLogprob(item, -1.0) for item in b"abcdef")
    events = play(stream, [Chunk(0, tuple(b"abcdef"), logprobs)])
    told = [item.token for event in events if isinstance(event, Delta) for item in event.logprobs]
    assert told == ["a", "b"]
    assert finish_of(events) == Finish(0, "stop", "cd")
    assert stream.cut_by_string


@given(cuts=places)
def test_a_stop_string_counts_only_after_the_least_number_of_tokens(cuts: list[int]) -> None:
    sampling = Sampling(max_tokens=99, min_tokens=5, stop=("cd",))
    chunks = cut(b"abcdefcdgh", cuts)
    events = play(stream_of(sampling), chunks)
    assert text_of(events) == "abcdef"
    assert finish_of(events) == Finish(0, "stop", "cd")


def test_end_of_text_ends_even_if_the_engine_goes_on() -> None:
    stream = stream_of(Sampling(max_tokens=99))
    events = play(stream, [Chunk(0, (*b"ab", EOS, *b"cd"))])
    assert text_of(events) == "ab"
    assert finish_of(events) == Finish(0, "stop", None)
    assert stream.generated == 3


def test_ignored_end_of_text_ends_nothing_and_is_not_shown() -> None:
    stream = stream_of(Sampling(max_tokens=99, ignore_eos=True))
    events = play(stream, [Chunk(0, (*b"ab", EOS, *b"cd")), Chunk(0, (), finish="length")])
    assert text_of(events) == "abcd"
    assert finish_of(events) == Finish(0, "length", None)


@pytest.mark.parametrize(("keep", "text"), [(False, "ab"), (True, "abX")])
def test_a_stop_id_ends_the_choice_and_is_shown_if_wanted(keep: bool, text: str) -> None:
    stream = stream_of(Sampling(max_tokens=99, stop_token_ids=(ord("X"),), keep_stop=keep))
    events = play(stream, [Chunk(0, tuple(b"abXcd"))])
    assert text_of(events) == text
    assert finish_of(events) == Finish(0, "stop", ord("X"))


def test_other_special_tokens_are_skipped() -> None:
    events = play(stream_of(Sampling(max_tokens=99)), cut([*b"a", TURN, *b"b"], []))
    assert text_of(events) == "ab"


def test_an_engine_that_does_not_stop_is_cut_at_max_tokens() -> None:
    stream = stream_of(Sampling(max_tokens=3))
    events = play(stream, [Chunk(0, tuple(b"ab")), Chunk(0, tuple(b"cdef"))])
    assert text_of(events) == "abc"
    assert finish_of(events) == Finish(0, "length", None)
    assert stream.generated == 3


def test_an_abandoned_choice_lets_go_of_what_was_held_and_does_not_finish() -> None:
    stream = stream_of(Sampling(max_tokens=99, stop=("bcd",)))
    out: list[Event] = []
    stream.feed(Chunk(0, tuple(b"abc")), out)
    stream.abandon(out)
    assert text_of(out) == "abc"
    assert not any(isinstance(item, Finish) for item in out)
    assert isinstance(out[-1], BlockEnd)
