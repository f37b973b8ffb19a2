"""What is told of plain bodies in a few known batches is what `MessagesPresenter` tells, to the byte."""

from itertools import pairwise
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Answer, Choice
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    FinishReason,
    Usage,
)
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling, Turn
from smg_node.dialects.dialect import UNKNOWN, ParsedBody
from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.messages.fast_presenter import PlainPresenter
from smg_node.dialects.messages.message_object import Signer
from smg_node.dialects.messages.presenter import MessagesPresenter
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals
from support.answers.grammatical_streams import streams, texts
from support.tools.example_counts import example_count

SEALS = ThoughtSeals(PlainVault())
VIEWS = st.builds(
    MessagesView,
    st.sampled_from(["m", '%d "é\u2028%', "%(x)b"]),
    service_tier=st.sampled_from(["standard", "%s"]),
)
BEGINS = st.builds(
    Begin,
    st.integers(0, 2**128 - 1).map(lambda number: f"{number:032x}"),
    st.just("m"),
    st.integers(0, 2**33),
    st.integers(0, 2**33),
    room=st.none() | st.just(2),
)
USAGES = st.builds(Usage, *[st.integers(0, 2**40)] * 4)
REASONS = st.sampled_from(get_args(FinishReason))
SAID = texts | st.sampled_from([" ", "\n", " a", "a "])


def reading(view: MessagesView) -> ParsedBody[MessagesView]:
    prompt = ChatPrompt((Turn("user", "Hi"),))
    return ParsedBody(GenerateRequest("m", (prompt,), Sampling(), stream=True, alike=True), view)


def both(view: MessagesView) -> tuple[PlainPresenter, MessagesPresenter]:
    wish = reading(view)
    signer = Signer(SEALS, tenant="", model="m", omitted=False)
    return PlainPresenter(wish, UNKNOWN, SEALS), MessagesPresenter(wish, "", signer)


@st.composite
def plain(draw: st.DrawFn) -> list[Event]:
    """One text, or none, cut anywhere, with an end of any kind."""
    events: list[Event] = [draw(BEGINS)]
    said = draw(st.lists(SAID, max_size=4))
    if said:
        events += [BlockStart(0, 0, "text"), *(Delta(0, 0, text, 1, (), (7,)) for text in said)]
        events.append(BlockEnd(0, 0, "text", "".join(said)))
    if draw(st.booleans()):
        return [*events, Finish(0, draw(REASONS)), draw(USAGES), End()]
    at = draw(st.integers(0, len(events)))
    return [*events[:at], Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "broke"))]


def cut(data: st.DataObject, events: list[Event]) -> list[list[Event]]:
    """Return the events in batches: cut as generations come, or anywhere."""
    if data.draw(st.booleans()):
        places = {len(events) - 2, *(at for at, one in enumerate(events) if type(one) is BlockEnd)}
        places |= {at + 1 for at, one in enumerate(events) if type(one) is Delta}
    else:
        places = set(range(len(events)))
    places = {at for at in places if 0 <= at <= len(events)}
    chosen = data.draw(st.sets(st.sampled_from(sorted({0} | places)))) | {0, len(events)}
    return [events[low:high] for low, high in pairwise(sorted(chosen))]


@settings(deadline=None, max_examples=example_count(400))
@given(st.data(), VIEWS, st.one_of(plain(), streams(failing=True), streams()))
def test_frames_are_those_of_any_other_presenter(
    data: st.DataObject, view: MessagesView, events: list[Event]
) -> None:
    ours, theirs = both(view)
    for batch in cut(data, events):
        assert ours.frames(batch) == theirs.frames(batch)
        assert ours.around() == theirs.around()


@settings(deadline=None, max_examples=example_count(200))
@given(BEGINS, st.lists(SAID, max_size=2), REASONS, USAGES, VIEWS)
def test_answers_are_those_of_any_other_presenter(
    begin: Begin, said: list[str], reason: FinishReason, usage: Usage, view: MessagesView
) -> None:
    blocks = [BlockEnd(0, at, "text", text) for at, text in enumerate(said)]
    answer = Answer(begin, [Choice(blocks, [], [7], None, Finish(0, reason))], usage)
    ours, theirs = both(view)
    assert ours.answer(answer) == theirs.answer(answer)


def test_the_usual_batches_of_a_stream_take_the_short_way() -> None:
    events: list[Event] = [
        Begin("a" * 32, "m", 5, 3),
        BlockStart(0, 0, "text"),
        Delta(0, 0, "Hi", 1, (), (7,)),
        Delta(0, 0, "", 1, (), (8,)),
        BlockEnd(0, 0, "text", "Hi"),
        Finish(0, "stop"),
        Usage(3, 2, 0),
        End(),
    ]
    for batches in (
        [events[:3], events[3:6], events[6:]],
        [events[:3], events[3:4], events[4:6], events[6:]],
        [[*events[:3], *events[4:6]], events[6:]],
    ):
        presenter, _ = both(MessagesView("m"))
        for batch in batches:
            assert presenter.frames(batch) or not batch[0].text  # type: ignore[union-attr]  # a delta
        assert not presenter._left


def test_only_plain_bodies_have_it() -> None:
    dialect = MessagesDialect(ReaderOptions(), SEALS, lambda: 0.0)
    body = b'{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}'
    found = dialect.read_plain(body)
    assert found is not None
    assert type(dialect.presenter(found)) is PlainPresenter
    assert (
        type(dialect.presenter(ParsedBody(found.request, MessagesView("m", silent=True))))
        is MessagesPresenter
    )
    wish = {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "Hi"}],
        "top_k": 3,
    }
    assert type(dialect.presenter(dialect.read(wish))) is MessagesPresenter
