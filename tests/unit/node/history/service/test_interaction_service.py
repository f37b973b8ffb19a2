"""Interactions on the desk of responses: chains, tenants, tokens, and what a client is told that saw too much."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Event
from smg_node.core.generation.request import ChatPrompt
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.runs.event_codec import packed
from smg_node.history.service.checkpoint_tokens import LIFE_MS, Checkpoint, CheckpointTokens
from smg_storage.records import Access
from support.answers.generations import call, text, thought, whole
from support.answers.interactions import interaction_ask
from support.history.fake_runs import FakeRun
from support.history.history_world import HistoryWorld, PlainVault, context, history_world

OTHER = Access(tenant="other")
PLACE = Checkpoint("int_1", 4)
ROUNDS = 50


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


async def test_a_chain_of_interactions_has_the_prompt_of_the_same_turns_by_chat() -> None:
    world = history_world(calling)
    previous: dict[str, Any] = {}
    messages: list[dict[str, Any]] = []
    for number in range(ROUNDS):
        question = {"type": "user_input", "content": f"q{number}"}
        made = await answered(world, input=[question], **previous)
        shown = json.loads(
            await world.desks.interactions.retrieve(world.access, made, with_input=False)
        )
        assert shown["status"] == "requires_action"
        asked = shown["steps"][1]
        result = {"type": "function_result", "call_id": asked["id"], "result": "1"}
        done = await answered(world, input=[result], previous_interaction_id=made)
        previous = {"previous_interaction_id": done}
        spoken = json.loads(
            await world.desks.interactions.retrieve(world.access, done, with_input=False)
        )["steps"][0]["content"][0]["text"]
        function = {"name": asked["name"], "arguments": json.dumps(asked["arguments"])}
        messages += [
            {"role": "user", "content": f"q{number}"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": asked["id"], "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": asked["id"], "content": "1"},
            {"role": "assistant", "content": spoken},
        ]
    messages.append({"role": "user", "content": "end"})
    await answered(world, input="end", **previous)
    told = world.generations.runs[-1].request.prompts[0]
    by_chat = ChatDialect(ReaderOptions()).read({"model": "m", "messages": messages})
    wanted = by_chat.request.prompts[0]
    assert isinstance(told, ChatPrompt)
    assert isinstance(wanted, ChatPrompt)

    def plain(prompt: ChatPrompt) -> list[Any]:
        return [
            (
                turn.role,
                turn.content,
                [(each.call_id, each.name, json.loads(each.arguments)) for each in turn.calls],
                turn.answers_call,
            )
            for turn in prompt.turns
        ]

    assert plain(told) == plain(wanted)


async def test_another_tenants_interaction_is_as_unknown() -> None:
    world = history_world()
    made = await answered(world, input="hi")
    desk = world.desks.interactions
    for interaction_id in (made, "int_none", "resp_none"):
        for asked in (
            desk.retrieve(OTHER, interaction_id, with_input=True),
            desk.follow(OTHER, interaction_id, None),
            desk.cancel(OTHER, interaction_id),
            desk.delete(OTHER, interaction_id),
            desk.resume(OTHER, Checkpoint(interaction_id, 1)),
        ):
            with pytest.raises(SmgError) as caught:
                await asked
            assert (caught.value.status, caught.value.code) == (404, "interaction_not_found")
    ask = interaction_ask(input="hi", previous_interaction_id=made)
    with pytest.raises(SmgError) as caught:
        await desk.create(ask, context(), OTHER)
    assert (caught.value.status, caught.value.where, caught.value.code) == (
        400,
        "previous_interaction_id",
        "previous_interaction_not_found",
    )
    assert "response" not in caught.value.message


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


def test_a_token_opens_its_place_for_its_tenant_and_for_ten_minutes() -> None:
    tokens = CheckpointTokens(PlainVault())
    token = tokens.issue(PLACE, tenant="acme", now_ms=1_000)
    assert tokens.opened(token, tenant="acme", now_ms=1_000 + LIFE_MS) == PLACE
    assert token.isascii()


@pytest.mark.parametrize(
    ("tenant", "now_ms", "cut", "code"),
    [
        ("other", 1_000, 0, "invalid_continuation_token"),
        ("acme", 1_001 + LIFE_MS, 0, "stream_expired"),
        ("acme", 1_000, 9, "invalid_continuation_token"),
    ],
)
def test_any_other_token_is_refused(tenant: str, now_ms: int, cut: int, code: str) -> None:
    tokens = CheckpointTokens(PlainVault())
    token = tokens.issue(PLACE, tenant="acme", now_ms=1_000)
    with pytest.raises(SmgError) as caught:
        tokens.opened(token[cut:], tenant=tenant, now_ms=now_ms)
    assert (caught.value.status, caught.value.code) == (400, code)


@pytest.mark.parametrize("token", ["", "é", "A" * 5_000, "bm9uc2Vuc2U", "===="])
def test_garbage_is_no_token(token: str) -> None:
    with pytest.raises(SmgError) as caught:
        CheckpointTokens(PlainVault()).opened(token, tenant="acme", now_ms=1_000)
    assert caught.value.code == "invalid_continuation_token"
