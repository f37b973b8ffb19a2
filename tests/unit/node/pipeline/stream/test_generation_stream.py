"""A story of one choice comes to the same whichever way what its calls say goes."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Begin, Event
from smg_node.core.generation.request import Sampling, token_ids
from smg_node.engines.chunk import Chunk
from smg_node.pipeline.generation.call_plan import Leg
from smg_node.pipeline.generation.engine_call import Call
from smg_node.pipeline.stream.end_tokens import ends_of
from smg_node.pipeline.stream.generation_stream import GenerationStream
from smg_node.pipeline.stream.plain_choice import WholeStream, plain_stream
from support.models.bytewise_tokenizer import EOS, BytewiseTokenizer

TOKENIZER = BytewiseTokenizer()
SAMPLING = Sampling(max_tokens=6)
BEYOND = 260
IDS = st.lists(st.sampled_from([97, 98, EOS, BEYOND, -1]), max_size=3)
CHUNKS = st.lists(
    st.builds(
        lambda ids, choice, finish, cached, apart: Chunk(
            choice,
            tuple(ids),
            finish=finish,
            matched=97 if finish else None,
            cached_tokens=cached,
            apart=apart and len(ids) > 1,
        ),
        IDS,
        st.sampled_from([0, 0, 0, 0, 1, -1]),
        st.sampled_from([None, None, None, "stop", "length", "stop_sequence", "abort"]),
        st.integers(-1, 9),
        st.booleans(),
    ),
    max_size=4,
)


def call_of(*, alone: bool, done: int, silent: bool = False) -> Call:
    ends = ends_of(SAMPLING, TOKENIZER, ())
    detokenizer = TOKENIZER.detokenizer(
        prompt_tail=(), skip_special_tokens=True, spaces_between_special_tokens=True
    )
    stream = plain_stream(0, SAMPLING, ends, detokenizer, whole=silent)
    whole = WholeStream(0, ends, ends.any, stream.most, False, detokenizer, True)
    begin = Begin("0" * 32, "m", 0, 7)
    if silent:
        story = GenerationStream(begin, (whole,), 1, TOKENIZER, (), whole, None, whole, True)
    else:
        story = GenerationStream(begin, (stream,), 1, TOKENIZER, (), stream if alone else None)
    nobody: Any = SimpleNamespace()
    return Call(nobody, Leg(0, 1, token_ids([1]), SAMPLING, done), nobody, story, 1, BEYOND)


def same(one: Call, other: Call) -> bool:
    """Whether two calls and their stories know the same by now."""
    assert one._story.usage() == other._story.usage()
    assert one._story.over(0, 1) == other._story.over(0, 1)
    return (one.said, one._cached_tokens, one._unfinished) == (
        other.said,
        other._cached_tokens,
        other._unfinished,
    )


@given(wake_ups=st.lists(CHUNKS, max_size=4), done=st.sampled_from([0, 0, 3]))
def test_one_that_is_alone_is_told_as_any_other(wake_ups: list[list[Chunk]], done: int) -> None:
    short, long = call_of(alone=True, done=done), call_of(alone=False, done=done)
    for chunks in wake_ups:
        ours, our_mistake = fed(short, chunks)
        assert (ours, our_mistake) == fed(long, chunks)
        assert same(short, long)
        if our_mistake:
            return


@given(wake_ups=st.lists(CHUNKS, max_size=4), done=st.sampled_from([0, 0, 3]))
def test_one_that_is_told_to_nobody_goes_a_shorter_way_to_the_same(
    wake_ups: list[list[Chunk]], done: int
) -> None:
    short, long = (call_of(alone=True, done=done, silent=True) for _ in range(2))
    mine, other = short._story.whole, long._story.whole
    assert mine is not None
    assert other is not None
    for chunks in wake_ups:
        nothing, our_mistake = fed(short, chunks, whole=mine)
        assert not nothing
        assert (nothing, our_mistake) == fed(long, chunks)
        assert same(short, long)
        if our_mistake:
            return
    if mine.over:
        assert mine.answer() == other.answer()


def fed(
    call: Call, chunks: list[Chunk], whole: WholeStream | None = None
) -> tuple[list[Event], str]:
    """What a call tells of these chunks, and what it has against them; the short way where it is for `whole`."""
    out: list[Event] = []
    copies = [
        Chunk(
            one.choice, one.ids, (), one.finish, one.matched, -1, one.cached_tokens, (), one.apart
        )
        for one in chunks
    ]
    try:
        if whole is None:
            call._feed(copies, out)
        else:
            call._feed_whole(whole, copies, out)
    except SmgError as error:
        return out, error.message
    return out, ""
