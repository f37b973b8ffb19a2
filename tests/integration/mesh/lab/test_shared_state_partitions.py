"""What real nodes share when the network between them is cut or slow, when all of them are killed, and who looks at workers.

What is held is expected exactly; times are expected with slack, because other tests use the machine too.
"""

import asyncio
import json
import re
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from smg_chaos.gameday.agents.cluster import Cluster
from smg_chaos.gameday.agents.engine_pool import Operator, agreed, until
from smg_chaos.gameday.agents.smg_agent import METRICS_PORT, SmgAgent
from smg_chaos.gameday.lab.http_client import Talk
from smg_chaos.gameday.lab.link_rules import LinkRule, cut
from support.processes.lab import ENGINES_LOG, answers_chat, engine_urls, nodes

pytestmark = pytest.mark.integration

SLACK_S = 3.0
LIMIT_S = 60.0
DEATH_S = 5.0 + SLACK_S
PROBE_S = 1.0
NO_MINIMUM = ("--readiness.min-workers", "0")


def agents_of(cluster: Cluster) -> tuple[SmgAgent, ...]:
    return tuple(agent for agent in cluster.agents if isinstance(agent, SmgAgent))


async def get(agent: SmgAgent, path: str) -> Any:
    status, body = await agent.ask("GET", path)
    assert status == 200, (agent.name, path, status, body)
    return json.loads(body)


async def post(agent: SmgAgent, path: str) -> None:
    status, body = await agent.ask("POST", path, b"{}")
    assert status < 300, (agent.name, path, status, body)


async def metric(cluster: Cluster, agent: SmgAgent, name: str) -> float:
    talk = Talk(lambda: cluster.lab.socket(agent.name), "127.0.0.1", METRICS_PORT)
    try:
        _, body = await talk.ask("GET", "/metrics", timeout_s=10.0)
    finally:
        talk.close()
    families = text_string_to_metric_families(body.decode())
    return sum(one.value for family in families for one in family.samples if one.name == name)


async def comes_true(cluster: Cluster, what: str, true: Callable[[], Awaitable[bool]]) -> None:
    assert await until(cluster, true, LIMIT_S) is not None, f"not within {LIMIT_S:.0f} s: {what}"


async def all_ready(cluster: Cluster, agents: Sequence[SmgAgent], *workers: str) -> None:
    """Return when all these see exactly these workers, ready."""

    async def so() -> bool:
        views = [await Operator(agent).workers() for agent in agents]
        return all(view == dict.fromkeys(workers, "ready") for view in views)

    await comes_true(cluster, "workers ready everywhere", so)


async def setting(agent: SmgAgent, key: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = await get(agent, f"/v1/cluster/settings/{key}")
    return found


async def test_what_two_sides_of_a_cut_write_is_one_truth_and_a_visible_conflict_afterwards(
    tmp_path: Path,
) -> None:
    key = "routing.wait_for_worker_s"
    async with nodes(tmp_path, "a", "b", "c", flags=NO_MINIMUM) as cluster:
        await cluster.form()
        a, b, c = everyone = agents_of(cluster)
        doomed = await Operator(a).add("grpc://127.0.0.1:9")
        assert await agreed(cluster, everyone, LIMIT_S) is not None
        since_ms = cluster.now_ms()
        cluster.lab.set_rules(cut(["a"], ["b", "c"]))
        assert await cluster.until_announced([b, c], "down", "a", since_ms, DEATH_S) is not None
        assert await Operator(a).set(key, 7) == 200
        assert await Operator(c).set(key, 8) == 200
        added = await Operator(c).add("grpc://127.0.0.1:10")
        assert await Operator(a).remove(doomed)
        # Each side is whole, and knows nothing of the other.
        assert await agreed(cluster, [b, c], LIMIT_S) is not None
        assert [(await setting(agent, key))["effective"] for agent in everyone] == [7, 8, 8]
        assert set(await Operator(b).workers()) == {doomed, added}
        assert await Operator(a).workers() == {}
        cluster.lab.set_rules({})
        assert await cluster.until_whole(LIMIT_S) is not None
        agreed_s = await agreed(cluster, everyone, LIMIT_S)
        assert agreed_s is not None
        assert agreed_s <= 2.0 + SLACK_S
        for agent in everyone:
            seen = await setting(agent, key)
            assert (seen["effective"], seen["owner"]) == (8, "c")
            assert [(one["value"], one["owner"]) for one in seen["conflicts"]] == [(7, "a")]
            assert set(await Operator(agent).workers()) == {added}
        # Whoever writes again has seen both, and that is the end of it.
        assert await Operator(b).set(key, 9) == 200
        assert await agreed(cluster, everyone, LIMIT_S) is not None
        for agent in everyone:
            seen = await setting(agent, key)
            assert (seen["effective"], seen["conflicts"]) == (9, [])
            await comes_true(cluster, "running the same", lambda agent=agent: _runs_the_same(agent))  # type: ignore[misc]  # bound now


async def _runs_the_same(agent: SmgAgent) -> bool:
    """Return whether a node knows what all three run, and that it is the same."""
    card = (await get(agent, "/v1/cluster"))["config"]
    return bool(card["same"]) and len(card["members"]) == 3


async def test_a_node_that_joins_is_ready_only_when_it_holds_everything_and_says_why_it_is_not(
    tmp_path: Path,
) -> None:
    urls = [f"grpc://127.0.0.1:{port}" for port in range(100, 160)]
    async with nodes(tmp_path, "a", "b", "late", flags=NO_MINIMUM) as cluster:
        a, b, late = agents_of(cluster)
        await cluster.start_apart([a])
        await cluster.start_apart([b], [a.mesh_address])
        workers = {await Operator(a).add(url) for url in urls}
        assert await Operator(b).set("limits.n_max", 3) == 200
        assert await agreed(cluster, [a, b], LIMIT_S) is not None
        slow = LinkRule(delay_ms=300.0)
        cluster.lab.set_rules({"late>*": slow, "*>late": slow})
        late.start([a.mesh_address])
        reasons: set[str] = set()
        status = 0
        since_us = cluster.monotonic_us()
        while status != 200:
            assert cluster.monotonic_us() - since_us < LIMIT_S * 1e6, reasons
            try:
                status, body = await late.ask("GET", "/readiness")
            except ConnectionError:
                continue  # it does not listen yet
            reasons.update(json.loads(body).get("reasons", ()) if status != 200 else ())
        assert set(await Operator(late).workers()) == workers
        assert (await setting(late, "limits.n_max"))["effective"] == 3
        assert reasons
        waits_for = ("mesh: joining: ", "what the engines have cached is not here yet")
        assert all(reason.startswith(waits_for) for reason in reasons), reasons


async def test_a_cluster_of_which_every_node_was_killed_comes_back_with_all_it_had(
    tmp_path: Path,
) -> None:
    async with nodes(tmp_path, "a", "b", "c", engines=2, listed=False) as cluster:
        await cluster.form()
        a, b, c = everyone = agents_of(cluster)
        one, other = [await Operator(a).add(url) for url in engine_urls(cluster.lab, 2)]
        await all_ready(cluster, everyone, one, other)
        await post(b, f"/workers/{other}/drain")
        assert await Operator(c).set("routing.policy", "round_robin") == 200
        assert await Operator(b).set("models/sim/aliases", ["house-model"]) == 200
        assert await agreed(cluster, everyone, LIMIT_S) is not None

        async def saved() -> bool:
            waits = [await metric(cluster, agent, "smg_node_state_unsaved") for agent in everyone]
            return not any(waits)

        await comes_true(cluster, "on all disks", saved)
        digests = await Operator(a).digests()
        audit = await get(a, "/v1/cluster/audit")
        actions = [row["action"] for row in audit["rows"]]
        assert actions == ["setting.set", "setting.set", "worker.drain", "worker.add", "worker.add"]
        for agent in everyone:
            agent.signal(signal.SIGKILL)
        for agent in everyone:
            assert agent.program is not None
            await agent.end_of(agent.program)
        for agent in everyone:
            agent.start([other.mesh_address for other in everyone])
        await cluster.answering(everyone)
        assert await cluster.until_whole(LIMIT_S) is not None
        for agent in everyone:
            await comes_true(cluster, "ready again", Operator(agent).ready)
        assert await agreed(cluster, everyone, LIMIT_S) is not None
        assert await Operator(a).digests() == digests
        for agent in everyone:
            assert (await get(agent, "/v1/cluster/audit"))["rows"] == audit["rows"]
            assert (await setting(agent, "routing.policy"))["effective"] == "round_robin"
            await comes_true(
                cluster,
                "one ready, one drained",
                lambda agent=agent: _are(agent, {one: "ready", other: "draining"}),  # type: ignore[misc]  # bound now
            )
            assert await answers_chat(agent)
            status, _ = await agent.ask("GET", "/v1/models/house-model")
            assert status == 200


async def _are(agent: SmgAgent, workers: Mapping[str, str]) -> bool:
    return await Operator(agent).workers() == workers


async def test_two_of_five_look_at_each_worker_and_another_one_when_one_of_them_dies(
    tmp_path: Path,
) -> None:
    names = ("a", "b", "c", "d", "e")
    often = ("--workers.probe-interval-s", str(PROBE_S))
    async with nodes(tmp_path, *names, engines=3, listed=False, flags=often) as cluster:
        await cluster.form()
        everyone = agents_of(cluster)
        ids = [await Operator(everyone[0]).add(url) for url in engine_urls(cluster.lab, 3)]
        await all_ready(cluster, everyone, *ids)
        looking = _Lookers(cluster, tmp_path / ENGINES_LOG)
        # Whoever is new to a worker looks once, whose turn it is or not.
        await asyncio.sleep(1.5 * PROBE_S)
        probers = await _probers(everyone[0], ids)
        assert all(len(names) == 2 for names in probers)
        await looking.are(probers)
        dying = cluster[probers[0][0]]
        living = tuple(agent for agent in everyone if agent is not dying)
        since_ms = cluster.now_ms()
        dying.signal(signal.SIGKILL)
        told = await cluster.until_announced(living, "down", dying.name, since_ms, DEATH_S)
        assert told is not None

        async def taken_over() -> bool:
            now = [await _probers(agent, ids) for agent in living]
            return all(one == now[0] for one in now) and not any(
                dying.name in row for row in now[0]
            )

        await comes_true(cluster, "looked at by others", taken_over)
        await asyncio.sleep(1.5 * PROBE_S)
        after = await _probers(living[0], ids)
        assert all(
            set(names) - {dying.name} <= set(now) for names, now in zip(probers, after, strict=True)
        )
        await looking.are(after)
        await all_ready(cluster, living, *ids)
        for agent in living:
            assert await answers_chat(agent)


async def _probers(agent: SmgAgent, ids: Sequence[str]) -> list[list[str]]:
    rows = (await get(agent, "/v1/cluster/workers"))["workers"]
    found = {row["id"]: sorted(row["probers"]) for row in rows}
    return [found[worker] for worker in ids]


class _Lookers:
    """Who asks engines how they are, by their own account."""

    def __init__(self, cluster: Cluster, log: Path) -> None:
        self._log = log
        self._names = {cluster.lab.address(name): name for name in cluster.names}

    async def are(self, probers: Sequence[Sequence[str]]) -> None:
        """Listen for a while; it must be these, and nobody else, who look at each worker."""
        begun = len(self._log.read_text())
        await asyncio.sleep(3 * PROBE_S)
        said = self._log.read_text()[begun:]
        found: dict[str, set[str]] = {}
        for port, host in re.findall(r"call of (?:Check|HealthCheck) at (\d+) from (\S+)", said):
            found.setdefault(port, set()).add(self._names[host])
        assert [sorted(found[port]) for port in sorted(found)] == [list(names) for names in probers]
