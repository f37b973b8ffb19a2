"""`smg-admin providers` and `routes` against the real routes and the real definitions."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from smg_mesh.state.providers import sealed_in
from smg_node.admin.commands.providers.routes import read_target
from support.http.admin_api import RunAdmin
from support.http.http_node import Node, node

Typed: TypeAlias = Callable[..., Awaitable[tuple[int, str, str]]]


def typed(run: RunAdmin, served: Node) -> Typed:
    """Type a command at this node, from a thread as a process of its own would."""

    async def command(*words: str) -> tuple[int, str, str]:
        where = f"http://127.0.0.1:{served.port}"
        return await asyncio.to_thread(run, "--url", where, *words)

    return command


def rows_of(shown: str) -> list[str]:
    """The lines of a table, with one blank between its cells."""
    return [" ".join(line.split()) for line in shown.splitlines()]


def keys_of(served: Node, name: str) -> list[str]:
    shared = served.world.nodes["node-a"]
    held = shared.providers.get(f"provider/{name}")
    assert held is not None
    opened = shared.open_secret(sealed_in(held.value)["all"])
    assert opened is not None
    found: list[str] = json.loads(opened)["keys"]
    return found


@pytest.fixture
def key(tmp_path: Path) -> str:
    path = tmp_path / "a.key"
    path.write_text("# Anthropic\nsk-secret-1\n")
    return str(path)


async def test_a_provider_is_set_by_flags_listed_shown_and_removed(run: RunAdmin, key: str) -> None:
    async with node() as served:
        admin = typed(run, served)
        nothing = await admin("providers", "list")
        done = await admin(
            *("providers", "set", "anthropic-a", "--kind", "anthropic", "--api-key-file", key),
            *("--api-key", "env:SPARE", "--model", "claude-sonnet-5", "--label", "zone=us"),
        )
        listed = await admin("providers", "list")
        shown = await admin("providers", "show", "anthropic-a")
        keys = keys_of(served, "anthropic-a")
        version = str(served.world.nodes["b"].providers.all()[0].version)
        gone = await admin("providers", "remove", "anthropic-a")
        after = await admin("providers", "show", "anthropic-a")
    assert nothing == (0, "There is no provider.\n", "")
    assert done == (
        0,
        f"anthropic-a is a provider of kind anthropic on every node (version {version})\n",
        "",
    )
    assert keys == ["env:SPARE", "sk-secret-1"]
    assert rows_of(listed[1]) == [
        "NAME KIND AT KEYS MODELS FROM VERSION NOTE",
        f"anthropic-a anthropic - 2 0 of 1 ready cluster, on node-a {version} -",
    ]
    assert rows_of(shown[1])[:3] == ["name anthropic-a", "kind anthropic", "labels zone=us"]
    assert "env:SPARE - -" in rows_of(shown[1])
    assert "(set) - -" in rows_of(shown[1])
    assert "sk-secret-1" not in shown[1]
    assert "claude-sonnet-5 anthropic-a/claude-sonnet-5 1 - pending - not looked at yet" in rows_of(
        shown[1]
    )
    assert gone == (0, "anthropic-a is no provider of the cluster any more\n", "")
    assert after == (1, "", "smg-admin: no provider is called 'anthropic-a'\n")


async def test_flags_change_what_they_name_and_leave_the_rest(run: RunAdmin, key: str) -> None:
    async with node() as served:
        admin = typed(run, served)
        new = await admin("providers", "set", "a", "--model", "m")
        await admin(
            *("providers", "set", "a", "--kind", "openai", "--api-key", "env:ONE"),
            *("--region", "eu", "--model", "m"),
        )
        await admin("providers", "set", "a", "--api-key-file", key)
        rotated = keys_of(served, "a")
        await admin("providers", "set", "a", "--region", "us")
        code, shown, _ = await admin("--json", "providers", "show", "a")
        kept = keys_of(served, "a")
    assert (new[0], "a is new: say its --kind" in new[2]) == (2, True)
    assert (rotated, kept) == (["sk-secret-1"], ["sk-secret-1"])
    assert code == 0
    assert json.loads(shown)["spec"] == {
        "kind": "openai",
        "region": "us",
        "models": [{"model": "m"}],
    }


@pytest.mark.parametrize(
    "text",
    [
        "kind: openai\nkeys: [env:K]\nmodels: [m]\n",
        "providers:\n  a: {kind: openai, keys: [env:K], models: [m]}\n  b: {kind: xai}\n",
        '{"kind": "openai", "keys": ["env:K"], "models": ["m"]}',
    ],
)
async def test_a_file_has_one_definition_or_is_a_whole_file_of_them(
    run: RunAdmin, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "providers.yaml"
    path.write_text(text)
    async with node() as served:
        done = await typed(run, served)("providers", "set", "a", str(path))
        assert keys_of(served, "a") == ["env:K"]
    assert done[0] == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("providers: {b: {kind: openai}}", "has no a among its providers: b"),
        ("[1, 2]", "must hold a definition"),
        ("kind: [", "it is not YAML"),
        ("kind: &k openai\nbase: *k\n", "anchors are not understood"),
        ("kind: openia\n", "kind: 'openia' is unknown; did you mean 'openai'?"),
    ],
)
async def test_a_wrong_file_is_refused_in_one_line(
    run: RunAdmin, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "providers.yaml"
    path.write_text(text)
    async with node() as served:
        code, out, complaint = await typed(run, served)("providers", "set", "a", str(path))
    assert (code, out) == (1, "")
    assert said in complaint
    assert complaint.count("\n") == 1


async def test_a_route_is_set_listed_shown_and_removed(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        await admin("providers", "set", "a", "--kind", "openai", "--api-key", "env:K")
        nothing = await admin("routes", "list")
        done = await admin(
            "routes", "set", "org/fast", "--to", "a/m,weight=3", "--to", "b/n,on=rate+full"
        )
        listed = await admin("routes", "list")
        shown = await admin("routes", "show", "org/fast")
        used = await admin("providers", "remove", "a")
        gone = await admin("routes", "remove", "org/fast")
        forced = await admin("providers", "remove", "a", "--force")
    assert nothing == (0, "There is no route.\n", "")
    assert done[1].startswith("org/fast goes to a/m, b/n on every node (version ")
    assert done[2] == "b/n is failed: no provider has this name\n"
    assert [row.rsplit(" ", 4)[0] for row in rows_of(listed[1])[1:]] == [
        "org/fast a/m 3 - pending not looked at yet",
        "org/fast b/n 1 rate+full failed no provider has this name",
    ]
    assert "org/fast a/m 3 - pending - not looked at yet" in rows_of(shown[1])
    assert used[0] == 1
    assert "a is a target of route org/fast" in used[2]
    assert gone == (0, "org/fast is no route of the cluster any more\n", "")
    assert forced[0] == 0


async def test_flags_of_a_route_change_what_they_name_and_leave_the_rest(
    run: RunAdmin, tmp_path: Path
) -> None:
    path = tmp_path / "route.yaml"
    path.write_text("targets: [a/m]\nsplit: {to: a, share: 0.5, until: 2026-12-31}\n")
    async with node() as served:
        admin = typed(run, served)

        async def spec() -> dict[str, Any]:
            _, shown, _ = await admin("--json", "routes", "show", "r")
            found: dict[str, Any] = json.loads(shown)["spec"]
            return found

        new = await admin("routes", "set", "r", "--choose", "fastest")
        await admin("routes", "set", "r", "--to", "a/m", "--to", "b/n", "--choose", "fastest")
        await admin("routes", "set", "r", "--split", "to=b,share=0.1,key=user,name=eu")
        await admin("routes", "set", "r", "--shadow", "to=o/g,share=.5,budget=2/day,keep_text=true")
        all_said = await spec()
        shown = await admin("routes", "show", "r")
        await admin("routes", "set", "r", "--to", "b/n")
        await admin("routes", "set", "r", "--split", "none", "--shadow", "none")
        less = await spec()
        wrong = await admin("routes", "set", "r", "--choose", "best")
        await admin("routes", "set", "r", str(path))
        of_file = await spec()
        used = await admin("providers", "remove", "a")
    assert (new[0], "r is new: say its --to" in new[2]) == (2, True)
    assert all_said == {
        "targets": [{"to": "a/m"}, {"to": "b/n"}],
        "choose": "fastest",
        "split": {"to": "b", "share": 0.1, "key": "user", "name": "eu"},
        "shadow": {"to": "o/g", "share": 0.5, "budget": "2/day", "keep_text": True},
    }
    assert "choose fastest" in rows_of(shown[1])
    assert less == {"targets": [{"to": "b/n"}], "choose": "fastest"}
    assert wrong[0] == 1
    assert "choose: must be one of 'weighted', 'cheapest', 'fastest', 'affinity'" in wrong[2]
    assert of_file["split"] == {"to": "a", "share": 0.5, "key": "tenant", "until": "2026-12-31"}
    assert used[0] == 1


async def test_what_somebody_else_changed_is_not_written_over(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        await admin("providers", "set", "a", "--kind", "openai", "--api-key", "env:K")
        late = await admin("providers", "set", "a", "--region", "us", "--if-version", "7")
        never = await admin("routes", "set", "r", "--to", "a/m", "--if-version", "7")
        wrong = await admin("routes", "set", "r", "--to", "a/m", "--if-version", "new")
    assert late[0] == 1
    assert late[2].startswith("smg-admin: a was changed by somebody else: it is version ")
    assert never[2] == (
        "smg-admin: route r was changed by somebody else: it is not defined; nothing was written\n"
    )
    assert wrong[0] == 2


@pytest.mark.parametrize(
    "words",
    [
        ("providers", "set", "a"),
        ("providers", "set", "a", "file.yaml", "--kind", "openai"),
        ("providers", "set", "a", "--kind", "openai", "--api-key", "sk-plain"),
        ("providers", "set", "a", "--kind", "openai", "--label", "zone"),
        ("routes", "set", "r"),
        ("routes", "set", "r", "--to", "a/m,weight=heavy"),
        ("routes", "set", "r", "--to", "a/m", "--split", "to=a,share=much"),
        ("routes", "set", "r", "--to", "a/m", "--split", "a"),
        ("routes", "set", "r", "--shadow", "to=a/m,share=1,budget=2/day,keep_text=yes"),
        ("routes", "set", "r", "file.yaml", "--choose", "fastest"),
    ],
)
def test_bad_usage_is_told_before_any_node_is_asked(run: RunAdmin, words: tuple[str, ...]) -> None:
    code, out, complaint = run("--url", "http://127.0.0.1:9", *words)
    assert (code, out) == (2, "")
    assert "sk-plain" not in complaint


async def test_a_model_is_explained_with_what_a_request_would_lose(
    run: RunAdmin, tmp_path: Path
) -> None:
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "hi"}], "seed": 7}))
    refused = tmp_path / "many.json"
    refused.write_text(json.dumps({"messages": [{"role": "user", "content": "hi"}], "n": 3}))
    async with node() as served:
        admin = typed(run, served)
        for name, kind in (("a", "anthropic"), ("o", "openai")):
            await admin("providers", "set", name, "--kind", kind, "--api-key", "env:K")
        await admin("routes", "set", "fast", "--to", "a/claude-sonnet-5", "--to", "o/gpt-5.2")
        plain = await admin("providers", "explain", "fast")
        lost = await admin("providers", "explain", "fast", str(path))
        many = await admin("providers", "explain", "fast", str(refused))
        told = await admin("--json", "providers", "explain", "fast", str(path), "--api", "chat")
        unknown = await admin("providers", "explain", "slow")
    blocks = {part.split(":")[0]: rows_of(part) for part in plain[1].split("\n\n")}
    assert blocks["a/claude-sonnet-5"][:4] == [
        "a/claude-sonnet-5: pending, not looked at yet",
        "CLIENT ASKED IN HOW",
        "chat messages translated",
        "messages messages native",
    ]
    assert "chat chat native" in blocks["o/gpt-5.2"]
    assert "ignores: seed" in lost[1]
    assert "takes the request as it is" in lost[1]
    assert "refuses the request: n: " in many[1]
    assert json.loads(told[1])["api"] == "chat"
    assert unknown[0] == 1
    assert "no provider and no route has a model 'slow'" in unknown[2]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("a/m", {"to": "a/m"}),
        ("a/m,weight=3", {"to": "a/m", "weight": 3.0}),
        ("a/m,on=rate+full", {"to": "a/m", "on": ["rate", "full"]}),
        ("a/m,weight=.5,on=broken", {"to": "a/m", "weight": 0.5, "on": ["broken"]}),
        ("a/m,on=broken,weight=.5", {"to": "a/m", "weight": 0.5, "on": ["broken"]}),
        ("a/odd,name", {"to": "a/odd,name"}),
        ("a/odd,name=x,weight=2", {"to": "a/odd,name=x", "weight": 2.0}),
    ],
)
def test_a_target_is_typed_as_it_is_thought_of(text: str, target: dict[str, Any]) -> None:
    assert read_target(text) == target
