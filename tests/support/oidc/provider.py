"""A certified OpenID provider (npm `oidc-provider`) on this machine, from the environment that `make oidc` makes."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from support.house.tree import ROOT
from support.mcp.real_servers import found, node
from support.processes.process import Process, running

FOLDER: Final = ROOT / ".cache" / "oidc"
_PROGRAM: Final = Path(__file__).parent / "programs" / "provider.mjs"
_READY_S: Final = 60.0
_ANSWER_S: Final = 20.0
SIGNATURES: Final = ("RS256", "PS256", "ES256", "Ed25519")
OPAQUE: Final = "opaque"


class NotInstalledError(Exception):
    """The provider is not there; says what to do."""


@dataclass(frozen=True)
class Client:
    """A client of the provider, and what its tokens claim beside what every token does."""

    secret: str
    claims: Mapping[str, Any]


@dataclass(frozen=True)
class OidcProvider:
    """A running provider."""

    issuer: str
    clients: Mapping[str, Client]
    process: Process
    issued: list[str] = field(default_factory=list)
    """All tokens it gave."""

    @property
    def port(self) -> int:
        """Where it listens: another one may take its place."""
        return int(self.issuer.rpartition(":")[2])

    def token(
        self, client: str, signature: str = "RS256", audience: str = "smg", seconds: int = 600
    ) -> str:
        """Return an access token for a client, by the client-credentials grant; `OPAQUE` for one that has no claims."""
        credentials = f"{client}:{self.clients[client].secret}".encode()
        form = {
            "grant_type": "client_credentials",
            "scope": "use",
            "resource": f"urn:judge:{signature}:{audience}:{seconds}",
        }
        request = Request(
            f"{self.issuer}/token",
            urlencode(form).encode(),
            {"authorization": f"Basic {b64encode(credentials).decode('ascii')}"},
        )
        self.issued.append(str(_answer(request)["access_token"]))
        return self.issued[-1]

    def rotate(self) -> None:
        """Exchange its keys: what they signed is not good any more."""
        _answer(Request(f"{self.issuer}/-/rotate", b""))

    def asked(self) -> Mapping[str, int]:
        """Return how often each of its paths was asked so far."""
        return _answer(Request(f"{self.issuer}/-/asked"))

    def key_set(self) -> bytes:
        """Return its key set as it publishes it."""
        with urlopen(f"{self.issuer}/jwks", timeout=_ANSWER_S) as answer:
            return bytes(answer.read())


@contextmanager
def running_provider(
    folder: Path, clients: Mapping[str, Client], port: int = 0
) -> Iterator[OidcProvider]:
    """Run a provider with these clients, at any free port or at one that an earlier one had."""
    package = FOLDER / "node_modules" / "oidc-provider"
    if not package.exists():
        raise NotInstalledError(f"{package} is missing: run `make oidc`")
    told = {name: {"secret": one.secret, "claims": one.claims} for name, one in clients.items()}
    options = json.dumps({"clients": told, "port": port})
    with running([node(), found(_PROGRAM), FOLDER, options], folder=folder) as process:
        address = process.wait_for(r"listening on (127\.0\.0\.1:\d+)", _READY_S)[1]
        yield OidcProvider(f"http://{address}", clients, process)


def _answer(request: Request) -> dict[str, Any]:
    with urlopen(request, timeout=_ANSWER_S) as answer:
        return dict(json.load(answer))
