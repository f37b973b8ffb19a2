import json
from typing import Any

import pytest

from smg_mesh.state.providers import sealed_in
from smg_node.http.routes.cluster.providers import api_of
from support.http.http_node import Node, node
from support.http.raw_http import Response, ask
from support.state.fake_shared_state import FakeShared

PROVIDERS = "/v1/cluster/providers"
ROUTES = "/v1/cluster/routes"
OPENAI = {"kind": "openai", "keys": ["sk-very-secret"], "models": ["gpt-5.2"]}


async def send(
    served: Node, method: str, path: str, body: Any = None, version: object = "*"
) -> Response:
    match = {"if-match": str(version), "content-type": "application/json"}
    return await ask(served.port, method, path, body, headers=match)


def shared_of(served: Node, name: str = "node-a") -> FakeShared:
    return served.world.nodes[name]


def written(served: Node, key: str) -> Any:
    found = shared_of(served, "b").providers.get(key)
    return None if found is None else found.value


def secrets_of(served: Node, name: str) -> Any:
    sealed = sealed_in(written(served, f"provider/{name}"))["all"]
    opened = shared_of(served).open_secret(sealed)
    assert opened is not None
    return json.loads(opened)


async def test_a_provider_is_defined_for_the_whole_cluster_and_its_secrets_are_sealed() -> None:
    async with node() as served:
        answer = await send(served, "PUT", f"{PROVIDERS}/openai-a", OPENAI, 0)
        shown = await send(served, "GET", f"{PROVIDERS}/openai-a")
        listed = await send(served, "GET", PROVIDERS)
        value, secrets = written(served, "provider/openai-a"), secrets_of(served, "openai-a")
    view = answer.json()
    assert (answer.status, shown.json()) == (200, view)
    assert answer.headers["etag"] == f'"{view["version"]}"'
    assert listed.json() == {"node": "node-a", "providers": [view], "unreadable": {}}
    assert (view["source"], view["owner"], view["trouble"]) == ("cluster", "node-a", "")
    assert view["spec"] == {"kind": "openai", "models": [{"model": "gpt-5.2"}]}
    assert view["keys"] == [{"reference": "(set)", "resting_ms": 0, "why": ""}]
    (target,) = view["targets"]
    assert (target["to"], target["model"], target["state"]) == (
        "openai-a/gpt-5.2",
        "gpt-5.2",
        "pending",
    )
    assert value["spec"] == {
        "kind": "openai",
        "models": [{"model": "gpt-5.2"}],
        "name": "openai-a",
    }
    assert secrets == {"keys": ["sk-very-secret"], "named": {}}
    for said in (answer.body, shown.body, listed.body, json.dumps(value).encode()):
        assert b"sk-very-secret" not in said


async def test_the_audit_log_has_every_change_and_no_secret() -> None:
    async with node() as served:
        await send(served, "PUT", f"{PROVIDERS}/openai-a", OPENAI)
        await send(
            served, "PUT", f"{PROVIDERS}/openai-a", {"kind": "openai", "keys": ["env:OPENAI"]}
        )
        await send(served, "PUT", f"{ROUTES}/fast", {"targets": ["openai-a/gpt-5.2"]})
        await send(served, "DELETE", f"{ROUTES}/fast")
        await send(served, "DELETE", f"{PROVIDERS}/openai-a")
        rows = served.world.rows
    assert [(row.action, row.subject) for row in rows] == [
        ("provider.set", "openai-a"),
        ("provider.set", "openai-a"),
        ("route.set", "fast"),
        ("route.remove", "fast"),
        ("provider.remove", "openai-a"),
    ]
    assert (rows[0].before, rows[0].after["keys"]) == (None, ["(set)"])
    assert (rows[1].before["keys"], rows[1].after["keys"]) == (["(set)"], ["env:OPENAI"])
    assert rows[3].before["spec"] == {"targets": [{"to": "openai-a/gpt-5.2"}]}
    assert rows[4].after is None
    assert "sk-very-secret" not in repr(rows)


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        (OPENAI, {"kind": "openai"}, {"keys": ["sk-very-secret"], "named": {}}),
        (OPENAI, {"kind": "openai", "keys": None}, {"keys": ["sk-very-secret"], "named": {}}),
        (OPENAI, {"kind": "openai", "keys": ["k2"]}, {"keys": ["k2"], "named": {}}),
        (
            {
                "kind": "azure",
                "resource": "r",
                "credentials": {
                    "kind": "entra",
                    "tenant": "t",
                    "client_id": "c",
                    "client_secret": "shh",
                },
            },
            {
                "kind": "azure",
                "resource": "r2",
                "credentials": {"kind": "entra", "tenant": "t2", "client_id": "c"},
            },
            {"keys": [], "named": {"client_secret": "shh"}},
        ),
    ],
)
async def test_secrets_that_are_left_out_stay(before: Any, after: Any, kept: Any) -> None:
    async with node() as served:
        first = await send(served, "PUT", f"{PROVIDERS}/a", before)
        again = await send(served, "PUT", f"{PROVIDERS}/a", after)
        secrets = secrets_of(served, "a")
    assert (first.status, again.status) == (200, 200)
    assert secrets == kept


async def test_what_is_shown_can_be_sent_back_and_changes_nothing() -> None:
    body = {
        "kind": "bedrock",
        "region": "eu-central-1",
        "credentials": {"kind": "aws", "access_key_id": "AK", "secret_access_key": "env:S"},
        "models": [{"model": "eu.anthropic.claude-sonnet-5", "output_max": 64_000}],
        "timeouts": {"first_event_s": 900},
        "labels": {"zone": "eu"},
    }
    async with node() as served:
        first = (await send(served, "PUT", f"{PROVIDERS}/b", body)).json()
        value = written(served, "provider/b")
        again = await send(served, "PUT", f"{PROVIDERS}/b", first["spec"], first["version"])
        assert written(served, "provider/b") == value
    assert again.status == 200
    assert again.json()["spec"] == first["spec"]
    assert first["secrets"] == {"access_key_id": "(set)", "secret_access_key": "env:S"}


@pytest.mark.parametrize(
    ("name", "body", "param", "said"),
    [
        ("a", {}, "kind", "kind: is missing"),
        ("a", {"kind": "openia"}, "kind", "did you mean 'openai'?"),
        ("a", {"kind": "openai"}, "keys", "keys: is missing"),
        (
            "a",
            {"kind": "openai", "keys": ["k"], "regoin": "us"},
            "regoin",
            "did you mean 'region'?",
        ),
        ("a", {"kind": "openai", "keys": ["k", ""]}, "keys[1]", "must be a text"),
        ("a", {"kind": "bedrock", "credentials": "aws"}, "region", "bedrock needs it"),
        ("A!", {"kind": "openai", "keys": ["k"]}, "name", "is no name"),
    ],
)
async def test_a_wrong_provider_is_refused_with_its_path(
    name: str, body: Any, param: str, said: str
) -> None:
    async with node() as served:
        answer = await send(served, "PUT", f"{PROVIDERS}/{name}", body)
        assert shared_of(served).providers.all() == []
        assert served.world.rows == []
    assert (answer.status, answer.error()["code"]) == (400, "invalid_provider")
    assert answer.error()["param"] == param
    assert said in answer.error()["message"]
    assert "providers.a" not in answer.error()["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "targets"),
        ({"targets": []}, "targets"),
        ({"targets": ["gpt"]}, "targets[0]"),
        ({"targets": [{"to": "a/b", "weight": 99}]}, "targets[0].weight"),
        ({"targets": [{"to": "a/b", "on": ["rate"]}]}, "targets"),
        ({"targets": ["a/b"], "policy": "x"}, "policy"),
    ],
)
async def test_a_wrong_route_is_refused_with_its_path(body: Any, param: str) -> None:
    async with node() as served:
        answer = await send(served, "PUT", f"{ROUTES}/fast", body)
    assert (answer.status, answer.error()["code"], answer.error()["param"]) == (
        400,
        "invalid_route",
        param,
    )


async def test_a_client_must_say_which_version_it_has_seen() -> None:
    async with node() as served:
        bodies: dict[str, dict[str, Any]] = {
            f"{PROVIDERS}/a": OPENAI,
            f"{ROUTES}/r": {"targets": ["a/b"]},
        }
        for path, body in bodies.items():
            for method in ("PUT", "DELETE"):
                answer = await ask(served.port, method, path, body)
                assert (answer.status, answer.error()["code"]) == (428, "precondition_required")


async def test_a_race_is_lost_with_the_current_definition_in_the_answer() -> None:
    async with node() as served:
        first = (await send(served, "PUT", f"{PROVIDERS}/a", OPENAI, 0)).json()
        lost = await send(served, "PUT", f"{PROVIDERS}/a", OPENAI, 0)
        gone = await send(served, "DELETE", f"{PROVIDERS}/a", version='"7"')
        won = await send(served, "PUT", f"{PROVIDERS}/a", OPENAI, first["version"])
        never = await send(served, "PUT", f"{ROUTES}/r", {"targets": ["a/b"]}, 5)
    for answer in (lost, gone):
        assert (answer.status, answer.error()["code"]) == (409, "stale")
        assert answer.json()["current"] == first
        assert answer.headers["etag"] == f'"{first["version"]}"'
    assert (won.status, never.status) == (200, 409)
    assert never.json()["current"] is None


async def test_a_provider_that_a_route_names_is_removed_by_force_only() -> None:
    async with node() as served:
        await send(served, "PUT", f"{PROVIDERS}/a", OPENAI)
        await send(served, "PUT", f"{ROUTES}/org/fast", {"targets": ["a/gpt-5.2"]})
        refused = await send(served, "DELETE", f"{PROVIDERS}/a")
        forced = await send(served, "DELETE", f"{PROVIDERS}/a?force=true")
        gone = await send(served, "GET", f"{PROVIDERS}/a")
        route = (await send(served, "GET", f"{ROUTES}/org/fast")).json()
    assert (refused.status, refused.error()["code"]) == (409, "provider_in_use")
    assert "route org/fast" in refused.error()["message"]
    assert forced.json() == {"status": "removed", "name": "a", "now": None}
    assert (gone.status, gone.error()["code"]) == (404, "provider_not_found")
    (target,) = route["targets"]
    assert (target["state"], target["reason"]) == ("failed", "no provider has this name")


async def test_what_is_not_there_cannot_be_shown_or_removed() -> None:
    async with node() as served:
        for path, code in (
            (f"{PROVIDERS}/nobody", "provider_not_found"),
            (f"{ROUTES}/none", "route_not_found"),
        ):
            for method in ("GET", "DELETE"):
                answer = await send(served, method, path)
                assert (answer.status, answer.error()["code"]) == (404, code)


async def test_what_this_release_cannot_follow_is_listed_and_can_be_removed() -> None:
    async with node() as served:
        store = shared_of(served, "b").providers
        store.set("provider/new", {"spec": {"name": "new", "kind": "quantum"}}, version=None)
        listed = (await send(served, "GET", PROVIDERS)).json()
        shown = await send(served, "GET", f"{PROVIDERS}/new")
        removed = await send(served, "DELETE", f"{PROVIDERS}/new")
        assert store.get("provider/new") is None
    assert listed["providers"] == []
    assert listed["unreadable"] == {
        "provider/new": "providers of kind 'quantum' are unknown to this release"
    }
    assert shown.status == 404
    assert "is not followed here: providers of kind 'quantum'" in shown.error()["message"]
    assert removed.status == 200


async def test_secrets_that_cannot_be_opened_are_trouble_and_are_not_kept() -> None:
    async with node() as served:
        await send(served, "PUT", f"{PROVIDERS}/a", OPENAI)
        shared_of(served).keyring = "k2"
        shown = (await send(served, "GET", f"{PROVIDERS}/a")).json()
        refused = await send(served, "PUT", f"{PROVIDERS}/a", {"kind": "openai"})
        mended = await send(served, "PUT", f"{PROVIDERS}/a", OPENAI)
    assert shown["trouble"] == "its secrets cannot be opened with this node's keyring"
    assert shown["targets"][0]["state"] == "failed"
    assert (refused.status, refused.error()["param"]) == (400, "keys")
    assert "cannot be opened with this node's keyring" in refused.error()["message"]
    assert (mended.status, mended.json()["trouble"]) == (200, "")


async def test_a_definition_that_is_too_large_is_refused_and_a_full_state_says_so() -> None:
    async with node() as served:
        large = {**OPENAI, "models": [f"model-{number}{'x' * 1_900}" for number in range(1_000)]}
        too_large = await send(served, "PUT", f"{PROVIDERS}/a", large)
        served.world.providers["node-a"].closed = True
        closed = await send(served, "PUT", f"{PROVIDERS}/a", OPENAI)
    assert (too_large.status, too_large.error()["code"]) == (400, "provider_too_large")
    assert closed.status == 503
    assert closed.error()["code"].startswith("state_")


CHAT = {"messages": [{"role": "user", "content": "hi"}], "seed": 7, "min_p": 0.1}


async def explain(served: Node, **said: Any) -> Response:
    return await ask(served.port, "POST", f"{PROVIDERS}/explain", said)


async def test_a_model_is_explained_by_target_and_api() -> None:
    async with node() as served:
        await send(served, "PUT", f"{PROVIDERS}/a", {"kind": "anthropic", "keys": ["k"]})
        await send(served, "PUT", f"{PROVIDERS}/o", OPENAI)
        body = {"targets": ["a/claude-sonnet-5", {"to": "o/gpt-5.2", "weight": 2}]}
        await send(served, "PUT", f"{ROUTES}/fast", body)
        plain = (await explain(served, model="fast")).json()
        chat = (await explain(served, model="fast", body=CHAT)).json()
        unknown = await explain(served, model="slow")
    assert (plain["model"], plain["api"]) == ("fast", "")
    by_target = {one["target"]["to"]: one for one in plain["targets"]}
    assert by_target["a/claude-sonnet-5"]["apis"] == {
        "chat": {"api": "messages", "way": "translated"},
        "messages": {"api": "messages", "way": "native"},
        "generate_content": {"api": "messages", "way": "translated"},
        "responses": {"api": "messages", "way": "translated"},
        "interactions": {"api": "messages", "way": "translated"},
    }
    assert by_target["o/gpt-5.2"]["apis"]["chat"] == {"api": "chat", "way": "native"}
    assert by_target["o/gpt-5.2"]["apis"]["responses"] == {"api": "responses", "way": "translated"}
    assert by_target["o/gpt-5.2"]["target"]["weight"] == 2.0
    told = {one["target"]["to"]: one for one in chat["targets"]}
    assert chat["api"] == "chat"
    assert {"seed", "min_p"} <= set(told["a/claude-sonnet-5"]["ignored"])
    assert told["a/claude-sonnet-5"]["refused"] is None
    assert (told["o/gpt-5.2"]["ignored"], told["o/gpt-5.2"]["refused"]) == ([], None)
    assert (unknown.status, unknown.error()["code"]) == (404, "model_not_found")


async def test_what_a_target_would_refuse_is_told_with_its_path() -> None:
    async with node() as served:
        await send(
            served,
            "PUT",
            f"{PROVIDERS}/a",
            {"kind": "anthropic", "keys": ["k"], "models": ["claude-sonnet-5"]},
        )
        body = {**CHAT, "n": 3}
        (told,) = (await explain(served, model="claude-sonnet-5", body=body)).json()["targets"]
    assert told["refused"]["where"] == "n"
    assert told["refused"]["code"] == "unsupported_parameter"


@pytest.mark.parametrize(
    ("body", "api"),
    [
        ({"messages": []}, "chat"),
        ({"messages": [], "tools": [{"type": "function"}]}, "chat"),
        ({"messages": [], "system": "be brief"}, "messages"),
        ({"messages": [], "tools": [{"name": "f", "input_schema": {}}]}, "messages"),
        ({"input": "hi"}, "responses"),
        ({"contents": []}, "generate_content"),
        ("text", "chat"),
    ],
)
def test_the_api_of_a_body_is_seen_by_its_fields(body: object, api: str) -> None:
    assert api_of(body) == api


@pytest.mark.parametrize(
    ("said", "param"),
    [
        ({}, "model"),
        ({"model": "gpt-5.2", "api": "soap"}, "api"),
        ({"model": "gpt-5.2", "body": [1]}, "body"),
        ({"model": "gpt-5.2", "body": {"messages": 5}}, "body.messages"),
        ({"model": "gpt-5.2", "body": {"input": 5}}, "body.input"),
        ({"model": "gpt-5.2", "body": {"contents": 5}}, "body.contents"),
        ({"model": "gpt-5.2", "bodyy": {}}, "bodyy"),
    ],
)
async def test_a_wrong_question_is_refused_with_its_path(said: Any, param: str) -> None:
    async with node() as served:
        await send(served, "PUT", f"{PROVIDERS}/o", OPENAI)
        answer = await explain(served, **said)
    assert (answer.status, answer.error()["param"]) == (400, param)


@pytest.mark.parametrize(
    ("api", "body"),
    [
        ("chat", {"messages": [{"role": "user", "content": "hi"}]}),
        ("messages", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}),
        ("responses", {"input": "hi"}),
        ("generate_content", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
    ],
)
async def test_bodies_of_every_api_are_explained(api: str, body: Any) -> None:
    kinds = {"c": "openai", "a": "anthropic", "g": "gemini"}
    async with node() as served:
        for name, kind in kinds.items():
            await send(served, "PUT", f"{PROVIDERS}/{name}", {"kind": kind, "keys": ["k"]})
        targets = [f"{name}/m" for name in kinds]
        await send(served, "PUT", f"{ROUTES}/all", {"targets": targets})
        answer = await explain(served, model="all", api=api, body=body)
    assert answer.status == 200
    assert answer.json()["api"] == api
    assert [one["refused"] for one in answer.json()["targets"]] == [None, None, None]
    assert sorted(one["target"]["to"] for one in answer.json()["targets"]) == sorted(targets)
