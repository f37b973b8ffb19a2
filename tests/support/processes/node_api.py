"""One node's HTTP API from a test: any method, any header, and load on several nodes at once."""

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from support.processes.mesh_nodes import MeshNode

ROUTED: Final = "x-smg-routed-worker-id"
_TIMEOUT_S: Final = 60.0
_BETWEEN_ASKS_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Answer:
    """What a node said. `body` is JSON where it is any, else text."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def error(self) -> Mapping[str, Any]:
        """The error it is."""
        found: Mapping[str, Any] = self.body["error"]
        return found


def call(
    node: MeshNode,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Ask a node; OSError if it does not answer."""
    request = urllib.request.Request(
        node.node.url + path,
        None if body is None else json.dumps(body).encode(),
        {"content-type": "application/json", **(headers or {})},
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            return _read(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return _read(error.code, error.headers, error.read())


def _read(status: int, headers: Any, content: bytes) -> Answer:
    try:
        body = json.loads(content)
    except ValueError:
        body = content.decode(errors="replace")
    return Answer(status, {key.lower(): value for key, value in headers.items()}, body)


def chat(node: MeshNode, model: str, *, key: str = "", text: str = "hi", tokens: int = 2) -> Answer:
    """Ask for a short chat, with a routing key if there is one."""
    asked = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": tokens,
    }
    headers = {"x-smg-routing-key": key} if key else {}
    return call(node, "POST", "/v1/chat/completions", asked, headers)


def workers(node: MeshNode) -> dict[str, dict[str, Any]]:
    """Return the workers as a node sees them, by URL."""
    return {row["url"]: row for row in node.get("/workers")["workers"]}


def ready_at(node: MeshNode, urls: Sequence[str]) -> bool:
    """Return whether a node sees exactly these engines, all of them ready; targets of providers are none."""
    found = {url: row for url, row in workers(node).items() if row["sources"] != ["providers"]}
    return found.keys() == set(urls) and all(row["status"] == "ready" for row in found.values())


def setting(node: MeshNode, key: str) -> Mapping[str, Any]:
    """Return a setting as a node sees it."""
    found: Mapping[str, Any] = node.get(f"/v1/cluster/settings/{key}")
    return found


def change_setting(node: MeshNode, key: str, value: Any) -> Answer:
    """Set it over the version that this node has; None takes it away."""
    version = {"if-match": f'"{setting(node, key)["version"]}"'}
    path = f"/v1/cluster/settings/{key}"
    if value is None:
        return call(node, "DELETE", path, headers=version)
    return call(node, "PUT", path, {"value": value}, version)


def digests(node: MeshNode) -> Mapping[str, str]:
    """Return the digest of each kind of shared state."""
    spaces = node.get("/v1/cluster/state")["namespaces"]
    return {space["name"]: space["digest"] for space in spaces if space["digest"].strip("0")}


def same_everywhere(nodes: Sequence[MeshNode], *, besides: Collection[str] = ()) -> bool:
    """Return whether these nodes hold the same, kinds of state `besides` left out, and run the same settings."""
    held: list[Any] = [node.get("/v1/cluster/state")["digest"] for node in nodes]
    if besides:
        told = [digests(node) for node in nodes]
        held = [{kind: one[kind] for kind in one if kind not in besides} for one in told]
    runs = [node.get("/v1/cluster")["config"] for node in nodes]
    heard = all(len(card["members"]) == len(nodes) and card["same"] for card in runs)
    return all(one == held[0] for one in held) and heard


@dataclass
class Went:
    """How the requests to one node went, and whether it ever missed a worker."""

    answers: int = 0
    failed: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)


@contextmanager
def asked_all_the_time(
    nodes: Sequence[MeshNode], model: str, urls: Sequence[str]
) -> Iterator[dict[str, Went]]:
    """Ask these nodes for chats, and for their workers, again and again meanwhile; yield how it went."""
    went = {node.name: Went() for node in nodes}
    over = threading.Event()

    def ask(node: MeshNode) -> None:
        seen = went[node.name]
        while not over.is_set():
            try:
                answer = chat(node, model)
                if answer.status != 200:
                    seen.failed.append(f"{answer.status} {answer.body}")
                if not ready_at(node, urls):
                    seen.missed.append(str(workers(node)))
            except OSError as error:
                seen.failed.append(repr(error))
            seen.answers += 1
            time.sleep(_BETWEEN_ASKS_S)

    threads = [threading.Thread(target=ask, args=(node,)) for node in nodes]
    for thread in threads:
        thread.start()
    try:
        yield went
    finally:
        over.set()
        for thread in threads:
            thread.join()
