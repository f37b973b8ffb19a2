"""A generation told as an interaction: which events, in which order, and the object around them."""

import base64
import json
from typing import Any

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Delta, Event, Fail, Usage
from smg_node.dialects.interactions.events.interaction_object import public_object
from smg_node.dialects.responses.events.final_status import FinalStatus
from support.answers.generations import BROKEN, call, text, thought, whole
from support.answers.interactions import (
    INTERACTION_ID,
    SEALS,
    interaction_ask,
    interaction_presenter,
    told_interaction,
)

START, DELTA, STOP = "step.start", "step.delta", "step.stop"
CREATED, COMPLETED = "interaction.created", "interaction.completed"


def kinds(events: list[Event], **asked: Any) -> list[str]:
    return [one.type for one in told_interaction(events, interaction_ask(**asked))[1]]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (whole(), []),
        (whole(text("Hi")), [START, DELTA, STOP]),
        (whole(text("H", "i")), [START, DELTA, DELTA, STOP]),
        (whole(text()), [START, STOP]),
        (
            whole(thought("hm"), text("Hi", block=1)),
            [START, DELTA, DELTA, STOP, START, DELTA, STOP],
        ),
        (whole(call("{}")), [START, DELTA, STOP]),
        (whole(call('{"a":1,', '"b":', "[2]", "}")), [START, DELTA, DELTA, DELTA, STOP]),
    ],
)
def test_each_block_is_one_step(events: list[Event], expected: list[str]) -> None:
    assert kinds(events) == [CREATED, *expected, COMPLETED]


def test_thoughts_that_are_not_shown_have_a_signature_that_carries_them() -> None:
    ask = interaction_ask(generation_config={"thinking_summaries": "none"})
    presenter, told = told_interaction(whole(thought("hm"), text("Hi", block=1)), ask)
    assert [one.type for one in told[:4]] == [CREATED, START, DELTA, STOP]
    delta = json.loads(told[2].data)["delta"]
    signature = base64.b64decode(delta["signature"]).decode()
    assert delta["type"] == "thought_signature"
    assert SEALS.opened(signature, tenant="acme", model="m") == "hm"
    shown = json.loads(public_object(presenter.response()))["steps"][0]
    assert shown == {"type": "thought", "signature": delta["signature"]}


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("[1]", {"INVALID_JSON": "[1]"}),
        ('{"a": "rm -rf /tm', {"INVALID_JSON": '{"a": "rm -rf /tm'}),
        ('{"a": NaN}', {"INVALID_JSON": '{"a": NaN}'}),
    ],
)
def test_arguments_are_an_object_in_the_stream_and_in_the_object(
    printed: str, expected: dict[str, Any]
) -> None:
    presenter, told = told_interaction(whole(call(printed)))
    deltas = [json.loads(one.data)["delta"] for one in told if one.type == DELTA]
    assert {delta["type"] for delta in deltas} == {"arguments_delta"}
    assert json.loads("".join(delta["arguments"] for delta in deltas)) == expected
    shown = json.loads(public_object(presenter.response()))
    assert shown["steps"][0]["arguments"] == expected
    assert shown["status"] == "requires_action"


def test_a_failure_stops_the_open_step_and_is_told_before_the_end() -> None:
    _, told = told_interaction([*whole(text("Hi"))[:3], Fail(BROKEN)])
    assert [one.type for one in told][-3:] == [STOP, "error", COMPLETED]
    error, end = json.loads(told[-2].data), json.loads(told[-1].data)
    assert error["error"]["code"] == BROKEN.code
    assert end["interaction"]["status"] == "failed"
    assert end["interaction"]["errors"] == [error["error"]]


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        (FinalStatus.completed(), "completed"),
        (FinalStatus.incomplete("max_output_tokens"), "incomplete"),
        (FinalStatus.cancelled(), "cancelled"),
    ],
)
def test_every_end_is_told_as_completed_with_its_status(ended: FinalStatus, status: str) -> None:
    presenter = interaction_presenter()
    told = [*presenter.begin(), *presenter.close(ended.at(9))]
    assert json.loads(told[-1].data) == {
        "event_type": COMPLETED,
        "event_id": "1",
        "interaction": {
            "id": INTERACTION_ID,
            "object": "interaction",
            "status": status,
            "model": "m",
            "created": "1970-01-01T00:00:05Z",
            "updated": "1970-01-01T00:00:09Z",
        },
    }


def test_a_queued_interaction_says_when_it_runs() -> None:
    presenter = interaction_presenter()
    queued = json.loads(presenter.queue()[0].data)
    assert queued["interaction"]["status"] == "queued"
    assert json.loads(presenter.begin()[0].data) == {
        "event_type": "interaction.status_update",
        "event_id": "1",
        "interaction_id": INTERACTION_ID,
        "status": "in_progress",
    }


def test_an_end_that_could_not_be_kept_is_told_as_failed_under_the_same_number() -> None:
    presenter = interaction_presenter()
    presenter.begin()
    last = presenter.close(FinalStatus.completed().at(9))[-1]
    error = SmgError(ErrorKind.OVERLOADED, "away", code="store_unavailable")
    instead = presenter.instead(FinalStatus.failed(error).at(9))
    assert (instead.sequence, instead.type) == (last.sequence, last.type)
    said = json.loads(instead.data)["interaction"]
    assert (said["status"], said["errors"]) == (
        "failed",
        [{"code": "store_unavailable", "message": "away"}],
    )


def test_usage_counts_thoughts_apart_from_the_output() -> None:
    events = [Usage(10, 7, 4, 3) if isinstance(one, Usage) else one for one in whole(text("Hi"))]
    presenter, _ = told_interaction(events)
    assert json.loads(public_object(presenter.response()))["usage"] == {
        "total_input_tokens": 10,
        "total_cached_tokens": 4,
        "total_output_tokens": 4,
        "total_thought_tokens": 3,
        "total_tool_use_tokens": 0,
        "total_tokens": 17,
    }


def test_an_open_step_is_part_of_the_object() -> None:
    presenter = interaction_presenter()
    presenter.begin()
    told = presenter.tell(whole(text("Hi"))[:3])
    assert [one.type for one in told] == [START, DELTA]
    shown = json.loads(public_object(presenter.response()))
    assert shown["status"] == "in_progress"
    assert shown["steps"] == [{"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}]


def test_a_delta_without_text_says_nothing() -> None:
    presenter = interaction_presenter()
    presenter.begin()
    presenter.tell(whole(text("Hi"))[:2])
    assert presenter.tell([Delta(0, 0, "", 1)]) == []
