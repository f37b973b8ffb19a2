"""Real nodes that take tokens of an issuer, asked with tokens and with an administrator's key."""

import json
import time
import urllib.error
import urllib.request
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from smg_node.system_clock import SystemClock
from support.processes.mesh_nodes import WAIT_S, Said, flags_of, make_key, mesh_node, smg_admin
from support.processes.node import RunningNode

_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Answer:
    """What a node answered: status, code of the error, seconds to wait as it says, body."""

    status: int
    code: str
    retry_after: str
    body: Any


def asked(url: str, credential: str, path: str = "/v1/models") -> Answer:
    """Ask on a connection of its own."""
    request = urllib.request.Request(url + path, headers={"authorization": f"Bearer {credential}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return Answer(answer.status, "", "", json.load(answer))
    except urllib.error.HTTPError as error:
        with error:
            told = json.load(error)
        headers = error.headers
        code = headers["x-smg-error-code"] or ""
        return Answer(error.code, code, headers.get("retry-after", ""), told)


def admin_key(folder: Path) -> Path:
    """Return a file with a new admin key."""
    file = folder / "admin.key"
    said = smg_admin("keys", "generate", "--out", file)
    assert said.code == 0, said.err
    return file


def invented(issuer: str, number: int) -> str:
    """Return a token of an issuer that names a key nobody has; its claims are good."""
    head = {"alg": "RS256", "typ": "JWT", "kid": f"invented-{number}"}
    now_s = SystemClock().now_ms() // 1000
    claims = {"iss": issuer, "aud": "smg", "sub": "eve", "iat": now_s, "exp": now_s + 600}
    parts = (json.dumps(head), json.dumps(claims), "x" * 256)
    return ".".join(urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


@dataclass
class TokenNodes:
    """Members of one mesh by name, as far as they live; all have the same settings."""

    folder: Path
    config: Path
    key: Path
    admin: Path
    nodes: dict[str, RunningNode] = field(default_factory=dict)
    _meshes: dict[str, str] = field(default_factory=dict)
    _stacks: dict[str, ExitStack] = field(default_factory=dict)

    def start(self, name: str, *flags: str) -> RunningNode:
        """Start a node, joining through all that live; return when it sees them."""
        join = [self._meshes[one] for one in sorted(self.nodes)]
        stack = self._stacks[name] = ExitStack()
        given = [
            *flags_of(name, key=self.key, join=join),
            *("--config", str(self.config), "--auth.admin-key-file", str(self.admin), *flags),
        ]
        node = stack.enter_context(mesh_node(self.folder / name, given))
        self.nodes[name], self._meshes[name] = node.node, node.mesh
        self.awaits(name, "seeing the others", lambda: self._seen(name) >= set(self.nodes))
        return node.node

    def stop(self, name: str) -> None:
        """End a node; what it kept stays."""
        del self.nodes[name], self._meshes[name]
        self._stacks.pop(name).close()

    def close(self) -> None:
        """End all."""
        for name in list(self.nodes):
            self.stop(name)

    def ask(self, name: str, credential: str, path: str = "/v1/models") -> Answer:
        """Ask a node with a credential."""
        return asked(self.nodes[name].url, credential, path)

    def look(self, name: str, path: str) -> Any:
        """Return what a node answers its administrator."""
        answer = self.ask(name, self.admin.read_text().strip(), path)
        assert answer.status == 200, answer
        return answer.body

    def command(self, name: str, *words: str) -> Said:
        """Run `smg-admin` against a node."""
        return smg_admin("--url", self.nodes[name].url, "--key-file", self.admin, *words)

    def issuer(self, name: str) -> Mapping[str, Any]:
        """Return the only issuer as a node sees it."""
        (found,) = self.look(name, "/v1/cluster/access/issuers")["issuers"]
        return dict(found)

    def awaits(self, name: str, what: str, true: Callable[[], bool]) -> None:
        """Return once that holds; an error with the node's log if it takes too long."""
        self.nodes[name].process.wait_until(true, what, WAIT_S)

    def await_keys(self, names: Sequence[str] = ()) -> None:
        """Return once all have the issuer's keys."""
        for name in names or sorted(self.nodes):
            self.awaits(name, "keys", lambda name=name: self.issuer(name)["state"] == "fresh")  # type: ignore[misc]  # bound now

    def await_quiet(self, since_s: float = 5.5) -> None:
        """Return when nobody asked the issuer within the last seconds: an unknown key is then a reason to ask."""
        fetched_ms = max(self.issuer(name)["fetched_ms"] for name in self.nodes)
        while SystemClock().now_ms() - fetched_ms < since_s * 1000:
            time.sleep(_POLL_S)

    def _seen(self, name: str) -> set[str]:
        rows = self.look(name, "/v1/cluster/members")["members"]
        return {row["name"] for row in rows if row["state"] == "alive"}


@contextmanager
def token_nodes(folder: Path, settings: str, names: Sequence[str]) -> Iterator[TokenNodes]:
    """Run nodes with these settings (YAML) that see each other."""
    config = folder / "node.yaml"
    config.write_text(settings)
    nodes = TokenNodes(folder, config, make_key(folder), admin_key(folder))
    try:
        for name in names:
            nodes.start(name)
        yield nodes
        said = "\n".join(node.process.said() for node in nodes.nodes.values())
        assert "Traceback" not in said, said
    finally:
        nodes.close()
