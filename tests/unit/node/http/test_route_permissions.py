"""Every route, every role, with and without a credential: who is let in, as one table says."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import pytest

from smg_node.access.roles import Roles
from smg_node.cluster.discovery.discovery_service import ClusterSources
from smg_node.cluster.issuers.access_service import ClusterAccess
from smg_node.cluster.issuers.role_service import ClusterRoles
from smg_node.core.access.permissions import BUILT_IN, PERMISSIONS
from smg_node.http.openapi.document import document
from smg_node.http.route_table import METRICS_ROUTES, ROUTES
from support.access.issuers_of_test import IssuersOfTest
from support.access.key_world import KeyWorld
from support.http.history_routes import Here
from support.http.http_node import Node, node
from support.http.raw_http import ask
from support.shared_sources import SharedSources, SourcesHere

ROLES: Final[Mapping[str, str]] = {
    "user": "generate history models tools.use usage.own",
    "tenant_admin": "generate history models tools.use usage.own keys.own limits.own",
    "operator": "generate history models tools.use usage.own look",
    "admin": "generate history models tools.use usage.own keys.own limits.own look workers engines settings limits keys"
    " members keyring sessions parsers access providers prices tools approvals",
    "reader": "history models",
    "on-call": "look workers members",
}
"""Which role has which permissions; the last two are an operator's own."""
OWN_ROLES: Final = ("reader", "on-call")

TABLE: Final = """
[generate]
POST /v1/chat/completions
POST /v1/completions
POST /v1/messages
POST /v1/messages/count_tokens
POST /v1/responses
GET /v1/responses
GET /v1/realtime
POST /v1/responses/input_tokens
POST /v1/responses/compact
POST /v1/interactions
POST /v1beta/interactions
POST /v1alpha/interactions
POST /v1/embeddings
POST /v1/rerank
POST /rerank
POST /v1/classify
POST /classify
POST /v1/tokenize
POST /tokenize
POST /v1/detokenize
POST /detokenize
POST /v1/models/{id+}
POST /v1beta/models/{id+}
POST /v1alpha/models/{id+}
[history]
GET /v1/responses/{id}
DELETE /v1/responses/{id}
POST /v1/responses/{id}/cancel
GET /v1/responses/{id}/input_items
GET /v1/interactions/{id}
DELETE /v1/interactions/{id}
POST /v1/interactions/{id}/cancel
GET /v1beta/interactions/{id}
DELETE /v1beta/interactions/{id}
POST /v1beta/interactions/{id}/cancel
GET /v1alpha/interactions/{id}
DELETE /v1alpha/interactions/{id}
POST /v1alpha/interactions/{id}/cancel
POST /v1/conversations
GET /v1/conversations/{id}
POST /v1/conversations/{id}
DELETE /v1/conversations/{id}
GET /v1/conversations/{id}/items
POST /v1/conversations/{id}/items
GET /v1/conversations/{id}/items/{item}
DELETE /v1/conversations/{id}/items/{item}
[parsers]
POST /parse/function_call
POST /parse/reasoning
[models]
GET /v1/models
GET /v1/models/{id+}
GET /v1beta/models
GET /v1beta/models/{id+}
GET /v1alpha/models
GET /v1alpha/models/{id+}
[tools.use]
POST /mcp
POST /mcp/{server}
[usage.own]
GET /v1/usage
[look]
GET /v1/cluster/access/issuers
GET /v1/cluster/access/denials
GET /v1/cluster/access/roles
GET /v1/cluster/discovery
GET /get_model_info
GET /model_info
GET /get_server_info
GET /server_info
GET /workers
GET /v1/cluster
GET /v1/cluster/members
GET /v1/cluster/members/{name}
GET /v1/cluster/members/{name}/drain
GET /v1/cluster/events
GET /v1/cluster/workers
GET /v1/cluster/state
GET /v1/cluster/state/{namespace}
GET /v1/cluster/settings
GET /v1/cluster/settings/diff
GET /v1/cluster/settings/history
POST /v1/cluster/settings/validate
GET /v1/cluster/settings/{key+}
GET /v1/cluster/providers
POST /v1/cluster/providers/explain
GET /v1/cluster/providers/{name}
GET /v1/cluster/routes
GET /v1/cluster/routes/{name+}
GET /v1/cluster/prices
GET /v1/cluster/prices/{name+}
GET /v1/mcp/servers
GET /v1/mcp/servers/{name}
GET /v1/cluster/usage
GET /v1/cluster/metrics
GET /v1/cluster/audit
GET /v1/cluster/sessions/{key}
GET /v1/cluster/explain/{id}
GET /health_generate
GET /metrics
[workers]
POST /workers
GET /workers/{id}
PUT /workers/{id}
PATCH /workers/{id}
DELETE /workers/{id}
POST /workers/{id}/drain
POST /workers/{id}/undrain
POST /workers/{id}/probe
PUT /v1/cluster/discovery/{kind}/{name}
DELETE /v1/cluster/discovery/{kind}/{name}
[engines]
GET /get_loads
[members]
POST /v1/cluster/members/{name}/drain
POST /v1/cluster/members/{name}/undrain
POST /v1/cluster/members/{name}/forget
POST /v1/cluster/join
POST /v1/cluster/leave
[keyring]
GET /v1/cluster/keyring
POST /v1/cluster/keyring
[settings]
POST /v1/cluster/settings/rollback
PUT /v1/cluster/settings/{key+}
DELETE /v1/cluster/settings/{key+}
[providers]
PUT /v1/cluster/providers/{name}
DELETE /v1/cluster/providers/{name}
PUT /v1/cluster/routes/{name+}
DELETE /v1/cluster/routes/{name+}
GET /v1/cluster/shadows/{name+}
[prices]
PUT /v1/cluster/prices/{name+}
DELETE /v1/cluster/prices/{name+}
[tools]
POST /v1/mcp/servers
PUT /v1/mcp/servers/{name}
DELETE /v1/mcp/servers/{name}
GET /v1/mcp/servers/{name}/tools
POST /v1/mcp/servers/{name}/call
[approvals]
GET /v1/mcp/approvals
GET /v1/mcp/approvals/{id}
POST /v1/mcp/approvals/{id}
[keys keys.own]
GET /v1/cluster/keys
POST /v1/cluster/keys
DELETE /v1/cluster/keys/{id}
[keys]
POST /v1/cluster/keys/import
[access]
PUT /v1/cluster/access/issuers/{name}
DELETE /v1/cluster/access/issuers/{name}
PUT /v1/cluster/access/roles/{name}
DELETE /v1/cluster/access/roles/{name}
POST /v1/cluster/access/denials
DELETE /v1/cluster/access/denials/{issuer}/{subject+}
[look limits.own]
GET /v1/cluster/limits
GET /v1/cluster/limits/{scope+}
[limits limits.own]
PUT /v1/cluster/limits/{scope+}
[limits]
DELETE /v1/cluster/limits/{scope+}
[sessions]
DELETE /v1/cluster/sessions/{key}
[public]
GET /version
GET /openapi.json
GET /liveness
GET /readiness
GET /health
GET /.well-known/oauth-protected-resource
GET /.well-known/oauth-protected-resource/{path+}
GET /
"""
"""A permission, and with it the routes that need it; the second word is one that does for what is of one's tenant."""


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield method, path, permission, and the permission for one's own, "" for none, of every row of the table."""
    needed, own = "", ""
    for line in TABLE.strip().splitlines():
        if line.startswith("["):
            needed, _, own = line.strip("[]").partition(" ")
            continue
        method, _, path = line.partition(" ")
        yield method, path, needed, own


def test_the_table_has_every_route_with_the_one_permission_it_needs() -> None:
    known = [(one.method, one.path, one.permission, one.own or "") for one in ROUTES]
    assert sorted(known) == sorted(rows())
    assert len({(method, path) for method, path, _, _ in rows()}) == len(ROUTES)
    assert {one.permission for one in METRICS_ROUTES} == {"public"}


def test_the_roles_of_the_table_are_those_that_are_built_in() -> None:
    assert {name: frozenset(ROLES[name].split()) for name in BUILT_IN} == dict(BUILT_IN)


def test_every_permission_is_of_some_route() -> None:
    used = {needed for _, _, needed, _ in rows()} | {own for _, _, _, own in rows()}
    assert set(PERMISSIONS) <= used


def test_the_document_says_of_each_route_what_it_needs() -> None:
    paths = document(ROUTES, version="1")["paths"]
    for method, path, needed, own in rows():
        operation = paths[path.replace("+}", "}")][method.lower()]
        assert operation.get("x-smg-permission", "public") == needed
        assert operation.get("x-smg-own-permission", "") == own


@asynccontextmanager
async def closed() -> AsyncIterator[tuple[Node, dict[str, str]]]:
    """A closed node, and a key of each role."""
    own = {name: ROLES[name].split() for name in OWN_ROLES}
    async with node(history=Here(), roles=Roles(own)) as served:
        world, clock = KeyWorld(("node-a",)), served.parts.clock
        access = ClusterAccess(IssuersOfTest(world), world.states["node-a"], clock.now_ms)
        served.parts.token_access = lambda: access
        roles = ClusterRoles(IssuersOfTest(world), world.states["node-a"].roles)
        served.parts.role_access = lambda: roles
        sources = SharedSources("node-a").shared["node-a"]
        served.parts.discovery = lambda: ClusterSources(SourcesHere(), sources)
        keys: dict[str, str] = {}
        for role in ("admin", *(name for name in ROLES if name != "admin")):
            wish = {"role": role, "tenant": "acme"}
            sent = {"authorization": f"Bearer {keys['admin']}"} if keys else {}
            made = await ask(served.port, "POST", "/v1/cluster/keys", wish, sent)
            assert made.status == 201, made.body
            keys[role] = made.json()["key"]
        yield served, keys


@pytest.mark.parametrize("role", ["", *ROLES])
async def test_each_route_lets_in_whom_the_table_says(role: str) -> None:
    """A route that lets its caller in answers as it does, to a body and a path that mean nothing."""
    async with closed() as (served, keys):
        headers = {"authorization": f"Bearer {keys[role]}"} if role else {}
        held = ROLES.get(role, "").split()
        wrong = []
        for method, path, needed, own in rows():
            where = path.replace("{id+}", "m").replace("+}", "}")
            while "{" in where:
                before, _, rest = where.partition("{")
                where = f"{before}x{rest.partition('}')[2]}"
            body = b"{}" if method in ("POST", "PUT", "PATCH") else b""
            answer = await ask(served.port, method, where, body, headers)
            code = answer.headers.get("x-smg-error-code", "")
            said = "in"
            assert answer.status != 500, (method, path)
            if answer.status == 401:
                said = "unknown"
            elif (answer.status, code) == (403, "insufficient_permissions"):
                said = "refused"
                text = answer.body.decode()
                assert f"needs the permission {needed}" in text
                assert f"has role {role}" in text
                assert not [other for other in ROLES if other != role and f"role {other}" in text]
            if needed == "public" or needed in held or (own and own in held):
                right = "in"
            else:
                right = "refused" if role else "unknown"
            if said != right:
                wrong.append((method, path, answer.status, said, right))
        assert wrong == []
