"""What operators do all day, and what they take for a mistake of the node they did it at."""

import json
from collections.abc import Mapping
from random import Random
from typing import Any, cast

import pytest

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.agents.engine_pool import Operator
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.whole.clients.operators import Operators
from smg_chaos.gameday.whole.excuses import Excuses


class Node:
    """A node that keeps keys, and refuses what stands in `refused`."""

    name = "n1"

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.refused: Mapping[str, int] = {}

    async def ask(
        self, method: str, path: str, body: bytes = b"", **more: Any
    ) -> tuple[int, bytes]:
        if method in self.refused:
            return self.refused[method], b'{"error":{}}'
        if method == "GET":
            return 200, json.dumps(
                {"closed": False, "keys": [{"id": i} for i in self.keys]}
            ).encode()
        if method == "DELETE":
            self.keys.remove(path.rpartition("/")[2])
            return 200, b"{}"
        assert json.loads(body)["role"] == "user", "an admin's key would close what is open"
        self.keys.append(f"key_{len(self.keys)}")
        return 201, b'{"key":"secret"}'


class Spare:
    """An operator's view of a node that hears of a removal late, if `hears`."""

    def __init__(self, *, hears: bool) -> None:
        self._hears = hears
        self.removed: list[str] = []

    async def drain(self, worker: str) -> None:
        raise AgentError(f"no worker is called {worker}")

    async def workers(self) -> list[str]:
        return [] if self._hears else ["w"]


def operators() -> Operators:
    made = Operators(cast(Any, None), Excuses(), "grpc://spare:1", Random(3), now_s=lambda: 0.0)
    made._id = "w"
    return made


async def test_keys_come_and_go_and_never_become_many() -> None:
    node, some, most = Node(), operators(), 0
    for _ in range(200):
        await some._key(cast(SmgAgent, node), "t1")
        most = max(most, len(node.keys))
    assert 2 < most < 12


async def test_a_key_that_is_gone_already_is_no_mistake_and_one_that_is_refused_is() -> None:
    node, some = Node(), operators()
    node.keys, node.refused = [f"key_{n}" for n in range(9)], {"DELETE": 404}
    await some._key(cast(SmgAgent, node), "t1")
    node.refused = {"DELETE": 500}
    with pytest.raises(AgentError, match=r"DELETE .* 500"):
        await some._key(cast(SmgAgent, node), "t1")
    node.keys, node.refused = [], {"POST": 503}
    with pytest.raises(AgentError, match="POST"):
        await some._key(cast(SmgAgent, node), "t1")


async def test_an_engine_that_another_node_removed_is_gone_and_one_that_stays_is_a_mistake() -> (
    None
):
    await operators()._take_away(cast(Operator, Spare(hears=True)))
    with pytest.raises(AgentError, match="no worker"):
        await operators()._take_away(cast(Operator, Spare(hears=False)))
