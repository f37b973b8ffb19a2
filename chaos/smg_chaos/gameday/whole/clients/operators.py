"""Operators: changes of settings, limits, keys and workers all day, through any node that is in."""

import asyncio
import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.agents.engine_pool import Operator
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.limits.definition import Rule
from smg_chaos.gameday.whole.clients.balancer import Balancer
from smg_chaos.gameday.whole.excuses import Excuses
from smg_chaos.gameday.whole.surprises import Surprises

_SETTINGS: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("routing.policy", ("power_of_two", "random", "round_robin", "consistent_hashing")),
    ("routing.wait_for_worker_s", (8, 9, 10)),
    ("workers.probe_interval_s", (1, 2, 3)),
)
_TENANTS: Final = 5
_KEYS: Final = 8
_EVERY_S: Final = 1.0
_SHOWN: Final = 20


class Operators:
    """One operator: changes something about once a second.

    `spare` is an engine that comes and goes.
    """

    def __init__(
        self,
        balancer: Balancer[SmgAgent],
        excuses: Excuses,
        spare: str,
        rng: Random,
        *,
        now_s: Callable[[], float],
        surprises: Surprises | None = None,
    ) -> None:
        self.changes = 0
        self.lost = 0
        self.failed: list[str] = []
        self._balancer = balancer
        self._excuses = excuses
        self._spare = spare
        self._rng = rng
        self._now_s = now_s
        self._surprises = surprises or Surprises()
        self._id = ""
        self._over = False

    async def run(self) -> None:
        """Change something, again and again, until told to `stop`."""
        while not self._over:
            await asyncio.sleep(2 * _EVERY_S * self._rng.random())
            if (node := self._balancer.next()) is not None:
                await self._try(node, self._rng.random())

    def stop(self) -> None:
        """Change nothing more."""
        self._over = True

    async def _try(self, node: SmgAgent, chance: float) -> None:
        begun_s = self._now_s()
        try:
            await self._change(node, chance)
            self.changes += 1
        except (AgentError, ConnectionError) as error:
            if self._excuses.cover(node.name, begun_s, self._now_s()):
                self.lost += 1
            elif len(self.failed) < _SHOWN:
                self.failed.append(f"{node.name}: {error}")
                self._surprises.note("change", node.name, self.failed[-1], begun_s)

    async def _change(self, node: SmgAgent, chance: float) -> None:
        operator, rng = Operator(node), self._rng
        if chance < 0.4:
            key, values = rng.choice(_SETTINGS)
            await operator.set(key, rng.choice(values))
        elif chance < 0.65:
            await self._limit(node, f"tenant=t{rng.randrange(_TENANTS)}")
        elif chance < 0.8:
            await self._key(node, f"t{rng.randrange(_TENANTS)}")
        elif self._id in await operator.workers():
            await self._take_away(operator)
        else:
            self._id = await operator.add(self._spare)

    async def _take_away(self, operator: Operator) -> None:
        """Remove the spare engine; a node that hears meanwhile that another one did has nothing left to do."""
        try:
            await operator.drain(self._id)
            await operator.remove(self._id)
        except AgentError:
            if self._id in await operator.workers():
                raise

    async def _key(self, node: SmgAgent, tenant: str) -> None:
        """Make a user's key, or take back one that this node knows of: what an admin's key closes stays open."""
        path = "/v1/cluster/keys"
        known = [one["id"] for one in (await _told(node, "GET", path))["keys"]]
        if len(known) > _KEYS or (known and self._rng.random() < 0.4):
            await _told(node, "DELETE", f"{path}/{self._rng.choice(sorted(known))}", gone=404)
            return
        wish = {"tenant": tenant, "role": "user"}
        assert (await _told(node, "POST", path, wish))["key"]

    async def _limit(self, node: SmgAgent, scope: str) -> None:
        """Allow a tenant another number of requests."""
        rule = Rule(requests=f"{self._rng.randint(10, 1000)}/minute", mode="balanced")
        path = f"/v1/cluster/limits/{scope}"
        status, said = await node.ask("PUT", path, rule.body(), headers={"if-match": "*"})
        if status >= 300 and status != 409:
            raise AgentError(f"{node.name} does not limit {scope}: {status} {said[:200]!r}")
        if status < 300:
            assert json.loads(said)["version"]


async def _told(
    node: SmgAgent, method: str, path: str, body: Mapping[str, Any] | None = None, *, gone: int = 0
) -> dict[str, Any]:
    """Return what a node answers.

    AgentError if it refuses, unless its status is `gone`: another change was faster.
    """
    content = b"" if body is None else json.dumps(body).encode()
    status, said = await node.ask(method, path, content)
    if status >= 300 and status != gone:
        raise AgentError(f"{node.name}: {method} {path}: {status} {said[:200]!r}")
    answer: dict[str, Any] = json.loads(said)
    return answer
