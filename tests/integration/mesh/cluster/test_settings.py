"""Settings, workers and the audit log of real nodes: said on one, true on all, and still true after a restart."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node, smg_admin, until
from support.processes.node import running_node
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

SECRET = "sk-engine-0123456789abcdefghij"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[MeshNode, MeshNode]]:
    key = make_key(tmp_path)
    with ExitStack() as stack:
        one = stack.enter_context(mesh_node(tmp_path, flags_of("a", key=key)))
        other = stack.enter_context(
            mesh_node(tmp_path, [*flags_of("b", key=key, join=[one.mesh]), "--policy", "random"])
        )
        one.awaits_states(b="alive")
        other.awaits_states(a="alive")
        yield one, other


def setting(node: MeshNode, key: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = node.get(f"/v1/cluster/settings/{key}")
    return found


def config(node: MeshNode) -> Mapping[str, Any]:
    found: Mapping[str, Any] = node.get("/v1/cluster")["config"]
    return found


def all_run_the_same(*nodes: MeshNode) -> bool:
    cards = [config(node) for node in nodes]
    heard = all(len(card["members"]) == len(nodes) for card in cards)
    return heard and all(card["same"] for card in cards)


def test_what_is_set_on_one_node_takes_effect_on_the_other_without_a_restart(
    pair: tuple[MeshNode, MeshNode],
) -> None:
    one, other = pair
    assert one.admin("config", "set", "routing.policy", "round_robin").code == 0
    assert other.admin("config", "set", "telemetry.log_level", "warning").code == 0
    assert other.admin("config", "set", "limits.n_max", "1").code == 0
    until(lambda: setting(other, "routing.policy")["effective"] == "round_robin", "following")
    until(lambda: setting(one, "limits.n_max")["effective"] == 1, "following back")
    until(lambda: all_run_the_same(one, other), "running the same")
    assert setting(other, "routing.policy")["own"] == "random"
    # The level holds: an operator's change is written at a lower one.
    quiet = one.process.said()
    assert one.admin("config", "set", "limits.n_max", "2").code == 0
    assert one.process.said() == quiet
    lost = one.admin("config", "set", "limits.n_max", "3", "--if-version", "0")
    assert (lost.code, "was changed by somebody else" in lost.err) == (1, True)
    refused = other.admin("config", "set", "routing.policy", "roundrobin")
    assert (refused.code, "did you mean 'round_robin'?" in refused.err) == (1, True)
    differs = json.loads(one.admin("config", "diff", "--node", "b", "--json").out)
    assert differs["differences"] == []
    assert one.admin("config", "unset", "routing.policy").code == 0
    until(lambda: setting(other, "routing.policy")["effective"] == "random", "going back")
    assert setting(one, "routing.policy")["effective"] == "cache_aware"
    changes = json.loads(other.admin("config", "history", "--json").out)
    assert [change["action"] for change in changes][:2] == ["setting.unset", "setting.set"]
    until(lambda: one.admin("cluster", "state").code == 0, "holding the same")


def test_settings_and_the_audit_log_outlive_every_node(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    with mesh_node(tmp_path, flags_of("a", key=key)) as node:
        assert node.admin("config", "set", "limits.n_max", "1").code == 0
        before = config(node)["hash"]
        rows = node.get("/v1/cluster/audit")["rows"]
    with mesh_node(tmp_path, flags_of("a", key=key)) as node:
        assert setting(node, "limits.n_max")["effective"] == 1
        assert config(node)["hash"] == before
        assert node.get("/v1/cluster/audit")["rows"] == rows


def test_a_node_alone_has_settings_and_an_audit_log_too(tmp_path: Path) -> None:
    with running_node(tmp_path) as node:
        admin = ("--url", node.url)
        assert smg_admin(*admin, "config", "set", "workers.retry_s", "2").code == 0
        state = json.loads(smg_admin(*admin, "cluster", "state", "--json").out)
        (row,) = json.loads(smg_admin(*admin, "audit", "--json").out)
    assert state["members"] == {}
    assert (row["subject"], row["address"], row["who"]) == (
        "workers.retry_s",
        "127.0.0.1",
        "loopback",
    )


def test_a_worker_with_a_key_is_usable_everywhere_and_its_key_is_shown_nowhere(
    pair: tuple[MeshNode, MeshNode], tmp_path: Path
) -> None:
    one, other = pair
    secret = tmp_path / "engine.key"
    secret.write_text(SECRET)
    with running_simulated(tmp_path / "engine") as engine:
        url = f"grpc://{engine.address}"
        added = one.admin("workers", "add", url, "--api-key-file", secret, "--wait")
        assert added.code == 0, added.err
        until(lambda: ready(other), "ready on the other node")
        patched = other.admin("workers", "patch", url, "--priority", "80")
        assert patched.code == 0, patched.err
        until(lambda: workers(one)[0]["priority"] == 80, "the change on the first node")
        (row,) = one.get("/v1/cluster/workers")["workers"]
        until(lambda: len(workers(other)[0]["seen_by"]) == 2, "both looking")
        (listed,) = workers(other)
        removed = other.admin("workers", "remove", url)
        assert removed.code == 0, removed.err
        until(lambda: not workers(one), "gone from the first node")
    assert (row["registered_by"], row["has_key"], row["sources"]) == ("a", True, ["api"])
    assert (listed["owner"], listed["has_key"]) == ("a", True)
    seen = [
        one.process.said(),
        other.process.said(),
        one.admin("audit", "--json").out,
        json.dumps([row, listed]),
        *(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*.bin")),
    ]
    assert not any(SECRET in text for text in seen)
    actions = [row["action"] for row in other.get("/v1/cluster/audit")["rows"]]
    assert actions == ["worker.remove", "worker.change", "worker.add"]


def workers(node: MeshNode) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.get("/workers")["workers"]
    return found


def ready(node: MeshNode) -> bool:
    return [worker["status"] for worker in workers(node)] == ["ready"]
