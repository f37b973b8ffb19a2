"""Loop run: passes and runs told as one stream that obeys the grammar."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from smg_node.core.context_limit import TOO_LONG_CODE
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Event,
    Fail,
    Listed,
    RunEnd,
    RunStart,
    Usage,
)
from smg_node.core.generation.request import MediaPart, TextPart, Turn, media_of
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.loop_world import (
    CONTEXT,
    Listener,
    Model,
    Servers,
    breaks,
    calls,
    heard,
    loop,
    request,
    said,
    serving,
    speech,
)

WEATHER = {"w": ["weather"]}


async def test_a_request_without_tools_of_ours_goes_straight_to_the_model() -> None:
    model = Model(speech(said("hi")))
    run = loop(model, None).start("chat", request(None), CONTEXT)
    assert run is model.runs[0]


async def test_a_call_is_run_and_the_model_goes_on_with_its_result() -> None:
    model = Model(
        speech(said("let me see"), calls("weather", '{"city":"Bonn"}', block=1)),
        speech(said("it rains")),
    )
    servers = Servers(WEATHER)
    listener = await heard(model, servers, request(serving("w")))
    assert servers.ran == [("w", "weather", '{"city":"Bonn"}')]
    assert listener.text() == "let me seeit rains"
    assert listener.reason() == "stop"
    turns = model.prompt(1).turns
    assert [turn.role for turn in turns] == ["user", "assistant", "tool"]
    assert turns[1].content == "let me see"
    assert turns[1].calls[0].arguments == '{"city":"Bonn"}'
    assert turns[2].answers_call == turns[1].calls[0].call_id
    assert turns[2].content == 'weather {"city":"Bonn"}'
    assert listener.answer().usage == Usage(20, 8, 4)


class Shown:
    """Shows all pictures, as far as there may be `most`; `beside` is how many there were each time."""

    def __init__(self, most: int = 99) -> None:
        self.most = most
        self.beside: list[int] = []

    async def shown(
        self,
        model: str,
        content: Sequence[Mapping[str, Any]],
        beside: int = 0,
        tenant: str | None = None,
    ) -> tuple[str, ...]:
        assert model == "m"
        self.beside.append(beside)
        await asyncio.sleep(0)
        found = [f"data:image;base64,{block['data']}" for block in content if "data" in block]
        return tuple(found[: self.most - beside])


async def draws(tool: str, arguments: str, options: CallOptions) -> CallResult:
    picture = {"type": "image", "mimeType": "image/png"}
    return CallResult(({**picture, "data": "AAAA"}, {**picture, "data": "BBBB"}))


async def test_the_next_pass_is_shown_the_pictures_of_results() -> None:
    model = Model(speech(calls("weather")), speech(said("it rains")))
    await heard(model, Servers(WEATHER, draws), request(serving("w")), pictures=Shown())
    content = model.prompt(1).turns[2].content
    assert isinstance(content, tuple)
    assert isinstance(content[0], TextPart)
    assert [part.source for part in content if isinstance(part, MediaPart)] == [
        "data:image;base64,AAAA",
        "data:image;base64,BBBB",
    ]


def _refused(kind: ErrorKind, code: str, where: str = "messages") -> Sequence[Sequence[Event]]:
    return [[Fail(SmgError(kind, "refused", where=where, code=code))]]


@pytest.mark.parametrize(
    ("kind", "code", "where", "why"),
    [
        (ErrorKind.RATE_LIMITED, "media_busy", "messages", "there is no room for it at the moment"),
        (ErrorKind.TOO_LARGE, "media_too_large", "messages", "it does not fit beside"),
        (ErrorKind.INVALID_REQUEST, TOO_LONG_CODE, "messages", "it does not fit into this"),
        (ErrorKind.INVALID_REQUEST, "unsupported_parameter", "tools", "cannot be shown it now"),
        # Of a video that a client sent, which this model takes alone.
        (ErrorKind.INVALID_REQUEST, "unsupported_parameter", "messages[0]", "beside the rest"),
    ],
)
async def test_a_pass_that_is_refused_for_pictures_of_tools_goes_on_in_words(
    kind: ErrorKind, code: str, where: str, why: str
) -> None:
    refused = _refused(kind, code, where)
    model = Model(speech(calls("weather")), refused, speech(said("it rains")))
    listener = await heard(model, Servers(WEATHER, draws), request(serving("w")), pictures=Shown())
    assert listener.text() == "it rains"
    assert listener.answer().usage == Usage(20, 8, 4)
    assert [run.context.patient for run in model.runs] == [False, True, True]
    content = model.prompt(2).turns[2].content
    assert isinstance(content, tuple)
    assert not media_of(model.prompt(2).turns)
    last = content[-1]
    assert isinstance(last, TextPart)
    assert last.text.startswith("[the 2 pictures are not shown: ")
    assert why in last.text


async def test_a_pass_without_pictures_of_tools_that_is_refused_ends_the_answer() -> None:
    refused = _refused(ErrorKind.RATE_LIMITED, "media_busy")
    other = _refused(ErrorKind.RATE_LIMITED, "rate_limit_exceeded")
    asked = Turn("user", (TextPart("hello"), MediaPart("image", "https://a.example/a.png", "x")))
    for answer, servers in ((refused, Servers(WEATHER)), (other, Servers(WEATHER, draws))):
        model = Model(speech(calls("weather")), answer)
        listener = await heard(
            model, servers, request(serving("w"), turns=[asked]), pictures=Shown()
        )
        assert isinstance(listener.events[-1], Fail)
        assert len(model.runs) == 2, "what a client sent is not left out"


async def test_pictures_are_left_out_once_and_a_second_refusal_is_the_end() -> None:
    refused = _refused(ErrorKind.RATE_LIMITED, "media_busy")
    model = Model(speech(calls("weather")), refused, refused)
    listener = await heard(model, Servers(WEATHER, draws), request(serving("w")), pictures=Shown())
    assert isinstance(listener.events[-1], Fail)


async def test_pictures_of_all_results_and_of_the_conversation_are_counted_together() -> None:
    both = [*calls("weather", "{}"), *calls("weather", '{"a":1}', block=1)]
    model = Model(speech(both), speech(calls("weather", '{"a":2}')), speech(said("it rains")))
    asked = Turn("user", (TextPart("hello"), MediaPart("image", "https://a.example/a.png", "x")))
    pictures = Shown(most=4)
    listener = await heard(
        model, Servers(WEATHER, draws), request(serving("w"), turns=[asked]), pictures=pictures
    )
    assert listener.text() == "it rains"
    assert pictures.beside == [1, 3, 4]
    assert len(media_of(model.prompt(2).turns)) == 4


async def test_a_stream_begins_once_and_lists_come_first() -> None:
    model = Model(speech(calls("weather")), speech(said("done")))
    listener = await heard(model, Servers(WEATHER), request(serving("w")))
    kinds = [type(event) for event in listener.events]
    assert kinds[:3] == [Begin, Listed, BlockStart]
    assert kinds.count(Begin) == 1
    assert listener.of(Listed)[0].tools[0].name == "weather"


async def test_a_call_of_ours_has_its_owner_from_its_start() -> None:
    model = Model(speech(calls("weather")), speech(said("done")))
    listener = await heard(model, Servers(WEATHER), request(serving("w")))
    start, end = listener.of(BlockStart)[0], listener.of(BlockEnd)[0]
    assert start.owner is not None
    assert (start.owner.server, start.owner.tool) == ("w", "weather")
    assert end.owner == start.owner
    assert listener.of(BlockStart)[1].owner is None


async def test_a_run_begins_while_its_pass_goes_on() -> None:
    began, spoke = asyncio.Event(), asyncio.Event()

    async def works(tool: str, arguments: str, options: CallOptions) -> CallResult:
        began.set()
        await spoke.wait()
        return CallResult(({"type": "text", "text": "ok"},))

    model = Model(
        speech(calls("weather"), said("meanwhile", block=1)), speech(said("done")), step_s=0.01
    )
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        hearing = group.create_task(heard(model, Servers(WEATHER, works), request(serving("w"))))
        await began.wait()
        assert not model.runs[0].finished
        spoke.set()
    listener = hearing.result()
    kinds = [type(event) for event in listener.events]
    assert kinds.index(RunStart) < kinds.index(RunEnd)
    assert listener.reason() == "stop"


async def test_a_pass_begins_when_all_runs_are_over() -> None:
    model = Model(
        speech(calls("weather", '{"n":1}'), calls("weather", '{"n":2}', block=1)),
        speech(said("done")),
    )
    servers = Servers(WEATHER)
    listener = await heard(model, servers, request(serving("w")))
    assert model.results(1) == ['weather {"n":1}', 'weather {"n":2}']
    kinds = [type(event) for event in listener.events]
    last_run = len(kinds) - 1 - kinds[::-1].index(RunEnd)
    text = next(at for at, one in enumerate(listener.events) if getattr(one, "kind", "") == "text")
    assert last_run < text


async def test_the_failure_of_a_pass_ends_its_runs_first() -> None:
    async def never(tool: str, arguments: str, options: CallOptions) -> CallResult:
        assert options.sending is not None
        options.sending()
        await asyncio.Event().wait()
        raise AssertionError

    error = SmgError(ErrorKind.UPSTREAM_FAILED, "it broke")
    model = Model(breaks(calls("weather"), said("and", block=1), error=error), step_s=0.01)
    servers = Servers(WEATHER, never)
    listener = await heard(model, servers, request(serving("w")))
    assert isinstance(listener.events[-1], Fail)
    assert listener.results()[0].cut
    assert "may have run" in listener.results()[0].text
    assert servers.open == 0


async def test_a_lost_client_cancels_runs_which_are_told_as_cut() -> None:
    begun = asyncio.Event()

    async def never(tool: str, arguments: str, options: CallOptions) -> CallResult:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    model = Model(speech(calls("weather")))
    servers = Servers(WEATHER, never)

    listener = Listener()
    run = loop(model, servers).start("responses", request(serving("w")), CONTEXT)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(run.tell(listener.receive))
        await begun.wait()
        task.cancel()
    assert task.cancelled()
    assert servers.open == 0
    assert [result.cut for result in listener.results()] == [True]
