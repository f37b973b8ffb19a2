"""The listener for operators of real nodes, in one process and in several, asked by smg-admin and curl."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration
WAIT_S = 60.0
ADMIN = str(Path(sys.executable).with_name("smg-admin"))
ASKED = '{"model": "sim", "max_tokens": 4, "messages": [{"role": "user", "content": "Why?"}]}'


def admin(url: str, *words: str, key: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SMG_ADMIN_KEY": key}
    command = [ADMIN, "--url", url, "--json", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def status(url: str, *flags: str) -> str:
    words = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", *flags, url]
    return subprocess.run(words, capture_output=True, text=True).stdout


def told(node: RunningNode, pattern: str) -> str:
    found: re.Match[str] = node.process.wait_for(pattern, WAIT_S)
    return found[1]


@pytest.mark.parametrize("processes", ["0", "1", "2"])
def test_operators_come_by_a_socket_and_nobody_else_does(tmp_path: Path, processes: str) -> None:
    path = tmp_path / "admin.sock"
    flags = ("--processes", processes, "--http.admin-listen", f"unix:{path}")
    script = ("--model", "sim", "--script", "endless")
    with (
        running_simulated(tmp_path / "engine", *script) as engines,
        running_node(tmp_path, workers=[f"grpc://{engines.address}"], flags=flags) as node,
    ):
        url = told(node, r'operators are answered on (unix:[^\s"]+)')
        assert url == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert admin(url, "workers", "list").returncode == 0
        made = admin(url, "keys", "create", "--role", "admin", "--tenant", "ops")
        assert made.returncode == 0, made.stderr
        key = re.search(r"smg-[a-z0-9]+-[A-Za-z0-9_-]+", made.stdout)
        assert key is not None, made.stdout
        assert admin(url, "status").returncode == 0, "without the key, although there is one now"
        assert f"socket:uid={os.geteuid()}" in admin(url, "audit").stdout
        bearer = ("-H", f"authorization: Bearer {key[0]}")
        # Several connections: with several processes each comes to another one.
        for _ in range(4):
            for target in ("/workers", "/metrics", "/v1/cluster/keys", "/get_model_info"):
                assert status(node.url + target, *bearer) == "404", target
            assert status(f"{node.url}/v1/models", *bearer) == "200"
            assert status(f"{node.url}/readiness") == "200"
        over = ("--unix-socket", str(path))
        assert status("http://localhost/metrics", *over) == "200"
        assert status("http://localhost/readiness", *over) == "200"
        assert status("http://localhost/health_generate", *over) == "200"
        posted = ("-H", "content-type: application/json", "-d", ASKED)
        assert status("http://localhost/v1/chat/completions", *over, *posted) == "404"
        assert status(f"{node.url}/v1/chat/completions", *bearer, *posted) == "200"
        assert admin(node.url, "workers", "list", key=key[0]).returncode == 1
        assert '"workers": null' in admin(node.url, "status").stdout
    assert not path.exists()


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_port_for_operators_needs_keys_as_the_public_one_did(
    tmp_path: Path, processes: str
) -> None:
    flags = ("--processes", processes, "--http.admin-listen", "127.0.0.1:0")
    with running_node(tmp_path, flags=flags) as node:
        url = told(node, r"operators are answered on (http://127\.0\.0\.1:[1-9]\d*)")
        made = admin(url, "keys", "create", "--role", "admin", "--tenant", "ops")
        assert made.returncode == 0, made.stderr
        assert admin(url, "workers", "list").returncode == 1
        assert '"workers": null' in admin(url, "status").stdout
        key = re.search(r"smg-[a-z0-9]+-[A-Za-z0-9_-]+", made.stdout)
        assert key is not None
        assert admin(url, "workers", "list", key=key[0]).returncode == 0
        assert status(f"{node.url}/workers", "-H", f"authorization: Bearer {key[0]}") == "404"
