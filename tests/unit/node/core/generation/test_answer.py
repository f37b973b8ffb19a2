"""The collector: a stream becomes an answer, and nothing else does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Collector
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
    TokenLogprob,
    Usage,
)
from support.answers.grammatical_streams import streams

BEGIN = Begin("id", "m", 1, 3)
LOGPROB = TokenLogprob(1, "a", b"a", -0.5, ())


def test_blocks_ids_and_log_probabilities_are_collected_per_choice() -> None:
    collector = Collector(2)
    echo = PromptEcho(1, "p", (9,))
    thought, text = BlockEnd(1, 0, "reasoning", "hm"), BlockEnd(1, 1, "text", "ab")
    events: list[Event] = [
        BEGIN,
        echo,
        BlockStart(1, 0, "reasoning"),
        Delta(1, 0, "hm", 1, (LOGPROB,), (5,)),
        thought,
        BlockStart(1, 1, "text"),
        Delta(1, 1, "a", 1, (), (6,)),
        Delta(1, 1, "b", 1, (LOGPROB,), (7,)),
        text,
        Finish(1, "stop", "END"),
        Finish(0, "length"),
        Usage(3, 3, 0),
        End(),
    ]
    for event in events:
        collector.feed([event])
    answer = collector.answer()
    assert (answer.begin, answer.usage) == (BEGIN, Usage(3, 3, 0))
    silent, spoken = answer.choices
    assert (silent.blocks, silent.text(), silent.finish) == ([], "", Finish(0, "length"))
    assert spoken.blocks == [thought, text]
    assert (spoken.text(), spoken.reasoning()) == ("ab", "hm")
    assert (spoken.ids, spoken.logprobs) == ([5, 6, 7], [LOGPROB, LOGPROB])
    assert (spoken.echo, spoken.finish) == (echo, Finish(1, "stop", "END"))


def test_a_failure_is_raised_to_whoever_wants_the_answer() -> None:
    collector = Collector(1)
    error = SmgError(ErrorKind.UPSTREAM_FAILED, "it broke")
    collector.feed([BEGIN, Fail(error)])
    assert collector.failed is error
    with pytest.raises(SmgError) as caught:
        collector.answer()
    assert caught.value is error


def test_half_a_stream_is_no_answer() -> None:
    collector = Collector(1)
    collector.feed([BEGIN, Finish(0, "stop"), Usage(1, 1, 0)])
    with pytest.raises(AssertionError, match="has not ended"):
        collector.answer()


@given(streams(choices=2, logprobs=True))
@settings(max_examples=50)
def test_nothing_a_stream_says_is_lost(events: list[Event]) -> None:
    collector = Collector(2)
    collector.feed(events)
    for index, choice in enumerate(collector.answer().choices):
        deltas = [e for e in events if isinstance(e, Delta) and e.choice == index]
        assert "".join(block.text for block in choice.blocks) == "".join(d.text for d in deltas)
        assert choice.ids == [token_id for delta in deltas for token_id in delta.ids]
        assert choice.logprobs == [row for delta in deltas for row in delta.logprobs]


@given(st.data())
@settings(max_examples=30)
def test_how_a_stream_is_cut_makes_no_difference(data: st.DataObject) -> None:
    events = data.draw(streams(choices=2))
    whole, cut = Collector(2), Collector(2)
    whole.feed(events)
    at = data.draw(st.integers(0, len(events)))
    cut.feed(events[:at])
    cut.feed(events[at:])
    assert whole.answer() == cut.answer()
