"""An interaction told as a stream: what a client puts together of it is what is shown later, from any node."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.cooperative_steps import whole
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Event
from smg_node.dialects.interactions.events.interaction_object import ended_object, public_object
from smg_node.dialects.interactions.events.log_replay import InteractionReplay
from smg_node.dialects.interactions.events.stored_replay import replayed_in_steps
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from support.answers.grammatical_streams import streams
from support.answers.interactions import accumulated, interaction_ask, told_interaction

BROKE = SmgError(ErrorKind.UPSTREAM_FAILED, "its node died")
SHOWN = interaction_ask()
HIDDEN = interaction_ask(generation_config={"thinking_summaries": "none"})


def decoded(told: list[NumberedEvent]) -> list[dict[str, Any]]:
    return [json.loads(one.data) for one in told]


@settings(max_examples=1_000, deadline=None)
@given(streams() | streams(failing=True), st.sampled_from([SHOWN, HIDDEN]))
def test_what_a_client_puts_together_is_what_is_shown(events: list[Event], ask: Any) -> None:
    presenter, told = told_interaction(events, ask)
    shown = json.loads(public_object(presenter.response()))
    assert [one.sequence for one in told] == list(range(len(told)))
    assert [json.loads(one.data)["event_id"] for one in told] == [str(n) for n in range(len(told))]
    assert accumulated(decoded(told)) == shown["steps"]
    end = json.loads(told[-1].data)["interaction"]
    assert "steps" not in end
    assert {key: shown[key] for key in end} == end


@settings(max_examples=200, deadline=None)
@given(streams() | streams(failing=True), st.sampled_from([SHOWN, HIDDEN]))
def test_a_stream_rebuilt_from_the_row_gives_the_same_steps(events: list[Event], ask: Any) -> None:
    presenter, _ = told_interaction(events, ask)
    rebuilt = decoded(whole(replayed_in_steps(presenter.response())))
    shown = json.loads(public_object(presenter.response()))
    assert accumulated(rebuilt) == shown["steps"]
    assert [event["event_id"] for event in rebuilt] == [str(n) for n in range(len(rebuilt))]
    failed = shown["status"] == "failed"
    assert [event["event_type"] for event in rebuilt].count("error") == (1 if failed else 0)


@settings(max_examples=300, deadline=None)
@given(streams() | streams(failing=True), st.data())
def test_a_log_that_ends_anywhere_is_closed_once_and_shows_what_was_told(
    events: list[Event], data: st.DataObject
) -> None:
    presenter, told = told_interaction(events)
    cut = data.draw(st.integers(0, len(told) - 1))
    ended = FinalStatus.failed(BROKE).at(9)
    replay = InteractionReplay()
    replay.feed(told[:cut])
    kept = presenter.response()
    left = replay.close(kept, ended)
    assert [one.sequence for one in left.events] == list(range(cut, left.next))
    stream = decoded([*told[:cut], *left.events])
    assert [event["event_type"] for event in stream].count("error") == 1
    again = InteractionReplay()
    again.feed([*told[:cut], *left.events])
    repeated = again.close(kept, ended)
    assert list(repeated.events) == []
    finished = [one.type for one in told[:cut]].count("step.stop")
    assert accumulated(stream)[:finished] == accumulated(decoded(told))[:finished]
    shown = json.loads(public_object(ended_object(kept, left.output, ended)))
    assert accumulated(stream) == shown["steps"]
    assert shown["status"] == "failed"
