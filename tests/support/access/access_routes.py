"""Access routes of a test: a node with the service of issuers, and a definition that it takes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from smg_node.access.tokens.key_set import read_key_set
from smg_node.cluster.issuers.access_service import ClusterAccess, IssuerParts
from smg_node.cluster.issuers.shared_keys import SharedIssuerKeys
from support.access.issuers_of_test import IssuersOfTest
from support.access.key_world import KeyWorld
from support.http.http_node import Node, node
from support.http.raw_http import Response, ask

ISSUERS = "/v1/cluster/access/issuers"
SPEC_ISSUER = "https://other.example"
SPEC = {
    "issuer": SPEC_ISSUER,
    "audiences": ["smg"],
    "roles": "/groups",
    "role_map": {"ops": "operator", "*": "user"},
    "tenant": "/azp",
    "leeway_s": 5,
}


async def define(one: Node, name: str, body: Any, version: str = "*") -> Response:
    path = f"{ISSUERS}/{name}?force=true"
    return await ask(one.port, "PUT", path, body, {"if-match": version})


@asynccontextmanager
async def served(**changes: Any) -> AsyncIterator[tuple[Node, KeyWorld]]:
    world = KeyWorld(("node-a",))
    state = world.states["node-a"]
    keys = SharedIssuerKeys(
        lambda: world.issuers,
        state.keys,
        state.denials,
        lambda alias: None,
        read_key_set,
        world.clock.now_ms,
    )
    parts = IssuerParts(keys, world.fetches["node-a"], None)
    async with node(**changes) as one:
        one.parts.token_access = lambda: ClusterAccess(
            IssuersOfTest(world, parts), state, world.clock.now_ms
        )
        yield one, world
