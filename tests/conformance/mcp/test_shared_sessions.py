"""Sessions of a real stateful server over nodes that come and go, and over replicas that know only their own."""

import asyncio
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from smg_node.mcp.failures import Failure
from smg_node.mcp.session.session_record import SessionRecord
from smg_node.mcp.tools.content import text_of
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.faulty_server import until
from support.mcp.real_servers import at, everything_server, python_server, typescript_server
from support.mcp.remembering_nodes import remembering, said
from support.mcp.replicas import connection_switch, request_switch, stateful_servers, told
from support.mcp.session_world import SessionWorld, sharing
from support.processes.shared_store_nodes import postgres

pytestmark = pytest.mark.conformance
OLD = "2025-11-25"


@pytest.mark.parametrize("session", ["thread", "shared"])
def test_turns_of_a_thread_on_three_nodes_have_one_session_though_the_first_is_killed(
    tmp_path: Path, session: str
) -> None:
    with (
        postgres(tmp_path) as store,
        remembering(tmp_path, "a", "b", "c", flags=store.flags) as world,
    ):
        world.define(world.replicas[0].url, session=session)
        first = world.turn("a", "one")
        world.kill("a")
        second = world.turn("b", "two", previous_response_id=first["id"])
        third = world.turn("c", "three", previous_response_id=second["id"])
        assert [said(one) for one in (first, second, third)] == ["one", "one two", "one two three"]
        opened = told(world.replicas, "opened")
        assert opened.total() == 1, opened
        assert told(world.replicas, "ran") == {f"remember {next(iter(opened))}": 3}
        other = world.turn("c", "four")
        assert said(other) == ("four" if session == "thread" else "one two three four")


def test_processes_of_one_node_have_one_session(tmp_path: Path) -> None:
    with remembering(tmp_path, "a", flags=("--processes", "2")) as world:
        world.define(world.replicas[0].url)
        words = [str(number) for number in range(12)]
        answers = [world.turn("a", word, store=False) for word in words]
        assert said(answers[-1]) == " ".join(words)
        assert told(world.replicas, "opened").total() == 1


@pytest.mark.parametrize("switch", ["of connections", "of requests", "by chance"])
async def test_replicas_that_know_only_their_own_sessions_show_no_client_a_404(
    tmp_path: Path, switch: str
) -> None:
    async with AsyncExitStack() as stack:
        replicas = stack.enter_context(stateful_servers(tmp_path, 3))
        if switch == "of connections":
            ports = (one.port for one in replicas)
            url = (await stack.enter_async_context(connection_switch(*ports))).url
        else:
            chance = random.Random(7) if switch == "by chance" else None
            url = await stack.enter_async_context(request_switch(replicas, chance))
        _, pools = await stack.enter_async_context(sharing("a", "b", "c"))
        target = at(url, OLD)
        outcomes: list[CallResult | Failure] = []
        for number in range(12):
            pool = pools[number % len(pools)]
            outcomes.append(await pool.call(target, "remember", f'{{"word": "{number}"}}'))
        together = [pool.call(target, "slow", '{"tenths": 3}') for pool in pools for _ in range(6)]
        outcomes += await asyncio.gather(*together)
        assert [one for one in outcomes if isinstance(one, Failure)] == []
        assert told(replicas, "ran").total() == len(outcomes)
        assert told(replicas, "unknown"), "the replicas share nothing"
        if switch != "by chance":
            assert told(replicas, "opened").total() == 1
            last = outcomes[11]
            assert isinstance(last, CallResult)
            assert text_of(last, bytes_max=100) == " ".join(map(str, range(12)))


@pytest.mark.parametrize("kind", ["python", "everything", "typescript"])
async def test_a_session_that_a_real_server_does_not_know_is_opened_anew(
    tmp_path: Path, kind: str
) -> None:
    servers = {
        "python": lambda: python_server("http", tmp_path),
        "everything": lambda: everything_server("streamableHttp", tmp_path),
        "typescript": lambda: typescript_server(tmp_path),
    }
    with servers[kind]() as url:
        async with sharing("a") as (world, (pool,)):
            target = at(url, OLD)
            records = world.records("b")
            key = records.key(target.key)
            # One that another process has open, as it believes: its server was started anew meanwhile.
            assert records.put(key, SessionRecord("0" * 32, OLD, records.me), 60_000)
            argument = "message" if kind == "everything" else "text"
            outcome = await pool.call(target, "echo", f'{{"{argument}": "here"}}')
            assert isinstance(outcome, CallResult), outcome
            assert "here" in text_of(outcome, bytes_max=100)
            kept = records.get(key)
            if kind != "typescript":
                assert kept is not None
                assert kept.record.id != "0" * 32


async def test_a_real_server_gives_its_stream_to_one_and_to_the_next_when_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_node.mcp.session_stream.LOOK_S", 0.1)
    world = SessionWorld()
    with everything_server("streamableHttp", tmp_path) as url:
        target = at(url, OLD)
        async with world.pool("b") as b:
            watching = world.records("c")
            key = watching.key(target.key)

            def holder() -> str:
                kept = watching.get(key)
                return "" if kept is None else kept.record.holder

            async with world.pool("a") as a:
                assert isinstance(await a.call(target, "echo", '{"message": "x"}'), CallResult)
                await until(lambda: holder() == "a.7f3c")
                # What is said of it is lost, so that the other one asks, and is told 409 for as long as it lasts.
                kept = watching.get(key)
                assert kept is not None
                nobody = replace(kept.record, holder="", held_until_ms=0)
                assert watching.put(key, nobody, 60_000)
                assert isinstance(await b.call(target, "echo", '{"message": "x"}'), CallResult)
                await asyncio.sleep(1.0)
                assert holder() == ""
            await until(lambda: holder() == "b.7f3c")
            assert isinstance(await b.call(target, "echo", '{"message": "x"}'), CallResult)
