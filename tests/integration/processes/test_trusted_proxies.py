"""Proxies in front of real nodes, in one process and in several: whom they speak for, and nobody else does."""

import json
import subprocess
from pathlib import Path

import pytest

from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration
ASKED = '{"model": "sim", "max_tokens": 4, "messages": [{"role": "user", "content": "Why?"}]}'
RULES = """
auth:
  certificates:
    ops: {match: 'spiffe://prod/ops', role: admin, tenant: ops}
    teams: {match: 'spiffe://prod/ns/*/sa/web', tenant: '{1}'}
"""
TEAM = "x-forwarded-client-cert: By=x;Hash=y;URI=spiffe://prod/ops,Hash=z;URI=spiffe://prod/ns/blue/sa/web"
OPS = "x-forwarded-client-cert: URI=spiffe://prod/ops"
CLIENT = "x-forwarded-for: 198.51.100.1, 203.0.113.7"
OWN = "x-smg-peer-certificate: 99999999999999 spiffe%3A%2F%2Fprod%2Fops"


def asked(node: RunningNode, path: str, *headers: str, body: str = "") -> tuple[str, str]:
    """Return the status and body that curl is answered with."""
    words = ["curl", "-sS", "-w", "\n%{http_code}", node.url + path]
    words += [word for header in headers for word in ("-H", header)]
    words += ["-H", "content-type: application/json", "-d", body] if body else []
    text, _, status = subprocess.run(words, capture_output=True, text=True).stdout.rpartition("\n")
    return status, text


@pytest.mark.parametrize("processes", ["0", "1", "2"])
@pytest.mark.parametrize("believed", [True, False])
def test_every_process_believes_the_proxies_that_are_named_and_no_others(
    tmp_path: Path, processes: str, believed: bool
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    network = "127.0.0.1/32" if believed else "192.0.2.0/24"
    flags = ("--config", str(rules), "--processes", processes, "--http.trusted-proxies", network)
    script = ("--model", "sim", "--script", "endless")
    with (
        running_simulated(tmp_path / "engine", *script) as engines,
        running_node(tmp_path, workers=[f"grpc://{engines.address}"], flags=flags) as node,
    ):
        chat = "/v1/chat/completions"
        # Several connections: with several processes each comes to another one.
        for _ in range(3):
            assert asked(node, chat, OWN, body=ASKED)[0] == "401"
            assert asked(node, "/workers", OWN, "x-smg-peer: ::1")[0] == "401"
            assert asked(node, chat, TEAM, CLIENT, body=ASKED)[0] == ("200" if believed else "401")
            assert asked(node, "/workers", TEAM)[0] == ("403" if believed else "401")
            assert asked(node, "/workers", OPS)[0] == ("200" if believed else "401")
        if not believed:
            return
        made = '{"role": "user", "tenant": "t"}'
        assert asked(node, "/v1/cluster/keys", OPS, CLIENT, body=made)[0] == "201"
        (entry,) = json.loads(asked(node, "/v1/cluster/audit", OPS)[1])["rows"]
        assert (entry["who"], entry["address"]) == ("certificate:spiffe://prod/ops", "203.0.113.7")
        node.process.wait_until(
            lambda: '"blue"' in asked(node, "/v1/cluster/usage", OPS)[1], "usage", 30
        )
