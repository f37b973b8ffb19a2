"""Secrets that are planted wherever a setting takes one: in nothing that a node writes, shows, answers or hands on."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from smg_node.access.api_key import key_text
from smg_node.config.schema.knob import Schema
from smg_node.config.settings import Settings
from support.processes.mesh_nodes import MeshNode, make_key, until
from support.processes.node import running_node
from support.processes.node_api import call

pytestmark = pytest.mark.integration

PLANTED: Final = "PlantedSecretOfNobody0123456789ab"
ADMIN: Final = f"{PLANTED}ofAdmins"
FILE_KEY: Final = key_text("planted", PLANTED)
VALUES: Final[Mapping[str, str]] = {
    "auth.api_key": f"{PLANTED}ofAll",
    "auth.tenant_api_keys": f"acme:{PLANTED}ofTenants",
    "auth.control_plane_api_keys": f"ci:CI:admin:{ADMIN}",
    "workers.api_key": f"{PLANTED}ofEngines",
    # Nobody listens there: what drivers say of it is logged.
    "storage.url": f"redis://:{PLANTED}@127.0.0.1:9/0",
    "mcp.proxy": f"http://me:{PLANTED}@127.0.0.1:9",
    "telemetry.otlp_endpoint": f"http://me:{PLANTED}@127.0.0.1:9",
}
OTHERS: Final = ("--telemetry.trace-ratio", "1", "--telemetry.log-level", "debug")
WORKERS: Final = ("--worker", "grpc://127.0.0.1:9", "--worker", "http://127.0.0.1:9")
PAGES: Final = (
    *(
        "/server_info",
        "/metrics",
        "/readiness",
        "/health",
        "/workers",
        "/v1/models",
        "/openapi.json",
    ),
    *("/v1/cluster", "/v1/cluster/keys?all=true", "/v1/cluster/audit", "/v1/cluster/state"),
    *("/v1/cluster/settings", "/v1/cluster/members", "/v1/cluster/limits", "/v1/mcp/servers"),
)


def in_files(folder: Path) -> list[str]:
    """Return flags that name a file for every value."""
    flags = []
    for knob, value in VALUES.items():
        file = folder / f"{knob}.secret"
        file.write_text(f"{value}\n")
        file.chmod(0o600)
        flags += [f"--{knob.replace('_', '-')}-file", str(file)]
    admins = folder / "admin.key"
    admins.write_text(f"{FILE_KEY}\n")
    admins.chmod(0o600)
    return [*flags, "--auth.admin-key-file", str(admins)]


def in_words() -> list[str]:
    return [
        word for knob, value in VALUES.items() for word in (f"--{knob.replace('_', '-')}", value)
    ]


def tree_of(root: int) -> Iterator[int]:
    """Yield a process and all that come from it."""
    yield root
    for task in Path(f"/proc/{root}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from tree_of(int(child))


def told_to_children(root: int, *, environment: bool) -> str:
    """Return the command lines, and with `environment` that, of a node's processes."""
    names = ("cmdline", "environ") if environment else ("cmdline",)
    found = []
    for pid in tree_of(root):
        for name in names:
            try:
                found.append(Path(f"/proc/{pid}/{name}").read_text(errors="replace"))
            except OSError:
                # It has ended meanwhile.
                continue
    return "\n".join(found)


def everything_answered(node: MeshNode) -> Iterator[str]:
    """Whatever a node answers to those who may ask and to those who may not, and `smg-admin` of it."""
    for key in (ADMIN, FILE_KEY, f"{PLANTED}ofTenants", f"{PLANTED}ofAll", f"{PLANTED}wrong", ""):
        headers = {"authorization": f"Bearer {key}"} if key else {}
        for path in PAGES:
            yield repr(call(node, "GET", path, headers=headers))
        for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages"):
            asked = {
                "model": "none",
                "messages": [{"role": "user", "content": "hi"}],
                "input": "hi",
            }
            yield repr(call(node, "POST", path, {**asked, "max_tokens": 2}, headers))
            yield repr(call(node, "POST", path, {"model": 7}, headers))
    for words in (("keys", "list", "--all"), ("audit",), ("config", "list"), ("workers", "list")):
        said = node.admin("--key", ADMIN, *words)
        yield said.out + said.err
    yield node.admin("--key", f"{PLANTED}wrong", "keys", "list").err


def test_all_knobs_with_secrets_are_planted() -> None:
    twins = {".".join(knob.content_of) for knob in Schema(Settings).knobs if knob.content_of}
    assert twins == set(VALUES)


@pytest.mark.parametrize(("processes", "way"), [(2, "files"), (0, "flags")])
def test_no_planted_secret_is_anywhere(tmp_path: Path, processes: int, way: str) -> None:
    secrets, scratch = tmp_path / "secrets", tmp_path / "node"
    secrets.mkdir()
    scratch.mkdir()
    given = in_files(secrets) if way == "files" else in_words()
    # With a keyring: without one the key of engines is plain in a file of the data directory.
    mesh = ("--mesh-key", str(make_key(secrets)), "--mesh", "127.0.0.1:0")
    flags = ["--name", "a", "--processes", str(processes), *given, *mesh, *OTHERS, *WORKERS]
    with running_node(scratch, flags=flags) as running:
        node = MeshNode("a", "", running)
        answered = list(everything_answered(node))
        assert any('"engine"' in one or "127.0.0.1:9" in one for one in answered)
        until(lambda: "store" in running.process.said(), "hearing of the store that is away")
        children = told_to_children(running.process.pid, environment=True) if way == "files" else ""
        said = running.process.said()
    assert not [one for one in answered if PLANTED in one]
    assert PLANTED not in said
    assert PLANTED not in children
    kept = [file for file in scratch.rglob("*") if file.is_file()]
    assert kept
    assert not [file for file in kept if PLANTED.encode() in file.read_bytes()]


@pytest.mark.parametrize("way", ["files", "flags", "environment"])
def test_no_planted_secret_is_printed(tmp_path: Path, way: str) -> None:
    environment = {f"SMG_{knob.replace('.', '__').upper()}": said for knob, said in VALUES.items()}
    flags = {"files": in_files(tmp_path), "flags": in_words(), "environment": []}[way]
    for asked in ("--print-config", "--check"):
        printed = smg_node([asked, *flags], environment if way == "environment" else {})
        assert printed
        assert PLANTED not in printed
    wrong = smg_node([*flags, "--store", f"nothing:{PLANTED}", "--no-such", "--check"], {})
    assert "no such flag" in wrong
    assert f"nothing:{PLANTED}" not in wrong


def smg_node(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return everything that a call of `smg-node` prints."""
    done = subprocess.run(
        [Path(sys.executable).with_name("smg-node"), *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_demo_engines_are_told_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "tenants"
    file.write_text(VALUES["auth.tenant_api_keys"])
    with running_node(
        tmp_path, flags=("--demo", "--auth.tenant-api-keys-file", str(file))
    ) as running:
        pids = list(tree_of(running.process.pid))
        assert len(pids) > 1
        assert PLANTED not in told_to_children(running.process.pid, environment=True)
