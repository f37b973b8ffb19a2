"""What a node costs that has nothing to do: no module too many, little memory, few wake-ups.

Measured on Linux x86-64, CPython 3.11, without workers and without a mesh: 38 MB resident, one wake-up in five
seconds. What nodes share is 4 MB of that; keys, limits, admission and usage are 1 MB. The library behind shared
documents, 5 MB more, comes with the first thing that is shared, what leases rights (2 MB) with the first limit, the
transport for peers with a mesh, the web framework (6 MB) with the first worker that is called by HTTP, the code for
vendors (4 MB beside it) with the first provider, the certificates that this machine trusts (1.5 MB) with the first by https, and most routes, a quarter of a megabyte, with the first
request for them. What the tests allow is
more, because other builds of Python and of the libraries differ, and less than any single library costs that has no
business here.
"""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from smg_chaos.bench.provider_memory import measured
from support.processes.node import running_node
from support.processes.process import Process, running

pytestmark = pytest.mark.integration

RESIDENT_MAX_KB: Final = 41 * 1024
WAKE_UPS_MAX_PER_S: Final = 4
OUR_MODULES_MAX: Final = 700
"""Half a millisecond of CPU each, and 35 KB: half of what a start costs."""
SIGNATURES_MAX_KB: Final = 20 * 1024
"""The library that verifies signatures, with one key."""
FIRST_ISSUER_MAX_KB: Final = SIGNATURES_MAX_KB + 24 * 1024
"""That, and the client that fetches keys, which the first worker by HTTP brings too."""
FIRST_PROVIDER_MAX_MB: Final = 12.0
FIFTY_PROVIDERS_MAX_MB: Final = 10.0
"""Of five models each, beyond what the first one brings."""

# Everything that is not of the standard library; `smg_node` imports the others, or they each other.
PACKAGES: Final = frozenset(
    {
        "httptools",
        "msgspec",
        "prometheus_client",
        "smg_mesh",
        "smg_node",
        "typing_extensions",
        "uvloop",
        "xxhash",
    }
)

# Of our own: what comes with a worker, with a model, with the first request for it, or stays with whoever reads the
# configuration.
NOT_OURS: Final = frozenset(
    {
        "smg_node.access.authenticators",
        "smg_node.access.tokens",
        "smg_node.admin",
        "smg_node.config.schema.knob",
        "smg_node.config.sources.loader",
        "smg_node.config.settings",
        "smg_node.dialects.embeddings",
        "smg_node.dialects.gemini.reader",
        "smg_node.dialects.tokenize",
        "smg_node.engines.grpc.contract_detection",
        "smg_node.engines.transport.grpcio_transport",
        "smg_node.engines.transport.h2.h2_transport",
        "smg_node.engines.http.aiohttp_client",
        "smg_node.engines.contracts.wire",
        "smg_node.fleet.models.model_assembly",
        "smg_node.cluster.approvals.approval_service",
        "smg_node.cluster.approvals.waiting_runs",
        "smg_node.cluster.issuers.access_service",
        "smg_node.cluster.issuers.key_fetches",
        "smg_node.cluster.issuers.shared_keys",
        "smg_node.cluster.mcp.definitions",
        "smg_node.cluster.workers.discovered_workers",
        "smg_node.cluster.workers.discovery_views",
        "smg_node.cluster.workers.source_reports",
        "smg_node.discovery",
        "smg_node.wiring.discovery.metrics",
        "smg_node.wiring.discovery.parts",
        "smg_node.wiring.discovery.peers",
        "smg_node.cluster.mcp.tool_servers",
        "smg_node.history.service.response_service",
        "smg_node.history.store.resilient_store",
        "smg_node.http.middleware.issuer_waiting",
        "smg_node.http.routes.cluster.access",
        "smg_node.http.routes.cluster.audit",
        "smg_node.http.routes.cluster.cluster",
        "smg_node.http.routes.inference.embeddings",
        "smg_node.http.routes.cluster.events",
        "smg_node.http.routes.cluster.explain",
        "smg_node.http.routes.tenants.keys",
        "smg_node.http.routes.tenants.limits",
        "smg_node.http.openapi.document",
        "smg_node.http.routes.cluster.settings",
        "smg_node.http.routes.cluster.shared_state",
        "smg_node.http.routes.inference.tokens",
        "smg_node.http.routes.tenants.usage",
        "smg_node.http.routes.workers.workers",
        "smg_node.http.ports.tool_approvals",
        "smg_node.http.routes.cluster.tool_approvals",
        "smg_node.http.routes.cluster.tool_servers",
        "smg_node.mcp",
        "smg_node.pipeline.relay.vendors",
        "smg_node.prompts.renderer",
        "smg_node.prompts.jinja.sandbox",
        "smg_node.providers",
        "smg_node.tokens.encoders",
        "smg_node.tokens.loader",
        "smg_node.tokens.caches.prefix_cache",
    }
)
# Of the standard library: heavy, and brought only by something else that should not be here.
NOT_STANDARD: Final = frozenset(
    {
        "ctypes",
        "importlib.metadata",
        "importlib.resources",
        "multiprocessing",
        "sqlite3",
        "tomllib",
        "unittest",
        "xml",
        "zoneinfo",
    }
)
# Put there by the interpreter's own start, and by compiled modules for themselves.
NOBODYS: Final = frozenset({"cython_runtime", "sitecustomize", "usercustomize"})

# Stands in for the command `smg-node`, and writes down what is imported when it ends.
TELLTALE: Final = """
import atexit, json, sys
path = sys.argv.pop(1)

def tell():
    with open(path, "w") as file:
        json.dump(sorted(sys.modules), file)

atexit.register(tell)
from smg_node.cli import main
sys.exit(main())
"""

# Prints how much memory the first key of an issuer takes, in kilobytes.
FIRST_KEY: Final = """
import re
from pathlib import Path
from smg_node.access.tokens.key_set import read_key_set

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

before = resident()
x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
found = read_key_set(b'{"keys":[{"kty":"OKP","crv":"Ed25519","x":"%s"}]}' % x.encode())
assert not found.keys[0].verify("Ed25519", b"", b"")
print(resident() - before)
"""


@contextmanager
def telltale(scratch: Path, *flags: str) -> Iterator[tuple[Process, Path]]:
    """Run a node that will say in a file which modules it had."""
    said = scratch / "modules.json"
    listen = ("--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--drain.settle-s", "0")
    command: list[str | Path] = [
        sys.executable,
        "-c",
        TELLTALE,
        said,
        *listen,
        "--data-dir",
        scratch / "data",
    ]
    with running([*command, *flags], folder=scratch / "run") as process:
        process.wait_for("listening on", 60)
        yield process, said


def modules_of(scratch: Path, *flags: str) -> set[str]:
    with telltale(scratch, *flags) as (process, said):
        process.signal(signal.SIGTERM)
        assert process.wait(30) == 0
    return set(json.loads(said.read_text(encoding="utf-8")))


def packages_among(modules: set[str]) -> set[str]:
    roots = {name.partition(".")[0] for name in modules}
    standard = sys.stdlib_module_names | NOBODYS
    return {name for name in roots - standard if not name.startswith("_")}


def status(pid: int, name: str) -> int:
    """Return a number of /proc/PID/status."""
    found = re.search(rf"^{name}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_an_idle_node_imports_nothing_that_waits_for_a_worker(tmp_path: Path) -> None:
    modules = modules_of(tmp_path)
    assert packages_among(modules) == PACKAGES
    assert sorted(modules & (NOT_OURS | NOT_STANDARD)) == []
    assert sum(name.startswith("smg_") for name in modules) <= OUR_MODULES_MAX


def test_a_node_with_a_worker_has_what_it_needs_before_the_first_request(tmp_path: Path) -> None:
    # Nobody listens there: what is imported does not depend on the worker's answer.
    modules = modules_of(tmp_path, "--worker", "grpc://127.0.0.1:9")
    needed = {
        "smg_node.engines.transport.h2.h2_transport",
        "smg_node.prompts.renderer",
        "smg_node.tokens.encoders",
    }
    assert needed <= modules
    assert {"jinja2", "tokenizers", "fastokens", "smg_grpc_proto"} <= modules
    assert "pydantic" not in modules


def test_what_reads_tokens_comes_with_the_first_issuer(tmp_path: Path) -> None:
    # Nobody listens there: its keys do not come.
    issuer = ("--auth.issuers.a.issuer", "http://127.0.0.1:9", "--auth.issuers.a.audiences", "smg")
    modules = modules_of(tmp_path, *issuer, "--auth.issuers.a.role-map", '{"*": "operator"}')
    assert {"joserfc", "smg_node.access.authenticators"} <= modules
    assert "pydantic" not in modules


def test_verifying_signatures_takes_little_memory() -> None:
    said = subprocess.run(
        [sys.executable, "-c", FIRST_KEY], capture_output=True, text=True, check=True, timeout=60
    )
    assert 0 < int(said.stdout) < SIGNATURES_MAX_KB


def test_an_issuer_takes_little_memory(tmp_path: Path) -> None:
    issuer = ("--auth.issuers.a.issuer", "http://127.0.0.1:9", "--auth.issuers.a.audiences", "smg")
    flags = (*issuer, "--auth.issuers.a.role-map", '{"*": "operator"}')
    with (
        running_node(tmp_path / "without", forked=False) as without,
        running_node(tmp_path / "with", forked=False, flags=flags) as node,
    ):
        time.sleep(3)
        more_kb = status(node.process.pid, "VmRSS") - status(without.process.pid, "VmRSS")
    assert more_kb < FIRST_ISSUER_MAX_KB


def test_the_names_of_our_own_modules_are_right() -> None:
    root = Path(__file__).parents[2] / "node"
    for name in NOT_OURS:
        path = root / name.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), name


def test_an_idle_node_is_small(tmp_path: Path) -> None:
    with running_node(tmp_path, forked=False) as node:
        time.sleep(1)  # for whatever wakes up after the start and is touched then
        assert status(node.process.pid, "VmRSS") < RESIDENT_MAX_KB


def test_fifty_providers_take_little_more_memory_than_one(tmp_path: Path) -> None:
    found = asyncio.run(measured((0, 1, 50), tmp_path, time.monotonic))
    ((none,), (one,), (fifty,)) = found.values()
    assert 20 < none < RESIDENT_MAX_KB / 1024
    assert one - none <= FIRST_PROVIDER_MAX_MB
    assert 0 < fifty - one <= FIFTY_PROVIDERS_MAX_MB


def test_an_idle_node_sleeps(tmp_path: Path) -> None:
    with running_node(tmp_path, forked=False) as node:
        time.sleep(1)
        tasks = [int(path.name) for path in Path(f"/proc/{node.process.pid}/task").iterdir()]
        began_s = time.monotonic()
        before = sum(status(task, "voluntary_ctxt_switches") for task in tasks)
        time.sleep(4)
        after = sum(status(task, "voluntary_ctxt_switches") for task in tasks)
        assert after - before <= WAKE_UPS_MAX_PER_S * (time.monotonic() - began_s)
