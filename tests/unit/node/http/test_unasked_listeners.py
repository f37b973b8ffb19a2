"""A node without a listener for operators, believed proxies, issuers and files of TLS holds nothing of them."""

import os
import subprocess
import sys
from pathlib import Path

import support

CODE = """
import asyncio, sys
import smg_node.cli, smg_node.wiring.node_process, smg_node.wiring.data_process
from smg_node.http.forwarding.control_proxy import Forwarding
from support.http.http_node import chat, node
from support.http.raw_http import ask

async def use():
    async with node() as served, node(elsewhere=Forwarding("/none", lambda: False)) as data:
        for one in (served, data):
            headers = {"x-forwarded-for": "10.0.0.1", "x-forwarded-client-cert": "URI=a", "x-smg-tenant-id": "t"}
            await ask(one.port, "POST", "/v1/chat/completions", chat(), headers)
            await ask(one.port, "GET", "/workers", b"", headers)

asyncio.run(use())
unasked = ("socket_guard", "admin_listening", "proxied_line", "proxy_door", "access.proxies", "forwarded_certificate")
unasked += ("protected_resource", "access.certificates", "http.tls.")
print([name for name in sys.modules if name.startswith("smg_node") and any(part in name for part in unasked)])
"""


def test_requests_to_a_plain_node_load_nothing_of_other_wires() -> None:
    tests = Path(next(iter(support.__path__))).parent
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "PYTHONPATH": str(tests)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
