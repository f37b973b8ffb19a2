"""Arguments of calls go out member by member, and are the same object however they were printed in pieces."""

import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from smg_node.dialects.interactions.events.call_arguments import object_text, text_missing
from smg_node.dialects.interactions.events.interaction_object import public_object
from smg_node.dialects.interactions.events.log_replay import InteractionReplay, PartialInteraction
from smg_node.dialects.responses.events.numbered_events import DONE, NumberedEvent, frame
from support.answers.generations import call, text, whole
from support.answers.interactions import interaction_presenter, told_interaction
from support.clients.genai_client import client_of

PRINTED = '{"path": "a\\u00e9\\n.py", "lines": [1, {"to": -2.5e3}], "all": true}'
MEANT = {"path": "a\u00e9\n.py", "lines": [1, {"to": -2500.0}], "all": True}


def arguments_of(told: Sequence[NumberedEvent]) -> list[str]:
    events = [json.loads(one.data) for one in told if one.type == "step.delta"]
    return [event["delta"]["arguments"] for event in events]


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (["{}"], ["{}"]),
        ([""], ["{}"]),
        (['{"a": 1}'], ['{"a": 1', "}"]),
        (
            ['{"a": "x', 'y", "b": 2', ", ", '"c": {}}', " "],
            ['{"a": "xy"', ', "b": 2', ', "c": {}', "}"],
        ),
        (['{"a": 1', "2}"], ['{"a": 12', "}"]),
        (['{"a": 1, "b": "rm -rf /tm'], ['{"a": 1', ',"INVALID_JSON":", \\"b\\": \\"rm -rf /tm"}']),
        (["[1]"], ['{"INVALID_JSON":"[1]"}']),
        (['{"a": 1, oops}', "more"], ['{"a": 1', ',"INVALID_JSON":", oops}more"}']),
    ],
)
def test_a_member_goes_out_when_it_is_complete(printed: list[str], expected: list[str]) -> None:
    _, told = told_interaction(whole(call(*printed)))
    assert arguments_of(told) == expected
    assert "".join(expected) == object_text("".join(printed))


@pytest.mark.parametrize(
    "said", ["", "{", PRINTED, PRINTED[:-1], '{"a": 1, "b": NaN}', "[1, 2]", "\ud800"]
)
def test_any_two_pieces_are_the_same_object_in_the_stream_and_in_the_row(said: str) -> None:
    expected = object_text(said)
    for cut in range(len(said) + 1):
        presenter, told = told_interaction(whole(call(said[:cut], said[cut:])))
        assert "".join(arguments_of(told)) == expected
        shown = json.loads(public_object(presenter.response()))
        assert shown["steps"][0]["arguments"] == json.loads(expected)


def test_the_official_client_reads_the_same_arguments_at_every_cut_of_them() -> None:
    streams = []
    for cut in range(len(PRINTED) + 1):
        _, told = told_interaction(whole(text("So."), call(PRINTED[:cut], PRINTED[cut:], block=1)))
        streams.append(b"".join(map(frame, told)) + DONE)
    left = iter(streams)
    headers = {"content-type": "text/event-stream"}
    answers = httpx2.MockTransport(
        lambda _: httpx2.Response(200, content=next(left), headers=headers)
    )
    with client_of("http://node", httpx_client=httpx2.Client(transport=answers)) as client:
        for _ in streams:
            assert heard_by(client) == {0: "So.", 1: MEANT}


def heard_by(client: Any) -> dict[int, Any]:
    """Return what a user of the client puts together of a stream: texts and arguments, by index."""
    heard: dict[int, str] = {}
    calls = set()
    for event in client.interactions.create(model="m", input="hi", stream=True):
        if event.event_type == "step.start" and event.step.type == "function_call":
            calls.add(event.index)
            assert event.step.arguments == {}
        elif event.event_type == "step.delta":
            said = event.delta.arguments if event.index in calls else event.delta.text
            heard[event.index] = heard.get(event.index, "") + said
    return {index: json.loads(said) if index in calls else said for index, said in heard.items()}


@pytest.mark.parametrize(
    ("told", "missing"),
    [
        ("", "{}"),
        ("{}", ""),
        ('{"a": {}}', ""),
        ('{"a": {}', ',"INVALID_JSON":""}'),
        ('{"a": 1', ',"INVALID_JSON":""}'),
        ('{"a": "}"', ',"INVALID_JSON":""}'),
        ('{"a": "\\u00e9"}', ""),
    ],
)
def test_what_nobody_knows_more_of_becomes_an_object_that_says_so(told: str, missing: str) -> None:
    assert text_missing(told) == missing
    assert isinstance(json.loads(told + missing), dict)


def test_an_open_call_shows_no_arguments_here_or_on_another_node() -> None:
    presenter = interaction_presenter()
    kept = presenter.response()
    told = presenter.begin()
    told += presenter.tell(whole(call('{"a": 1,', ' "b"'))[:4])
    assert arguments_of(told) == ['{"a": 1']
    elsewhere = PartialInteraction(kept)
    elsewhere.hear(told)
    for body in (presenter.response(), elsewhere.body()):
        (step,) = json.loads(public_object(body))["steps"]
        assert (step["type"], step["arguments"]) == ("function_call", {})


@pytest.mark.parametrize("printed", [["{}"], ["", '{"a": 1', ', "b": {"c": []}, ', '"d": "x"}']])
def test_a_log_that_ends_in_a_call_is_closed_with_an_object(printed: list[str]) -> None:
    presenter, told = told_interaction(whole(call(*printed)))
    for cut in range(2, len(told) - 1):
        replay = InteractionReplay()
        replay.feed(told[:cut])
        assert presenter.outcome is not None
        closing = replay.close(presenter.response(), presenter.outcome.at(9))
        said = "".join(arguments_of([*told[:cut], *closing.events]))
        read = json.loads(said)
        assert json.loads(closing.output[0].document)["arguments"] == said
        whole_of_it = json.loads("".join(printed))
        assert {
            name: read[name] for name in read if name != "INVALID_JSON"
        }.items() <= whole_of_it.items()
        assert ("INVALID_JSON" in read) == (read != whole_of_it and read != {})
