"""Limited model: load above a strict limit all day, with calls counted at its engine.

The engine writes down every call, clients write down when they sent it; what arrived can have been admitted or not
(`limits.judge`), whatever the nodes say of it.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.agents.cluster import Cluster, ClusterError
from smg_chaos.gameday.agents.engine_pool import CHAT, until
from smg_chaos.gameday.agents.engine_processes import EngineProcess
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.history.response_request import ask
from smg_chaos.gameday.lab.lab import Lab
from smg_chaos.gameday.limits.clients.trial_records import read_arrivals
from smg_chaos.gameday.limits.definition import Rule
from smg_chaos.gameday.limits.judge import Allowance, Amount, fullest
from smg_chaos.gameday.limits.report import SMEAR_US
from smg_chaos.gameday.whole.clients.balancer import Balancer
from smg_chaos.statistics import Figure

MODEL: Final = "capped"
LIMIT: Final = 5
_ASKED_PER_S: Final = 8.0
_WINDOW_US: Final = 1_000_000
_NUMBER: Final = 50
_KNOWN_S: Final = 30.0
_OPEN_MAX: Final = 200
_ANSWER_S: Final = 30.0
_PATH: Final = f"/v1/cluster/limits/model={MODEL}"


class Capped:
    """The engine of the limited model, and the clients that ask for it."""

    def __init__(
        self,
        cluster: Cluster,
        place: str,
        balancer: Balancer[SmgAgent],
        *,
        now_us: Callable[[], int],
    ) -> None:
        self._cluster = cluster
        self._lab: Lab = cluster.lab
        self._balancer = balancer
        self._now_us = now_us
        self._account: Path = cluster.agents[0].folder.parent / "capped.account"
        flags = ("--script", "fixed", "--itl-ms", "1", "--slots", "512", "--no-cache")
        accounts = ("--account", str(self._account))
        self.engine = EngineProcess(cluster, _NUMBER, (*flags, *accounts), place=place, model=MODEL)
        self._sent_us: dict[int, int] = {}
        self._open = 0
        self._statuses: dict[int, int] = {}
        self._over = False

    async def define(self, nodes: list[SmgAgent]) -> None:
        """Set the limit through one node; return when all have heard of it, ClusterError if one does not."""
        rule = Rule(MODEL, requests=f"{LIMIT}/second")
        status, said = await nodes[0].ask("PUT", _PATH, rule.body(), headers={"if-match": "*"})
        if status >= 300:
            raise AgentError(f"{nodes[0].name} does not set the limit: {status} {said[:300]!r}")
        version = json.loads(said).get("version")

        async def known() -> bool:
            told = [await node.ask("GET", _PATH) for node in nodes]
            return all(
                status == 200 and json.loads(answer)["limit"].get("version") == version
                for status, answer in told
            )

        if await until(self._cluster, known, _KNOWN_S) is None:
            raise ClusterError("not all nodes hear of the limit")

    async def run(self) -> None:
        """Ask until told to `stop`; return when the last answer has come."""
        serial = 0
        async with asyncio.TaskGroup() as group:
            while not self._over:
                if self._open < _OPEN_MAX:
                    serial += 1
                    group.create_task(self._ask(serial))
                await asyncio.sleep(1 / _ASKED_PER_S)

    def stop(self) -> None:
        """Ask no more."""
        self._over = True

    async def _ask(self, serial: int) -> None:
        node = self._balancer.next()
        if node is None:
            return
        body = {
            "model": MODEL,
            "messages": [{"role": "user", "content": "How many?"}],
            "max_tokens": 1,
            "seed": serial,
        }
        connect = self._balancer.attempt(node).connect
        self._sent_us[serial] = self._now_us()
        self._open += 1
        try:
            answer = await ask(
                self._lab, node, "POST", CHAT, body, timeout_s=_ANSWER_S, connect=connect
            )
            status = answer.status
        except ConnectionError:
            status = 0
        finally:
            self._open -= 1
        self._statuses[status] = self._statuses.get(status, 0) + 1

    def figures(self) -> list[Figure]:
        """Return whether what arrived can have been admitted, and how much of the limit was used."""
        arrivals = read_arrivals([self._account])
        allowance = Allowance(_WINDOW_US, [Amount(LIMIT, 0)])
        strange = [serial for serial in arrivals if serial not in self._sent_us]
        spans = [
            allowance.span(self._sent_us[serial], arrival.came_us, smear_us=SMEAR_US)
            for serial, arrival in arrivals.items()
            if serial in self._sent_us
        ]
        run = fullest(spans, allowance.of)
        seconds = (run.last - run.first + 1) if run else 0
        says = f"of {len(spans)}; {self._statuses.get(429, 0)} refused"
        if run is not None:
            says += f"; the fullest {seconds} s: {run.charged} of {run.allowed}"
        return [
            Figure(
                "limit: admitted over it, counted at the engine",
                run.excess if run else 0,
                "",
                0,
                says,
            ),
            Figure("limit: calls that nobody asked for", len(strange), "", 0),
        ]
