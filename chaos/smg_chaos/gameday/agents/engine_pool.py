"""Engine pool in the lab, and an operator's and a client's calls for it through any node.

The engines live at the place of the first node, as processes of their own: that node may die, they
go on.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.agents.cluster import Cluster, ClusterError
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.lab.http_client import Talk
from smg_chaos.gameday.lab.lab import Program

MODEL: Final = "sim"
CHAT: Final = "/v1/chat/completions"
_FIRST_PORT: Final = 61000
_START_S: Final = 60.0
_LOOK_S: Final = 0.01
_MB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Pool:
    """Running engines. `urls` are the arguments of `workers add`."""

    program: Program
    urls: tuple[str, ...]


def nodes_of(cluster: Cluster) -> list[SmgAgent]:
    """Return the agents as our own nodes; AgentError where they are another system's."""
    found = [agent for agent in cluster.agents if isinstance(agent, SmgAgent)]
    if len(found) != len(cluster.agents):
        raise AgentError("only smg-node has workers and settings")
    return found


async def start_engines(cluster: Cluster, count: int, *, step_ms: int = 2) -> Pool:
    """Run that many engines; return once all of them listen. ClusterError if they do not."""
    place = cluster.names[0]
    host = cluster.lab.address(place)
    folder = cluster.agents[0].folder
    log = folder / "engines.log"
    command: list[str | Path] = [
        Path(sys.executable).with_name("smg-chaos"),
        *("engine", "--host", host, "--port", str(_FIRST_PORT), "--workers", str(count)),
        *("--contract", "vllm", "--model", MODEL, "--script", "endless"),
        *("--itl-ms", str(step_ms), "--slots", "1024"),
    ]
    with log.open("wb") as output:
        program = cluster.lab.spawn(place, command, output, folder=folder)
    for _ in range(round(_START_S / _LOOK_S)):
        said = log.read_text(errors="replace")
        if said.count("listening on") == count:
            urls = [f"grpc://{host}:{_FIRST_PORT + number}" for number in range(count)]
            return Pool(program, tuple(urls))
        if program.ended() is not None:
            break
        await asyncio.sleep(_LOOK_S)
    raise ClusterError(f"the engines do not start:\n{log.read_text(errors='replace')[-2000:]}")


class Operator:
    """Client of one node's admin API. Errors are AgentError with the node's answer."""

    def __init__(self, agent: SmgAgent) -> None:
        self.agent = agent

    async def add(self, url: str) -> str:
        """Register a worker; return its id."""
        return str((await self._ask("POST", "/workers", {"url": url}))["worker_id"])

    async def drain(self, worker: str) -> None:
        """Drain a worker: it gets no new work."""
        await self._ask("POST", f"/workers/{worker}/drain")

    async def remove(self, worker: str, *, force: bool = False) -> bool:
        """Remove a worker, return when its answers have ended there; False if this node does not
        know that id.

        With `force` they are not waited for.
        """
        path = f"/workers/{worker}{'?force=true' if force else ''}"
        status, answer = await self._raw("DELETE", path)
        if status == 404 and b"worker_not_found" in answer:
            return False
        self._read("DELETE", path, status, answer)
        return True

    async def set(self, key: str, value: Any) -> int:
        """Change a setting over the version that this node has; return the status (409: another
        change came first).
        """
        _, held = await self._raw("GET", f"/v1/cluster/settings/{key}")
        version = json.loads(held).get("version", "0")
        body = json.dumps({"value": value}).encode()
        status, answer = await self._raw(
            "PUT", f"/v1/cluster/settings/{key}", body, {"if-match": f'"{version}"'}
        )
        if status not in (200, 409):
            raise AgentError(f"{self.agent.name} does not set {key}: {status} {answer[:300]!r}")
        return status

    async def setting(self, key: str) -> Any:
        """Return a setting's value in the cluster, as this node sees it; None where it is not
        set.
        """
        return (await self._ask("GET", f"/v1/cluster/settings/{key}")).get("value")

    async def workers(self) -> Mapping[str, str]:
        """Return the status of each worker, as this node sees it, by id."""
        return {str(row["id"]): str(row["status"]) for row in await self._rows()}

    async def loads(self) -> Mapping[str, int]:
        """Return how many calls of this node each worker is working on, by id."""
        return {str(row["id"]): int(row["load"]) for row in await self._rows()}

    async def digests(self) -> Mapping[str, str]:
        """Return the digest of each kind of shared state."""
        return {str(space["name"]): str(space["digest"]) for space in await self._spaces()}

    async def digest(self) -> str:
        """Return the digest of all that is shared, what lost against something newer included."""
        return str((await self._ask("GET", "/v1/cluster/state"))["digest"])

    async def shared_mb(self) -> tuple[float, int]:
        """Return the memory of all shared state on this node, and its number of entries."""
        spaces = await self._spaces()
        size = sum(int(space["bytes"]) for space in spaces)
        return size / _MB, sum(int(space["entries"]) for space in spaces)

    async def ready(self) -> bool:
        """Return whether the node reports that it is ready."""
        try:
            return (await self._raw("GET", "/readiness"))[0] == 200
        except ConnectionError:
            return False

    async def serving(self) -> bool:
        """Return whether it is ready and has seen every worker that it knows in good health.

        The two are one where readiness asks for workers; with `readiness.min-workers` 0 it does not.
        """
        return await self.ready() and set((await self.workers()).values()) == {"ready"}

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        return self._read(method, path, *await self._raw(method, path, content))

    async def _rows(self) -> Sequence[Mapping[str, Any]]:
        rows: Sequence[Mapping[str, Any]] = (await self._ask("GET", "/workers"))["workers"]
        return rows

    async def _spaces(self) -> Sequence[Mapping[str, Any]]:
        spaces: Sequence[Mapping[str, Any]] = (await self._ask("GET", "/v1/cluster/state"))[
            "namespaces"
        ]
        return spaces

    def _read(self, method: str, path: str, status: int, answer: bytes) -> Any:
        if status >= 300:
            raise AgentError(
                f"{self.agent.name} answers {method} {path}: {status} {answer[:300]!r}"
            )
        return json.loads(answer)

    async def _raw(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        return await self.agent.ask(method, path, body, headers=headers)


async def until(cluster: Cluster, true: Any, limit_s: float) -> float | None:
    """Return after how many seconds `await true()` first held; None if it did not within the limit."""
    begun_us = cluster.monotonic_us()
    while True:
        held = await true()
        taken_s = (cluster.monotonic_us() - begun_us) / 1e6
        if held:
            return taken_s
        if taken_s > limit_s:
            return None
        await asyncio.sleep(_LOOK_S)


async def agreed(cluster: Cluster, nodes: Sequence[SmgAgent], limit_s: float) -> float | None:
    """Return after how many seconds these nodes first held the same; None if they did not in time."""

    async def so() -> bool:
        told = await asyncio.gather(*(Operator(node).digest() for node in nodes))
        return all(one == told[0] for one in told)

    return await until(cluster, so, limit_s)


async def chat_once(talk: Talk, *, tokens: int = 8, question: str = "Hello?") -> tuple[int, str]:
    """Send a short chat; return the status and its text. ConnectionError if no answer comes."""
    asked = {
        "model": MODEL,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": tokens,
    }
    status, answer = await talk.ask("POST", CHAT, json.dumps(asked).encode(), timeout_s=30.0)
    if status != 200:
        return status, answer[:300].decode(errors="replace")
    return status, str(json.loads(answer)["choices"][0]["message"]["content"])
