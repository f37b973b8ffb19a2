"""A story of one choice tells the same whether its calls go through it or around it."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.events import Begin, Event
from smg_node.core.request import Sampling, token_ids
from smg_node.engines.chunk import Chunk
from smg_node.pipeline.call import Call
from smg_node.pipeline.plain_stream import plain_stream
from smg_node.pipeline.plan import Leg
from smg_node.pipeline.story import Story
from smg_node.pipeline.stream import ends_of
from support.bytewise import EOS, BytewiseTokenizer

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
            cached_tokens=cached,
            apart=apart and len(ids) > 1,
        ),
        IDS,
        st.sampled_from([0, 0, 0, 0, 1, -1]),
        st.sampled_from([None, None, None, "stop", "length", "abort"]),
        st.integers(-1, 9),
        st.booleans(),
    ),
    max_size=4,
)


def call_of(*, alone: bool, done: int) -> Call:
    stream = plain_stream(
        0,
        SAMPLING,
        ends_of(SAMPLING, TOKENIZER, ()),
        TOKENIZER.detokenizer(
            prompt_tail=(), skip_special_tokens=True, spaces_between_special_tokens=True
        ),
        whole=False,
    )
    begin = Begin("0" * 32, "m", 0, 7)
    story = Story(begin, (stream,), 1, TOKENIZER, (), stream if alone else None)
    nobody: Any = SimpleNamespace()
    return Call(nobody, Leg(0, 1, token_ids([1]), SAMPLING, done), nobody, story, 1, BEYOND)


@given(wake_ups=st.lists(CHUNKS, max_size=4), done=st.sampled_from([0, 0, 3]))
def test_one_that_is_alone_is_told_as_any_other(wake_ups: list[list[Chunk]], done: int) -> None:
    short, long = call_of(alone=True, done=done), call_of(alone=False, done=done)
    for chunks in wake_ups:
        ours, our_mistake = fed(short, chunks)
        theirs, their_mistake = fed(long, chunks)
        assert (ours, our_mistake) == (theirs, their_mistake)
        assert short._story.usage() == long._story.usage()
        assert short._story.over(0, 1) == long._story.over(0, 1)
        assert (short.said, short._cached_tokens, short._unfinished) == (
            long.said,
            long._cached_tokens,
            long._unfinished,
        )
        if our_mistake:
            return


def fed(call: Call, chunks: list[Chunk]) -> tuple[list[Event], str]:
    """What a call tells of these chunks, and what it has against them."""
    out: list[Event] = []
    copies = [
        Chunk(one.choice, one.ids, (), one.finish, None, -1, one.cached_tokens, (), one.apart)
        for one in chunks
    ]
    try:
        call._feed(copies, out)
    except SmgError as error:
        return out, error.message
    return out, ""
