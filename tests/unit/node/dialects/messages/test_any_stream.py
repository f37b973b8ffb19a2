"""Any stream of Messages is one message to the official client, wherever it is cut, and however it ends."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import Delta, Event
from smg_node.dialects.messages.presenter import MessagesPresenter
from smg_node.dialects.messages.view import MessagesView
from support.answers.grammatical_streams import streams
from support.answers.messages_answers import body, frames, presenter, streamed
from support.clients import messages_judge as judge
from support.tools.example_counts import example_count


def batches(data: st.DataObject, events: Sequence[Event]) -> list[Sequence[Event]]:
    places = data.draw(st.sets(st.integers(0, len(events)))) | {0, len(events)}
    return [events[low:high] for low, high in pairwise(sorted(places))]


@settings(deadline=None, max_examples=example_count(150))
@given(st.data(), streams(), st.booleans(), st.booleans())
def test_any_stream_is_put_together_to_its_whole_answer(
    data: st.DataObject, events: list[Event], tools: bool, eager: bool
) -> None:
    view = MessagesView("m", eager_all=eager)

    def make() -> MessagesPresenter:
        return presenter(view, tools=tools)

    one = make()
    raw = b"".join(one.frames(batch) for batch in batches(data, events))
    assert raw == streamed(make(), events)
    if b"event: error" in raw:
        assert eager
        return
    put_together = judge.read_stream(raw)[0]
    read = judge.read_whole(body(make(), events))[0]
    assert put_together["content"] == read["content"]
    assert put_together["stop_reason"] == read["stop_reason"]
    assert [each["index"] for each in frames(raw) if each["type"] == "content_block_start"] == [
        *range(len(read["content"]))
    ]


@settings(deadline=None, max_examples=example_count(100))
@given(st.data(), streams(failing=True))
def test_any_stream_that_fails_ends_with_one_error(
    data: st.DataObject, events: list[Event]
) -> None:
    one = presenter()
    shown = frames(b"".join(one.frames(batch) for batch in batches(data, events)))
    kinds = [each["type"] for each in shown]
    assert kinds[-1] == "error"
    assert kinds.count("error") == 1
    assert kinds.count("content_block_start") == kinds.count("content_block_stop")


@settings(deadline=None, max_examples=example_count(100))
@given(streams())
def test_the_template_around_a_text_gives_the_same_frames(events: list[Event]) -> None:
    one, other = presenter(tools=False), presenter(tools=False)
    for event in events:
        around = one.around()
        shown = one.frames((event,))
        if type(event) is Delta and around is not None and event.text:
            assert shown == around.head + around.text(event.text) + around.tail
        assert shown == other.frames((event,))
