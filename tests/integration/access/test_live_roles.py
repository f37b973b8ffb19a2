"""Roles of the cluster on real nodes: defined, changed and taken away while they run, in all processes, over restarts."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.oidc.token_nodes import TokenNodes, asked, token_nodes
from support.processes.mesh_nodes import until

pytestmark = pytest.mark.integration

NAMES = ("a", "b", "c")
OPEN, SHUT = 200, 403
LOOKED, KEYS = "/workers", "/v1/cluster/keys"


def statuses(nodes: TokenNodes, credential: str, path: str) -> list[int]:
    return [nodes.ask(name, credential, path).status for name in sorted(nodes.nodes)]


def done(nodes: TokenNodes, node: str, *words: str) -> Any:
    said = nodes.command(node, "--json", *words)
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_a_role_is_defined_changed_and_taken_away_on_all_nodes_while_they_run(
    tmp_path: Path,
) -> None:
    with token_nodes(tmp_path, "", ("a", "b")) as nodes:
        nodes.start("c", "--processes", "2")
        done(nodes, "a", "access", "define-role", "fleet", "--permissions", "look")
        key = done(nodes, "b", "keys", "create", "--role", "fleet", "--name", "one")["key"]
        admin = nodes.admin.read_text().strip()

        def all_say(path: str, status: int) -> bool:
            # Several connections each: a node of several processes answers by whichever takes them.
            return all(
                asked(node.url, key, path).status == status
                for node in nodes.nodes.values()
                for _ in range(4)
            )

        until(lambda: all_say(LOOKED, OPEN), "known on all nodes")
        assert all_say(KEYS, SHUT)
        # Changed elsewhere, for a key that is there.
        done(nodes, "b", "access", "define-role", "fleet", "--permissions", "keys,models")
        until(lambda: all_say(LOOKED, SHUT) and all_say(KEYS, OPEN), "changed on all nodes")
        assert all_say("/v1/models", OPEN)
        # It is there after a restart.
        nodes.stop("a")
        nodes.start("a")
        until(lambda: nodes.ask("a", key, KEYS).status == OPEN, "known after a restart")
        refused = nodes.command("c", "access", "remove-role", "fleet")
        assert refused.code == 1
        assert "role fleet is in use by keys" in refused.err
        assert all_say(KEYS, OPEN)
        told = done(nodes, "c", "access", "remove-role", "fleet", "--force")
        assert len(told["used_by"]["keys"]) == 1
        until(lambda: all_say(KEYS, SHUT) and all_say("/v1/models", SHUT), "gone on all nodes")
        assert all(nodes.ask(name, admin, KEYS).status == OPEN for name in NAMES)
        rows = nodes.look("b", "/v1/cluster/audit")["rows"]
        assert [row["action"] for row in rows if row["action"].startswith("role.")] == [
            "role.changed"
        ] * 3


def test_the_holder_of_a_role_makes_it_no_greater_on_any_node(tmp_path: Path) -> None:
    with token_nodes(tmp_path, "", NAMES) as nodes:
        words = ("--permissions", "access,look")
        done(nodes, "a", "access", "define-role", "doors", *words)
        made = tmp_path / "doors.key"
        made.write_text(done(nodes, "a", "keys", "create", "--role", "doors")["key"])
        made.chmod(0o600)
        until(lambda: statuses(nodes, made.read_text(), LOOKED) == [OPEN] * 3, "known on all nodes")
        admin, nodes.admin = nodes.admin, made
        try:
            for name in NAMES:
                greedy = nodes.command(
                    name, "access", "define-role", "doors", "--permissions", "access,look,keys"
                )
                assert greedy.code == 1
                assert "has not the permission keys" in greedy.err
            assert (
                nodes.command("b", "access", "define-role", "eyes", "--permissions", "look").code
                == 0
            )
        finally:
            nodes.admin = admin
