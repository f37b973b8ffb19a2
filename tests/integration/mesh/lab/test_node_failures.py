"""What happens to a cluster of three on a bad day, with real nodes and real HTTP clients.

What members believe and announce is expected exactly. Times are expected with some slack: these nodes share
two cores with other tests, and a process that waits for its turn has nothing to do with the mesh.
"""

import asyncio
import signal
from pathlib import Path

import pytest

from smg_chaos.gameday.agents.agent import Announced, Kind
from smg_chaos.gameday.agents.cluster import Cluster, Views
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from support.http.chat_client import begin, chat, finishes_of, text_of
from support.processes.lab import answers_chat, asked_all_the_time, client_of, nodes, ready

pytestmark = pytest.mark.integration

# A busy core serves a node that wants it within about a second; an exchange needs it two or three times.
SLACK_S = 3.0
# The 99th percentile of a crash's detection in a small cluster, where nobody is busy, is 4.5 s.
DEATH_S = 5.0 + SLACK_S
START_S = 60.0


def agents_of(cluster: Cluster) -> tuple[SmgAgent, ...]:
    agents = tuple(agent for agent in cluster.agents if isinstance(agent, SmgAgent))
    assert agents == cluster.agents
    return agents


async def together(cluster: Cluster) -> tuple[SmgAgent, ...]:
    """Start everyone; return when all see each other and serve."""
    await cluster.form()
    agents = agents_of(cluster)
    await ready(*agents)
    return agents


def said(cluster: Cluster, about: list[SmgAgent], since_ms: int, *kinds: Kind) -> list[Announced]:
    names = [agent.name for agent in about]
    return [one for kind in kinds for one in cluster.announced(kind, names, since_ms)]


async def whole_within(cluster: Cluster, limit_s: float) -> None:
    assert await cluster.until_whole(limit_s) is not None, await cluster.describe()


async def test_a_seed_that_is_down_at_boot_and_comes_later_is_joined(tmp_path: Path) -> None:
    async with nodes(tmp_path, "a", "b", "c") as cluster:
        a, b, c = agents_of(cluster)
        await cluster.start_apart([b, c], [a.mesh_address])
        await asyncio.sleep(3.0)  # several attempts fail
        for agent in (b, c):
            assert (await agent.ask("GET", "/liveness"))[0] == 200
            assert set(await agent.view() or ()) == {agent.name}
        await cluster.start_apart([a])
        await whole_within(cluster, 2.0 + SLACK_S)
        assert said(cluster, [a, b, c], 0, "down", "left") == []


@pytest.mark.long
async def test_the_second_seed_is_tried_where_the_first_is_dead(tmp_path: Path) -> None:
    async with nodes(tmp_path, "a", "b", more_places=["nobody"]) as cluster:
        a, b = agents_of(cluster)
        await cluster.start_apart([a])
        nowhere, silent = cluster.lab.address("nobody"), "10.77.9.9"
        cluster.lab.mark()
        b.start([f"{nowhere}:7946", f"{silent}:7946", a.mesh_address])
        await cluster.answering([b])
        await whole_within(cluster, 1.0 + SLACK_S)


async def test_three_nodes_that_start_together_become_one_cluster_and_all_serve(
    tmp_path: Path,
) -> None:
    async with nodes(tmp_path, "a", "b", "c", engines=2) as cluster:
        a, b, c = agents_of(cluster)
        for agent in (a, b, c):
            agent.start([other.mesh_address for other in (a, b, c)])
        await cluster.answering([a, b, c])
        await whole_within(cluster, 2.0 + SLACK_S)
        await ready(a, b, c)
        for agent in (a, b, c):
            assert await answers_chat(agent)
        assert said(cluster, [a, b, c], 0, "down", "left") == []


async def test_when_one_is_killed_the_others_notice_and_answer_every_request(
    tmp_path: Path,
) -> None:
    async with nodes(tmp_path, "a", "b", "c", engines=2) as cluster:
        a, b, c = await together(cluster)
        async with asked_all_the_time(b, c) as went:
            await asyncio.sleep(0.5)
            before = {name: len(results) for name, results in went.items()}
            since_ms = cluster.now_ms()
            a.signal(signal.SIGKILL)
            told = await cluster.until_announced([b, c], "down", "a", since_ms, DEATH_S)
            during = {name: len(results) for name, results in went.items()}
            await asyncio.sleep(1.0)
        assert told is not None
        assert all(all(results) for results in went.values())
        assert all(before[n] < during[n] < len(went[n]) for n in before)
        assert said(cluster, [b, c], since_ms, "down", "left") == []


async def test_one_that_restarts_under_its_name_is_seen_by_all_and_sees_all(tmp_path: Path) -> None:
    async with nodes(tmp_path, "a", "b", "c", engines=2) as cluster:
        a, b, c = await together(cluster)
        since_ms = cluster.now_ms()
        a.signal(signal.SIGKILL)
        assert await cluster.until_announced([b, c], "down", "a", since_ms, DEATH_S) is not None
        await cluster.start_apart([a], [b.mesh_address])
        await whole_within(cluster, 2.0 + SLACK_S)
        await ready(a, b, c)
        for agent in (a, b, c):
            assert await answers_chat(agent)
        assert said(cluster, [b, c], since_ms, "down", "left") == []


@pytest.mark.long
async def test_one_that_is_paused_dies_and_lives_again_and_nobody_else_is_touched(
    tmp_path: Path,
) -> None:
    async with nodes(tmp_path, "a", "b", "c") as cluster:
        await cluster.form()
        a, b, c = agents_of(cluster)
        since_ms = cluster.now_ms()
        a.signal(signal.SIGSTOP)
        try:
            told = await cluster.until_announced([b, c], "down", "a", since_ms, DEATH_S)
            await asyncio.sleep(2.0)
        finally:
            a.signal(signal.SIGCONT)
        assert told is not None
        await whole_within(cluster, 1.0 + SLACK_S)
        # Announced only after a while, lest one that comes and goes be news each time.
        assert await cluster.until_announced([b, c], "up", "a", since_ms, 20.0) is not None
        assert said(cluster, [b, c], since_ms, "down", "left") == []
        assert [
            one for one in said(cluster, [b, c], since_ms, "suspect") if one.observer == "a"
        ] == []
        assert len(said(cluster, [a], since_ms, "down")) == 2


async def test_one_that_is_told_to_end_leaves_undoubted_and_finishes_what_it_began(
    tmp_path: Path,
) -> None:
    async with nodes(tmp_path, "a", "b", "c", engines=2, step_ms=20) as cluster:
        a, b, c = await together(cluster)
        async with asked_all_the_time(b, c) as went, client_of(cluster.lab, a) as client:
            stream = await begin(client, {**chat("sim"), "max_tokens": 100})
            await stream.until_text()
            since_ms = cluster.now_ms()
            a.signal(signal.SIGTERM)
            streamed = await stream.to_end()
            ended_ms = cluster.now_ms()
            told = await cluster.until_announced([b, c], "left", "a", since_ms, 20.0)
            await asyncio.sleep(1.0)
        assert finishes_of(streamed) == ["length"]
        assert len(text_of(streamed)) > 100
        assert told is not None
        assert since_ms + told[-1] * 1000 - ended_ms <= (0.5 + SLACK_S) * 1000
        assert all(all(results) and len(results) > 3 for results in went.values())
        assert said(cluster, [a], since_ms, "suspect", "down") == []
        assert said(cluster, [b, c], since_ms, "down", "left") == []
        assert a.program is not None
        assert await a.end_of(a.program, 10.0) == 0
        views: Views = await cluster.views([b, c])
        assert [view and view["a"].state for view in views.values()] == ["left", "left"]
