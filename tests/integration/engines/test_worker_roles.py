"""Prefill and decode workers of real processes: by flags and by the API, shown by role, ready only together."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

SOON_S = 60.0


def asked(node: RunningNode, path: str, body: Any = None, method: str | None = None) -> Any:
    """Return the JSON of an answer of the node."""
    request = urllib.request.Request(
        node.url + path,
        None if body is None else json.dumps(body).encode(),
        {"content-type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_two_halves_are_ready_together_and_neither_is_alone(tmp_path: Path) -> None:
    for name in ("p", "d", "n"):
        (tmp_path / name).mkdir()
    room = ("--contract", "sglang")
    with (
        running_simulated(tmp_path / "p", *room, "--role", "prefill", "--ranks", "2") as first,
        running_simulated(tmp_path / "d", *room, "--role", "decode") as second,
        running_node(tmp_path / "n", flags=["--prefill", first.address, "8998"]) as node,
    ):
        wait = node.process.wait_until
        wait(lambda: asked(node, "/workers?status=ready")["total"] == 1, "ready", SOON_S)
        (alone,) = asked(node, "/workers")["workers"]
        assert (alone["role"], alone["worker_type"], alone["ranks"]) == ("prefill", "prefill", 2)
        assert (alone["bootstrap_port"], alone["labels"]) == (8998, {"bootstrap_port": "8998"})
        assert node.status("/readiness") == 503
        assert node.status("/health") == 503
        (model,) = asked(node, "/v1/models")["data"]
        assert (model["x_smg"]["workers"], model["x_smg"]["workers_ready"]) == (1, 0)

        # It says of itself that it draws answers, so nobody else has to.
        asked(node, "/workers", {"url": f"grpc://{second.address}"})
        wait(lambda: node.status("/readiness") == 200, "ready", SOON_S)
        assert node.status("/health") == 200
        assert asked(node, "/workers?role=decode")["stats"]["by_type"]["decode"] == 1
        (model,) = asked(node, "/v1/models")["data"]
        assert model["x_smg"]["roles"] == {"decode": 1, "prefill": 1}
        for role, count in (("regular", 0), ("prefill", 1), ("decode", 1)):
            assert node.metric("smg_node_workers_ready", role=role) == count

        # An operator who says otherwise is told, and the pair is none any more.
        (half,) = asked(node, "/workers?role=decode")["workers"]
        path = f"/workers/{half['id']}"
        asked(node, path, {"worker_type": "prefill"}, "PATCH")
        wait(lambda: asked(node, path)["status"] == "failed", "refused", SOON_S)
        why = "it was started for decode, and is registered as prefill"
        assert asked(node, path)["reason"] == why
        assert node.status("/readiness") == 503
