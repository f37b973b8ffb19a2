"""Gateways that can be compared, one row each: start command, environment, needed files."""

import asyncio
import json
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from smg_chaos.bench.children import BenchError, Child, fetch, free_ports, spawn
from smg_chaos.bench.gateways.engines import MODEL, VENDOR_KEY, VENDOR_MODEL
from smg_chaos.bench.gateways.secured_gateway import ADMIN_KEY, equip
from smg_chaos.bench.gateways.tool_engines import Beside

OURS: Final = "smg-node"
EQUIPPED: Final = "smg-node-equipped"
_VERSION_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Place:
    """Surroundings of a gateway: its ports, its engine or vendor, a folder for what it writes."""

    port: int
    metrics_port: int
    engine_port: int
    folder: Path
    peers: Path
    beside: Beside | None = None
    """What its models call tools with; None where no tools are called."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A gateway the bench can start. `peer` is the environment it lives in, "" for this one."""

    name: str
    says: str
    peer: str
    upstream: Literal["grpc", "http"]
    command: Callable[[Place], list[str]]
    ready_s: float = 60.0
    equip: "Callable[[Gateway, Callable[[], float]], Awaitable[str]] | None" = None
    """Sets it up once it listens, and returns the API key that it wants from then on."""
    environment: Mapping[str, str] = field(default_factory=dict)
    vendor: Callable[[Place], list[str]] | None = None
    """Its command in front of a vendor that speaks Messages; None for a gateway that has none."""
    tools: Callable[[Place], list[str]] | None = None
    """Its command with a second engine beside it, and a server of tools if there is one; None for a gateway that is not measured so."""


def _listening_node(place: Place) -> list[str]:
    return [
        *(sys.executable, "-m", "smg_node"),
        *("--http", f"127.0.0.1:{place.port}", "--metrics", f"127.0.0.1:{place.metrics_port}"),
        *("--data-dir", str(place.folder / "node"), "--drain.settle-s", "0"),
    ]


def _node(place: Place) -> list[str]:
    return [*_listening_node(place), "--worker", f"grpc://127.0.0.1:{place.engine_port}"]


def _tools_node(place: Place) -> list[str]:
    assert place.beside is not None, "there is a second engine"
    more = ["--worker", f"grpc://127.0.0.1:{place.beside.engine_port}"]
    if not place.beside.server_url:
        return [*_node(place), *more]
    path = place.folder / "servers.json"
    servers = {"bench": {"url": place.beside.server_url, "trust": "trusted"}}
    path.write_text(json.dumps({"servers": servers}))  # JSON is YAML
    return [*_node(place), *more, "--mcp", str(path)]


def _equipped_tools_node(place: Place) -> list[str]:
    return _equipped(place, _tools_node(place))


def _vendor_node(place: Place) -> list[str]:
    base = f"http://127.0.0.1:{place.engine_port}"
    definitions = {
        "providers": {"stand-in": {"kind": "anthropic", "base": base, "keys": [VENDOR_KEY]}},
        "routes": {MODEL: {"targets": [f"stand-in/{VENDOR_MODEL}"]}},
    }
    path = place.folder / "providers.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps(definitions))
    return [*_listening_node(place), "--providers", str(path)]


def _equipped(place: Place, command: list[str]) -> list[str]:
    path = place.folder / "admin.key"
    path.touch(mode=0o600)
    path.write_text(f"{ADMIN_KEY}\n")
    # A stream of Responses goes on without its client there, as one of Interactions does by itself.
    resumes = ("--responses.resume-grace-s", "5")
    return [*command, "--auth.admin-key-file", str(path), "--auth.data", "closed", *resumes]


def _equipped_node(place: Place) -> list[str]:
    return _equipped(place, _node(place))


def _equipped_vendor_node(place: Place) -> list[str]:
    return _equipped(place, _vendor_node(place))


def _smg(place: Place) -> list[str]:
    return [
        *(str(place.peers / "smg" / "bin" / "smg"), "launch"),
        *("--host", "127.0.0.1", "--port", str(place.port)),
        *("--prometheus-host", "127.0.0.1", "--prometheus-port", str(place.metrics_port)),
        *("--worker-urls", f"grpc://127.0.0.1:{place.engine_port}"),
    ]


def _smg_cached(place: Place) -> list[str]:
    return [*_smg(place), "--tokenizer-cache-enable-l0", "--tokenizer-cache-enable-l1"]


def _litellm(place: Place) -> list[str]:
    base = f"http://127.0.0.1:{place.engine_port}/v1"
    return _litellm_before(place, f"openai/{MODEL}", base, "none")


def _vendor_litellm(place: Place) -> list[str]:
    base = f"http://127.0.0.1:{place.engine_port}"
    return _litellm_before(place, f"anthropic/{VENDOR_MODEL}", base, VENDOR_KEY)


def _litellm_before(place: Place, model: str, base: str, key: str) -> list[str]:
    upstream = {"model": model, "api_base": base, "api_key": key}
    config = {"model_list": [{"model_name": MODEL, "litellm_params": upstream}]}
    path = place.folder / "litellm.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML
    return [
        *(str(place.peers / "litellm" / "bin" / "litellm"), "--config", str(path)),
        *("--host", "127.0.0.1", "--port", str(place.port), "--num_workers", "1"),
    ]


KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(
            OURS, "this tree's gateway", "", "grpc", _node, vendor=_vendor_node, tools=_tools_node
        ),
        Kind(
            EQUIPPED,
            "this tree's gateway as it is operated: keys, limits, metrics, access log",
            "",
            "grpc",
            _equipped_node,
            equip=equip,
            vendor=_equipped_vendor_node,
            tools=_equipped_tools_node,
        ),
        Kind("smg", "SMG in gRPC mode, as it comes: tokenizer caches off", "smg", "grpc", _smg),
        Kind("smg-cached", "SMG with its L0 and L1 tokenizer caches", "smg", "grpc", _smg_cached),
        Kind(
            "litellm",
            "litellm's proxy, in front of an engine that speaks HTTP, or of a vendor",
            "litellm",
            "http",
            _litellm,
            ready_s=180.0,
            # It would look for prices on the internet, three times, before it listens. And it starts
            # only with a key, or with its word for local use: as for the others, no key is asked for,
            # and only the loopback interface is listened on.
            environment={
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
            },
            vendor=_vendor_litellm,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A gateway as the command line asked for it: [LABEL:]KIND [ARGUMENT…]."""

    label: str
    kind: Kind
    arguments: Sequence[str] = ()


def wanted_of(spec: str) -> Wanted:
    """Return the gateway that a `--gateway` asks for; BenchError names the kinds there are."""
    words = shlex.split(spec)
    label, colon, name = words[0].partition(":") if words else ("", "", "")
    name = name if colon else label
    kind = KINDS.get(name)
    if kind is None or not label:
        raise BenchError(f"no gateway is called {name!r}; there are {', '.join(KINDS)}")
    return Wanted(label, kind, tuple(words[1:]))


def is_installed(kind: Kind, peers: Path) -> bool:
    """Return whether the gateway is where it is looked for."""
    return not kind.peer or (peers / kind.peer / "bin" / kind.peer).exists()


def check_installed(wanted: Sequence[Wanted], peers: Path) -> None:
    """BenchError says which gateways are missing, and how to get them."""
    missing = sorted({one.kind.peer for one in wanted if not is_installed(one.kind, peers)})
    if missing:
        names = " and ".join(missing)
        raise BenchError(f"{names}: not installed in {peers}. `make bench-peers` installs it.")


def check_vendors(wanted: Sequence[Wanted]) -> None:
    """ValueError says which gateways cannot be measured in front of a vendor, and which can."""
    without = sorted({one.kind.name for one in wanted if one.kind.vendor is None})
    if without:
        able = ", ".join(name for name, kind in KINDS.items() if kind.vendor is not None)
        raise ValueError(f"{' and '.join(without)}: not in front of a vendor; there are {able}")


def check_tools(wanted: Sequence[Wanted]) -> None:
    """ValueError says which gateways cannot be measured with a server of tools, and which can."""
    without = sorted({one.kind.name for one in wanted if one.kind.tools is None})
    if without:
        able = ", ".join(name for name, kind in KINDS.items() if kind.tools is not None)
        raise ValueError(f"{' and '.join(without)}: not with tools; there are {able}")


def version_of(kind: Kind, peers: Path) -> str:
    """Return the version of a gateway, as the packages of its own environment say."""
    python = str(peers / kind.peer / "bin" / "python") if kind.peer else sys.executable
    name = kind.peer or OURS
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    try:
        done = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, timeout=_VERSION_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() or "unknown"


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway; one that the bench did not start has `child` None, and `pid` may be 0."""

    label: str
    host: str
    port: int
    pid: int
    child: Child | None
    upstream: str
    engine: Child | None
    model: str = MODEL
    key: str = ""
    others: Sequence[Child] = ()
    """What else works for its requests, beside the engine."""

    def died(self) -> str:
        """Return a description of its end, or nothing while it runs."""
        return "" if self.child is None else self.child.died()

    def headers(self) -> dict[str, str]:
        """Return the headers that authorize a request."""
        return {"authorization": f"Bearer {self.key}"} if self.key else {}


def start(
    wanted: Wanted,
    engine: Child,
    engine_port: int,
    folder: Path,
    peers: Path,
    *,
    upstream: str = "",
    beside: Beside | None = None,
) -> Gateway:
    """Start a gateway in front of an engine, or of a vendor or of engines and tools where that is its `upstream`."""
    upstream = upstream or wanted.kind.upstream
    port, metrics_port = free_ports(2)
    own = folder / wanted.label
    own.mkdir(parents=True, exist_ok=True)
    place = Place(port, metrics_port, engine_port, own, peers, beside)
    by_upstream = {
        "vendor": wanted.kind.vendor,
        "tools": wanted.kind.tools,
        "pair": wanted.kind.tools,
    }
    made = by_upstream.get(upstream, wanted.kind.command)
    assert made is not None, "the plan has been checked"
    command = [*made(place), *wanted.arguments]
    log = folder / f"{wanted.label}.log"
    child = spawn(wanted.label, command, log, environment=wanted.kind.environment)
    others = () if beside is None else beside.children
    return Gateway(
        wanted.label, "127.0.0.1", port, child.pid, child, upstream, engine, others=others
    )


async def equipped(gateway: Gateway, kind: Kind, clock_s: Callable[[], float]) -> Gateway:
    """Return the gateway with the credentials requests need; BenchError if it cannot be had."""
    if kind.equip is None:
        return gateway
    return replace(gateway, key=await kind.equip(gateway, clock_s))


async def ready(
    gateway: Gateway, limit_s: float, clock_s: Callable[[], float], *, answer_s: float = 5.0
) -> None:
    """Return once the gateway answers a chat; BenchError if it ends, or does not for too long.

    An answer, of two tokens, may take `answer_s`.
    """
    question = {"role": "user", "content": "Are you there?"}
    body = json.dumps({"model": gateway.model, "messages": [question], "max_tokens": 2}).encode()
    end_s, last = clock_s() + limit_s, "nobody listens"
    while clock_s() < end_s:
        if said := gateway.died():
            raise BenchError(said)
        try:
            status, answer = await fetch(
                gateway.host,
                gateway.port,
                "POST",
                "/v1/chat/completions",
                body,
                headers=gateway.headers(),
                timeout_s=answer_s,
            )
        except OSError as error:
            last = str(error) or type(error).__name__
        else:
            if status == 200:
                return
            last = f"status {status}: {answer[:300]!r}"
        await asyncio.sleep(0.2)
    log = f"\n{gateway.child.last_words()}" if gateway.child is not None else ""
    raise BenchError(f"{gateway.label} does not answer after {limit_s:.0f} s: {last}{log}")
