"""Interactions on the desk of responses: chains, tenants, tokens, and what a client is told that saw too much."""

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Begin, BlockStart, Delta, Event, Fail
from smg_node.core.generation.request import ChatPrompt
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.interactions.errors import InteractionErrors
from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.runs.event_codec import packed
from smg_node.history.service.checkpoint_tokens import Checkpoint
from smg_node.system_clock import SystemClock
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from smg_storage.records import Access
from smg_storage.store import HistoryStore
from support.answers.generations import call, text, thought, whole
from support.answers.interactions import SEALS, interaction_ask
from support.history.fake_runs import FakeRun
from support.history.history_world import (
    CountingStore,
    HistoryWorld,
    context,
    history_world,
)
from support.models.family_templates import FAMILIES
from support.models.prompt_corpus import renderer

OTHER = Access(tenant="other")
ROUNDS = 50
QUESTION = {"role": "user", "content": "end"}


async def answered(world: HistoryWorld, **body: Any) -> str:
    run = await world.desks.interactions.create(interaction_ask(**body), context(), world.access)
    async for _ in run.told():
        pass
    assert run.failure is None
    return run.id


async def calling(run: FakeRun) -> AsyncIterator[list[Event]]:
    prompt = run.request.prompts[0]
    assert isinstance(prompt, ChatPrompt)
    number = len(prompt.turns)
    if prompt.turns[-1].role == "tool":
        yield whole(text(f"so {number}"))
    else:
        yield whole(thought("hm"), call(f'{{"n": {number}}}', block=1))


async def chain_of_calls(world: HistoryWorld) -> list[dict[str, Any]]:
    """Return what is shown of each interaction of a chain with calls, and ask a last question behind it."""
    previous: dict[str, Any] = {}
    shown = []
    desk = world.desks.interactions
    for number in range(ROUNDS):
        question = {"type": "user_input", "content": f"q{number}"}
        made = await answered(world, input=[question], **previous)
        shown.append(json.loads(await desk.retrieve(world.access, made, with_input=False)))
        assert shown[-1]["status"] == "requires_action"
        asked = shown[-1]["steps"][1]
        result = {"type": "function_result", "call_id": asked["id"], "result": "1"}
        done = await answered(world, input=[result], previous_interaction_id=made)
        shown.append(json.loads(await desk.retrieve(world.access, done, with_input=False)))
        previous = {"previous_interaction_id": done}
    await answered(world, input=QUESTION["content"], **previous)
    return shown


def said_by_chat(
    number: int, asked: dict[str, Any], spoken: str, thought: str
) -> list[dict[str, Any]]:
    _, called = asked["steps"]
    function = {"name": called["name"], "arguments": json.dumps(called["arguments"])}
    return [
        {"role": "user", "content": f"q{number}"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": thought,
            "tool_calls": [{"id": called["id"], "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": called["id"], "content": "1"},
        {"role": "assistant", "content": spoken},
    ]


def said_by_messages(
    number: int, asked: dict[str, Any], spoken: str, thought: str
) -> list[dict[str, Any]]:
    _, called = asked["steps"]
    signature = SEALS.sign(thought, tenant="", model="m")
    use = {
        "type": "tool_use",
        "id": called["id"],
        "name": called["name"],
        "input": called["arguments"],
    }
    result = {"type": "tool_result", "tool_use_id": called["id"], "content": "1"}
    thinking = {"type": "thinking", "thinking": thought, "signature": signature}
    return [
        {"role": "user", "content": f"q{number}"},
        {"role": "assistant", "content": [thinking, use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": spoken},
    ]


Sayer = Callable[[int, dict[str, Any], str, str], list[dict[str, Any]]]
DIALECTS: dict[str, tuple[Sayer, Any]] = {
    "chat": (said_by_chat, ChatDialect(ReaderOptions())),
    "messages": (said_by_messages, MessagesDialect(ReaderOptions(), SEALS, lambda: 0.0)),
}


@pytest.mark.parametrize("api", DIALECTS)
@pytest.mark.parametrize("ends", ["with a result", "with a question"])
async def test_a_chain_of_interactions_has_the_prompt_of_the_same_turns_by(
    api: str, ends: str
) -> None:
    world = history_world(calling)
    shown = await chain_of_calls(world)
    say, dialect = DIALECTS[api]
    messages: list[dict[str, Any]] = []
    for number in range(ROUNDS):
        asked, done = shown[2 * number : 2 * number + 2]
        is_thinking = ends == "with a result" and number == ROUNDS - 1
        thought = "hm" if is_thinking or api == "messages" else ""
        messages += say(number, asked, done["steps"][0]["content"][0]["text"], thought)
    messages = messages[:-1] if ends == "with a result" else [*messages, QUESTION]
    wanted = dialect.read({"model": "m", "max_tokens": 9, "messages": messages}).request.prompts[0]
    told = world.generations.runs[-2 if ends == "with a result" else -1].request.prompts[0]
    assert isinstance(wanted, ChatPrompt)
    assert isinstance(told, ChatPrompt)
    now = datetime(2026, 7, 1, tzinfo=UTC)
    thoughts = set()
    for family in FAMILIES.values():
        rendering = renderer(family.template)
        prompt = rendering.render(told, now=now)
        assert prompt == rendering.render(wanted, now=now)
        thoughts.add(prompt.count("hm"))
        assert f"so {4 * ROUNDS - 5}" in prompt
    # Thoughts of what is answered are over, whoever asks; and not every family shows them.
    assert thoughts == ({0, 1} if ends == "with a result" else {0})


NOT_FOUND = {
    "retrieve": lambda desk, access, its: desk.retrieve(access, its, with_input=True),
    "follow": lambda desk, access, its: desk.follow(access, its, None),
    "follow from an event": lambda desk, access, its: desk.follow(access, its, 1),
    "cancel": lambda desk, access, its: desk.cancel(access, its),
    "delete": lambda desk, access, its: desk.delete(access, its),
    "resume": lambda desk, access, its: desk.resume(access, Checkpoint(its, 1)),
    "continue": lambda desk, access, its: desk.create(
        interaction_ask(input="hi", previous_interaction_id=its), context(), access
    ),
}
NOBODYS = "int_" + "0123456789ab" * 4


@pytest.mark.parametrize("asking", NOT_FOUND)
async def test_another_tenants_interaction_is_as_unknown_and_as_much_work(asking: str) -> None:
    clock = SystemClock()
    store = CountingStore(MemoryStore(Bounds(), lambda: clock.now_ms() * 1_000))
    world = history_world(store=cast("HistoryStore", store))
    made = await answered(world, input="hi")
    seen = {}
    for whose, interaction_id in (("a rival's", made), ("nobody's", NOBODYS)):
        before = len(store.asked)
        with pytest.raises(SmgError) as caught:
            await NOT_FOUND[asking](world.desks.interactions, OTHER, interaction_id)
        body = InteractionErrors().error_body(caught.value, "req_1").decode()
        assert interaction_id in body
        told = body.replace(interaction_id, "ID")
        seen[whose] = (caught.value.status, caught.value.where, told, store.asked[before:])
    assert seen["a rival's"] == seen["nobody's"]
    status, where, told, asked = seen["nobody's"]
    assert status == (400 if asking == "continue" else 404)
    assert where == ("previous_interaction_id" if asking == "continue" else None)
    assert "response" not in told
    assert asked


@pytest.mark.parametrize("interaction_id", ["none", "resp_none", "resp_" + "0123456789ab" * 4])
async def test_what_is_no_id_of_this_api_is_not_found_without_asking(interaction_id: str) -> None:
    clock = SystemClock()
    store = CountingStore(MemoryStore(Bounds(), lambda: clock.now_ms() * 1_000))
    world = history_world(store=cast("HistoryStore", store))
    for asking in ("retrieve", "follow", "cancel", "delete", "resume"):
        with pytest.raises(SmgError) as caught:
            await NOT_FOUND[asking](world.desks.interactions, world.access, interaction_id)
        assert (caught.value.status, caught.value.code) == (404, "interaction_not_found")
    assert store.asked == []


async def test_a_stream_that_has_no_log_any_more_is_refused() -> None:
    world = history_world()
    made = await answered(world, input="hi")
    with pytest.raises(SmgError) as caught:
        await world.desks.interactions.resume(world.access, Checkpoint(made, 9))
    assert (caught.value.status, caught.value.code) == (400, "stream_expired")
    assert caught.value.where == "last_event_id"


async def test_a_client_that_saw_more_than_was_logged_is_told_so() -> None:
    world = history_world()
    made = await answered(world, input="hi")
    blob = packed([NumberedEvent(0, "interaction.created", b'{"event_type":"x","event_id":"0"}')])
    store = world.keeper.store
    await store.append_events(world.access, made, [blob], expires_us=2**60)
    events = await world.desks.interactions.resume(world.access, Checkpoint(made, 9))
    told = [one async for batch in events for one in batch]
    assert [(one.sequence, one.type) for one in told] == [
        (10, "error"),
        (11, "interaction.completed"),
    ]
    assert json.loads(told[0].data)["error"]["code"] == "stream_lost"


async def failing(run: FakeRun) -> AsyncIterator[list[Event]]:
    yield [Begin("1", "m", 1, 3), BlockStart(0, 0, "text"), Delta(0, 0, "Hel", 1)]
    yield [Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died"))]


async def logged(world: HistoryWorld, made: str, *types: str) -> None:
    """Have a log of an interaction: events of these types."""
    events = [
        NumberedEvent(at, kind, b'{"event_type":"%b","event_id":"%d"}' % (kind.encode(), at))
        for at, kind in enumerate(types)
    ]
    store = world.keeper.store
    await store.append_events(world.access, made, [packed(events)], expires_us=2**60)


@pytest.mark.parametrize(
    ("after", "types"),
    [
        (0, ["step.start", "step.stop", "error", "interaction.completed"]),
        (2, ["error", "interaction.completed"]),
        (3, ["error", "interaction.completed"]),
        (4, ["error", "interaction.completed"]),
        (9, ["error", "interaction.completed"]),
    ],
)
async def test_a_failure_is_never_told_without_an_error(after: int, types: list[str]) -> None:
    """Its client may have seen an event of the number that the error has now: the log was closed by another node."""
    world = history_world(failing)
    ask = interaction_ask(input="hi")
    run = await world.desks.interactions.create(ask, context(), world.access)
    async for _ in run.told():
        pass
    assert run.failure is not None
    await logged(world, run.id, "interaction.created", "step.start", "step.stop", "error")
    events = await world.desks.interactions.resume(world.access, Checkpoint(run.id, after))
    told = [one async for batch in events for one in batch]
    assert [one.type for one in told] == types
    assert [one.sequence for one in told] == list(range(after + 1, after + 1 + len(told)))
    assert json.loads(told[-1].data)["interaction"]["status"] == "failed"


@pytest.mark.parametrize(("after", "count"), [(0, 3), (2, 1), (3, 0)])
async def test_a_stream_goes_on_behind_any_of_its_events(after: int, count: int) -> None:
    world = history_world()
    made = await answered(world, input="hi")
    await logged(world, made, "interaction.created", "step.start", "step.stop")
    events = await world.desks.interactions.follow(world.access, made, after)
    assert len([one async for batch in events for one in batch]) == count


@pytest.mark.parametrize("after", [4, 5, 2**31, 10**17])
async def test_a_stream_does_not_go_on_behind_an_event_that_it_never_had(after: int) -> None:
    world = history_world()
    made = await answered(world, input="hi")
    await logged(world, made, "interaction.created", "step.start", "step.stop")
    events = await world.desks.interactions.follow(world.access, made, after)
    with pytest.raises(SmgError) as caught:
        await anext(events)
    assert (caught.value.status, caught.value.where) == (400, "last_event_id")
    assert str(after) in caught.value.message


async def read_through(events: AsyncIterator[Any]) -> None:
    async for _ in events:
        pass


async def test_streams_that_clients_go_on_with_are_counted_and_no_others() -> None:
    world = history_world()
    made = await answered(world, input="hi")
    types = ("interaction.created", "step.start", "step.stop")
    await logged(world, made, *types)
    desk, access = world.desks.interactions, world.access
    await read_through(await desk.follow(access, made, None))
    assert world.resumed.over == {}
    await read_through(await desk.follow(access, made, 0))
    # The last event, behind which nothing is, and one that never was.
    await read_through(await desk.follow(access, made, len(types)))
    with pytest.raises(SmgError):
        await read_through(await desk.follow(access, made, len(types) + 1))
    for place in (Checkpoint(made, -1), Checkpoint(made, 1), Checkpoint(made, 1, leaving=True)):
        await read_through(await desk.resume(access, place))
    # It has seen more than there is.
    await read_through(await desk.resume(access, Checkpoint(made, 9)))
    with pytest.raises(SmgError):
        await desk.resume(access, Checkpoint(NOBODYS, 1))
    assert world.resumed.over == {
        ("interactions", "cut", "whole"): 4,
        ("interactions", "drain", "whole"): 1,
        ("interactions", "cut", "refused"): 1,
        ("interactions", "cut", "lost"): 1,
    }


async def test_a_stream_without_a_log_that_a_client_would_go_on_with_is_counted_as_refused() -> (
    None
):
    world = history_world()
    made = await answered(world, input="hi")
    with pytest.raises(SmgError):
        await world.desks.interactions.resume(world.access, Checkpoint(made, 3, leaving=True))
    assert world.resumed.over == {("interactions", "drain", "refused"): 1}


async def test_what_is_not_stored_cannot_be_continued() -> None:
    world = history_world()
    made = await answered(world, input="hi", store=False)
    ask = interaction_ask(input="hi", previous_interaction_id=made)
    with pytest.raises(SmgError) as caught:
        await world.desks.interactions.create(ask, context(), world.access)
    assert caught.value.code == "previous_interaction_not_found"


async def test_a_deleted_ancestor_breaks_the_chain_and_nothing_else() -> None:
    world = history_world()
    first = await answered(world, input="a")
    second = await answered(world, input="b", previous_interaction_id=first)
    desk = world.desks.interactions
    await desk.delete(world.access, first)
    shown = json.loads(await desk.retrieve(world.access, second, with_input=True))
    assert shown["previous_interaction_id"] == first
    assert [step["type"] for step in shown["input"]] == ["user_input"]
    ask = interaction_ask(input="c", previous_interaction_id=second)
    with pytest.raises(SmgError) as caught:
        await desk.create(ask, context(), world.access)
    assert (caught.value.code, first in caught.value.message) == (
        "previous_interaction_not_found",
        True,
    )
