"""A plain choice tells what a choice with every feature tells of the same chunks."""

from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from smg_node.core.generation.answer import Choice, Collector
from smg_node.core.generation.events import Begin, End, Event, Usage
from smg_node.core.generation.request import Sampling
from smg_node.engines.chunk import Chunk, EngineFinish
from smg_node.parsers.reading.parser import Plain
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.end_tokens import ends_of
from smg_node.pipeline.stream.plain_choice import WholeStream, plain_stream
from smg_node.tokens.decoding.detokenizer import TableDetokenizer, lossy_utf8
from smg_node.tokens.tokenizer import Detokenizer
from support.models.bytewise_tokenizer import EOS, TURN, BytewiseTokenizer
from support.tools.example_counts import example_count

TOKENIZER = BytewiseTokenizer()
_BYTES = [bytes((one,)) for one in range(256)]


def bytewise() -> Detokenizer:
    return TOKENIZER.detokenizer(
        prompt_tail=(), skip_special_tokens=True, spaces_between_special_tokens=True
    )


def by_table() -> Detokenizer:
    texts = [chr(one) if one < 128 else None for one in range(256)]
    return TableDetokenizer(texts, lambda one: _BYTES[one] if one < 256 else b"", lossy_utf8)


IDS = st.lists(
    st.one_of(st.sampled_from([*"aé🙂 ".encode(), 0xFF, EOS, TURN, 300]), st.integers(0, 255)),
    max_size=12,
)
CHUNKS = st.lists(
    st.builds(
        lambda ids, apart, finish, matched: Chunk(
            0,
            tuple(ids),
            finish=None if apart and len(ids) > 1 else finish,
            matched=matched,
            apart=apart and len(ids) > 1,
        ),
        IDS,
        st.booleans(),
        st.sampled_from([None, None, None, "stop", "length", "stop_sequence"]),
        st.sampled_from([None, 97, "x"]),
    ),
    max_size=6,
)
SAMPLINGS = st.builds(
    Sampling,
    max_tokens=st.sampled_from([1, 3, 5, 1000]),
    min_tokens=st.sampled_from([0, 0, 2]),
    stop_token_ids=st.sampled_from([(), (97,)]),
    ignore_eos=st.booleans(),
    keep_stop=st.booleans(),
)


@settings(max_examples=example_count(400))
@example(
    chunks=[Chunk(0, (97, 256), apart=True)],
    sampling=Sampling(max_tokens=3, ignore_eos=True),
    table=False,
    whole=True,
    ending="abandon",
)
@given(
    chunks=CHUNKS,
    sampling=SAMPLINGS,
    table=st.booleans(),
    whole=st.booleans(),
    ending=st.sampled_from(["conclude", "cut", "abandon"]),
)
def test_a_plain_choice_is_told_as_any_other_would_be(
    chunks: list[Chunk], sampling: Sampling, table: bool, whole: bool, ending: str
) -> None:
    ends = ends_of(sampling, TOKENIZER, (TURN,))
    make = by_table if table else bytewise
    plain = plain_stream(0, sampling, ends, make(), whole=whole)
    general = ChoiceStream(
        0,
        sampling=sampling,
        ends=ends,
        tokenizer=TOKENIZER,
        detokenizer=make(),
        parser=Plain(),
        whole=whole,
    )
    ours: list[Event] = []
    theirs: list[Event] = []
    for chunk in chunks:
        plain.feed(chunk, ours)
        general.feed(chunk, theirs)
        assert (plain.over, plain.ids, plain.generated) == (
            general.over,
            general.ids,
            general.generated,
        )
    getattr(plain, ending)(ours)
    getattr(general, ending)(theirs)
    assert plain.over == general.over
    if not (sampling.min_tokens or whole):
        assert ours == theirs
    # Elsewhere the other may tell in more parts what comes together.
    mine, other = collected(ours), collected(theirs)
    if mine.finish is None and whole:
        # Nobody told an end, with which the ids come that have printed nothing by then.
        count = min(len(mine.ids), len(other.ids))
        assert set(mine.ids[count:]) <= ends.any
        mine.ids[count:] = other.ids[count:] = []
    assert mine == other
    assert (plain.reasoning_tokens, plain.notes) == (general.reasoning_tokens, general.notes)
    assert (plain.cut_by_string, plain.cut_by_call) == (False, False)


@settings(max_examples=example_count(300))
@given(chunks=CHUNKS, sampling=SAMPLINGS, table=st.booleans())
def test_what_is_told_to_nobody_is_the_same_answer(
    chunks: list[Chunk], sampling: Sampling, table: bool
) -> None:
    ends = ends_of(sampling, TOKENIZER, (TURN,))
    make = by_table if table else bytewise
    most = sampling.max_tokens
    assert most is not None
    silent = WholeStream(0, ends, ends.any, most, sampling.keep_stop, make(), True)
    told = plain_stream(0, sampling, ends, make(), whole=True)
    nothing: list[Event] = []
    events: list[Event] = []
    for chunk in chunks:
        silent.feed(chunk, nothing)
        told.feed(chunk, events)
        assert (silent.over, silent.ids) == (told.over, told.ids)
    silent.cut(nothing)
    told.cut(events)
    assert not nothing
    assert silent.answer() == collected(events)


@given(chunks=CHUNKS, finish=st.sampled_from(["stop", "length"]))
def test_nothing_is_told_once_it_is_over(chunks: list[Chunk], finish: EngineFinish) -> None:
    sampling = Sampling(max_tokens=1000)
    stream = plain_stream(0, sampling, ends_of(sampling, TOKENIZER, ()), bytewise(), whole=False)
    out: list[Event] = []
    stream.feed(Chunk(0, (), finish=finish), out)
    told = list(out)
    for chunk in chunks:
        stream.feed(chunk, out)
    stream.cut(out)
    stream.conclude(out)
    stream.abandon(out)
    assert out == told


def collected(events: Sequence[Event]) -> Choice:
    collector = Collector(1)
    collector.feed((Begin("x", "m", 0, 0), *events, Usage(0, 0, 0), End()))
    (choice,) = collector.answer().choices
    return choice
