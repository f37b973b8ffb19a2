"""Real nodes and what they share, across restarts: alone, killed, and grown into a mesh."""

import json
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from support.processes.mesh_nodes import flags_of, mesh_node, smg_admin
from support.processes.node import RunningNode, running_node

pytestmark = pytest.mark.integration

KEY = "sk-of-a-worker-that-is-not-there"
NOBODY = "grpc://127.0.0.1:9"


def workers(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{url}/workers", timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)["workers"]
    return found


def add_worker(url: str) -> None:
    body = json.dumps({"url": NOBODY, "api_key": KEY}).encode()
    request = urllib.request.Request(f"{url}/workers", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 202


def is_saved(node: RunningNode) -> bool:
    return (
        node.metric("smg_node_state_saves_total", outcome="saved") > 0
        and node.metric("smg_node_state_unsaved") == 0
    )


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("**/*.bin")))


def test_a_worker_added_to_a_node_alone_is_there_after_a_crash_and_then_in_its_mesh(
    tmp_path: Path,
) -> None:
    named = ("--name", "a", "--readiness.min-workers", "0")
    with running_node(tmp_path, flags=named) as node:
        add_worker(node.url)
        node.process.wait_until(lambda: is_saved(node), "on its disk", 30)
        node.process.signal(signal.SIGKILL)
        node.process.wait(30)
    state = tmp_path / "data" / "state"
    assert all(path.stat().st_mode & 0o077 == 0 for path in state.iterdir())

    with running_node(tmp_path, flags=named) as node:
        (worker,) = workers(node.url)
        assert (worker["url"], worker["has_key"]) == (NOBODY, True)

    key = tmp_path / "key"
    assert smg_admin("cluster", "keyring", "generate", "--out", key).code == 0
    with mesh_node(tmp_path, flags_of("a", key=key)) as a:
        assert [one["url"] for one in workers(a.node.url)] == [NOBODY]
        with mesh_node(tmp_path, flags_of("b", key=key, join=[a.mesh])) as b:
            b.awaits("the state", lambda: b.node.status("/readiness") == 200)
            (worker,) = workers(b.node.url)
            assert (worker["url"], worker["has_key"]) == (NOBODY, True)
            assert "state_joined" in b.story("b")
            # Alone, its key was plain on a disk of its own; in a mesh it is sealed.
            b.awaits("a sealed key", lambda: a.node.metric("smg_node_state_upkeep_total", what="resealed") == 1)  # fmt: skip
    assert not state.exists()
    for name in "ab":
        kept = contents(tmp_path / "data" / "mesh" / name / "state")
        assert kept
        assert KEY.encode() not in kept
