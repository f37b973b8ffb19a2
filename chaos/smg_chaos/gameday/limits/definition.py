"""Definition of limits by an operator, through any node that answers, and the nodes' own view of
them.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import nodes_of
from smg_chaos.gameday.limits.clients.client_messages import MODEL, Asks
from smg_chaos.gameday.limits.scene import Scene

_PATH: Final = "/v1/cluster/limits/model="
_LIMIT_S: Final = 60.0
_LOOK_S: Final = 0.1
_TRICKLE_PER_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Rule:
    """Limit for a model: so much per window, as in `40/second` or `400/2s`, or so many at a
    time.
    """

    model: str = MODEL
    requests: str = ""
    tokens: str = ""
    concurrency: int | None = None
    mode: str = "strict"
    standing: float = 0.5
    on_exhausted: str = "debt"

    def body(self) -> bytes:
        """Return the body of the API request."""
        amounts = [
            {"unit": unit, "amount": int(amount), "window": window}
            for unit, text in (("requests", self.requests), ("tokens", self.tokens))
            if text
            for amount, _, window in [text.partition("/")]
        ]
        rule: dict[str, Any] = {
            "amounts": amounts,
            "mode": self.mode,
            "standing": self.standing,
            "on_exhausted": self.on_exhausted,
        }
        if self.concurrency is not None:
            rule["concurrency"] = self.concurrency
        return json.dumps(rule).encode()


class Definer:
    """Operator that sets the cluster's limits."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._nodes = nodes_of(scene.cluster)

    async def begin(self, rule: Rule, asks: Asks | None = None) -> None:
        """Set a limit that is not in use yet; return when there is an owner and all nodes apply it.

        A limit without requests has no owner, so a trickle of requests is sent meanwhile.
        """
        names = self._scene.cluster.names
        await self._scene.rate(dict.fromkeys(names, _TRICKLE_PER_S), asks or Asks(rule.model))
        await self.put(rule)
        await self._scene.quiet()

    async def put(self, rule: Rule) -> int:
        """Set a limit that is in use; return when (wall clock, microseconds) all nodes were seen to
        apply it.
        """
        return await self._put(rule, self._known)

    async def put_unused(self, rule: Rule) -> int:
        """Set a limit that may not be in use yet, and so have no owner; return when (wall clock,
        microseconds) all nodes were seen to have received it.
        """
        return await self._put(rule, self._received)

    async def _put(self, rule: Rule, arrived: Callable[[str, object], Awaitable[bool]]) -> int:
        status, answer = await self._any("PUT", rule.model, rule.body(), {"if-match": "*"})
        if status >= 300:
            raise AgentError(f"no node sets the limit {rule}: {status} {answer[:300]!r}")
        version = json.loads(answer).get("version")
        for _ in range(round(_LIMIT_S / _LOOK_S)):
            if await arrived(rule.model, version):
                return self._scene.now_us()
            await asyncio.sleep(_LOOK_S)
        said = await self._said(rule.model)
        raise ClusterError(f"not all nodes go by the limit {rule}: {said}")

    async def _known(self, model: str, version: object) -> bool:
        """Return whether every running node has received this version, and the owner knows that all
        apply it.

        Only in this order: an owner that has not received it reports that all apply the version it
        knows.
        """
        if not await self._received(model, version):
            return False
        uses: Sequence[Mapping[str, Any]] = (await self._said(model))["uses"]
        return bool(uses) and all(use["owner"] and not use["not_adopted"] for use in uses)

    async def _received(self, model: str, version: object) -> bool:
        """Return whether every running node has received this version."""
        for node in self._nodes:
            if node.ended() is not None:
                continue
            try:
                status, answer = await node.ask("GET", f"{_PATH}{model}")
            except ConnectionError:
                return False
            if status != 200 or json.loads(answer)["limit"].get("version") != version:
                return False
        return True

    async def owner(self, model: str = MODEL) -> str:
        """Return the name of the node that owns the limit; ClusterError if there is none for
        long.
        """
        for _ in range(round(_LIMIT_S / _LOOK_S)):
            uses = (await self._said(model))["uses"]
            if uses and uses[0]["owner"]:
                return str(uses[0]["owner"])
            await asyncio.sleep(_LOOK_S)
        raise ClusterError(f"nobody owns the limit of {model}")

    async def use(self, model: str = MODEL) -> Mapping[str, Any]:
        """Return the cluster's report of what is used of a limit."""
        return await self._said(model)

    async def books(self, model: str, unit: str) -> dict[tuple[str, int], int]:
        """Return the rights spent by each node's books, by its name and the window, as far as they
        go back.

        What was used without a right is not among them until it is paid for.
        """
        rows: Mapping[str, Sequence[Mapping[str, Any]]]
        rows = (await self._said(model, "?rows=true"))["rows"]
        return {
            (name, int(row["window"])): int(row["spent"]) - int(row["owed"])
            for name, told in rows.items()
            for row in told
            if row["kind"] == "held"
            and row["name"] == name
            and row["key"].partition("#")[2].partition("/")[0] == unit
        }

    async def _said(self, model: str, query: str = "") -> Mapping[str, Any]:
        status, answer = await self._any("GET", f"{model}{query}")
        if status != 200:
            raise AgentError(f"no node tells of the limit of {model}: {status} {answer[:300]!r}")
        said: Mapping[str, Any] = json.loads(answer)
        return said

    async def _any(
        self, method: str, model: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Ask the first node that answers."""
        why: object = "none runs"
        for node in self._nodes:
            if node.ended() is not None:
                continue
            try:
                return await node.ask(method, f"{_PATH}{model}", body, headers=headers)
            except ConnectionError as error:
                why = error
        raise ClusterError(f"no node answers: {why}")
