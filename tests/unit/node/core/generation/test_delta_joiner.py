"""Joined deltas say what the single ones said, wherever a stream is cut and whenever what waits is given."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.delta_joiner import HELD_MAX, Joiner, joined
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import BlockStart, Delta, Event, TokenLogprob
from support.answers.grammatical_streams import streams
from support.tools.example_counts import example_count

CHOICES = 2


def through(events: Sequence[Event], steps: Sequence[tuple[int, bool]]) -> list[list[Event]]:
    """Return what is given, feeding batches of these sizes; true gives where nothing is urgent too."""
    joiner, given_out, at = Joiner(), [], 0
    for size, gives in [*steps, (len(events), True)]:
        batch = events[at : at + size]
        at += size
        if joiner.take(batch) or gives:
            given_out.append(joiner.give()[0])
    assert joiner.empty
    return given_out


def said(events: Sequence[Event], choice: int) -> list[Event]:
    """What one choice says, each run of deltas as the single one that it adds up to."""
    out: list[Event] = []
    for event in events:
        if getattr(event, "choice", choice) != choice:
            continue
        last = out[-1] if out else None
        if isinstance(event, Delta) and isinstance(last, Delta):
            assert last.block == event.block
            event = Delta(
                choice,
                event.block,
                last.text + event.text,
                last.tokens + event.tokens,
                last.logprobs + event.logprobs,
                last.ids + event.ids,
            )
            out.pop()
        out.append(event)
    return out


cuts = st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=12)


@given(
    streams(choices=CHOICES, logprobs=True)
    | streams(choices=CHOICES, logprobs=True, echo=True)
    | streams(choices=CHOICES, failing=True),
    cuts,
)
@settings(max_examples=example_count(150))
def test_each_choice_says_the_same_however_its_stream_is_cut(
    events: list[Event], steps: list[tuple[int, bool]]
) -> None:
    told = [event for batch in through(events, steps) for event in batch]
    assert len(told) <= len(events)
    grammar = Grammar(CHOICES)
    grammar.feed(told)
    assert grammar.over
    for choice in range(CHOICES):
        assert said(told, choice) == said(events, choice)
    singles = [event for event in events if not isinstance(event, Delta)]
    assert [event for event in told if not isinstance(event, Delta)] == singles


@given(streams(choices=CHOICES, logprobs=True), cuts)
@settings(max_examples=50)
def test_the_collected_answer_is_the_same(
    events: list[Event], steps: list[tuple[int, bool]]
) -> None:
    plain, after = Collector(CHOICES), Collector(CHOICES)
    plain.feed(events)
    for batch in through(events, steps):
        after.feed(batch)
    assert after.answer() == plain.answer()


@given(streams(choices=CHOICES), cuts)
@settings(max_examples=50)
def test_nothing_but_deltas_ever_waits_and_no_first_text_does(
    events: list[Event], steps: list[tuple[int, bool]]
) -> None:
    joiner, at = Joiner(), 0
    unsaid: set[int] = set()
    for size, _ in steps:
        batch = events[at : at + size]
        at += size
        due = False
        for event in batch:
            if not isinstance(event, Delta):
                due = True
                if isinstance(event, BlockStart):
                    unsaid.add(event.choice)
            elif event.text and event.choice in unsaid:
                unsaid.remove(event.choice)
                due = True
        assert joiner.take(batch) == due
        if due:
            joiner.give()


def test_texts_ids_counts_and_log_probabilities_are_joined_in_order() -> None:
    first, second = (
        TokenLogprob(i, text, text.encode(), -0.5, ()) for i, text in ((4, "a"), (5, "b"))
    )
    deltas = [
        Delta(0, 1, "a", 1, (first,), (4,)),
        Delta(0, 1, "", 2),
        Delta(0, 1, "b", 1, (second,), (5,)),
    ]
    assert joined(deltas) == [Delta(0, 1, "ab", 4, (first, second), (4, 5))]


def test_choices_are_not_mixed() -> None:
    deltas = [Delta(0, 0, "a"), Delta(1, 0, "x"), Delta(0, 0, "b"), Delta(1, 0, "y")]
    assert joined(deltas) == [Delta(0, 0, "ab"), Delta(1, 0, "xy")]


def test_what_was_saved_is_counted() -> None:
    joiner = Joiner()
    assert not joiner.take([Delta(0, 0, "a"), Delta(0, 0, "b"), Delta(0, 0, "c")])
    assert joiner.give() == ([Delta(0, 0, "abc")], 2)
    assert joiner.give() == ([], 0)


def test_only_so_much_waits() -> None:
    joiner = Joiner()
    taken = [joiner.take([Delta(0, 0, "a", 1)]) for _ in range(HELD_MAX)]
    assert taken == [False] * (HELD_MAX - 1) + [True]
