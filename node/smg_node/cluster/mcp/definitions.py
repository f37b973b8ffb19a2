"""Definitions of servers of tools as they count on this node: the cluster's, and those of its own file besides.

    effective = the cluster's definition of a name, where there is one that this version can read, else the node's own

A definition that cannot be read here (of a newer release, or with secrets that this node's keyring does not open) is
left where it is and reported.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from smg_mesh.shared import TOOL_SERVER, sealed_in
from smg_node.cluster.definition_ports import SharedValue
from smg_node.core.errors import SmgError
from smg_node.mcp.server_spec import ServerSpec
from smg_node.mcp.spec_parser import parse_server, parse_servers

CLUSTER: Final = "cluster"
NODE: Final = "node"
SEALED: Final = "all"
"""Under this name stand the sealed secrets of a server, all in one."""
_NONE: Final[Mapping[str, "DefinedServer"]] = {}
LOCKED: Final = "its secrets cannot be opened with this node's keyring"


@dataclass(frozen=True, slots=True)
class DefinedServer:
    """A server as this node uses it. `trouble` says why it cannot be used here, "" where it can."""

    spec: ServerSpec
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    source: str = NODE
    version: int = 0
    owner: str = ""
    time_ms: int = 0
    trouble: str = ""

    @property
    def written(self) -> tuple[str, int, str]:
        """Which write it is; none for one that is to be read again, because it cannot be used yet."""
        return ("", 0, "") if self.trouble else (self.source, self.version, self.owner)


@dataclass(frozen=True, slots=True)
class Definitions:
    """All of them by name; `unreadable` says by key why one of the cluster's is not followed."""

    servers: Mapping[str, DefinedServer]
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def troubled(self) -> bool:
        """Whether one cannot be used for now."""
        return any(one.trouble for one in self.servers.values())


def read_own(definitions: str) -> Mapping[str, DefinedServer]:
    """Return what a node's own file says, as JSON; INVALID_REQUEST names what is wrong with it."""
    plain = msgspec.json.decode(definitions) if definitions else {}
    parsed = parse_servers(plain.get("servers", {}))
    return {one.spec.name: DefinedServer(one.spec, one.secrets) for one in parsed}


def effective(
    own: Mapping[str, DefinedServer],
    shared: Sequence[SharedValue],
    open_secret: Callable[[bytes], str | None],
    before: Mapping[str, DefinedServer] = _NONE,
) -> Definitions:
    """Return what counts here; what is no server of tools is passed over.

    `before` is what counted last: what has not changed since is not read again.
    """
    servers = dict(own)
    unreadable: dict[str, str] = {}
    for one in shared:
        if not one.key.startswith(TOOL_SERVER):
            continue
        name = one.key.removeprefix(TOOL_SERVER)
        known = before.get(name)
        if known is not None and known.written == (CLUSTER, one.version, one.owner):
            servers[name] = known
            continue
        try:
            servers[name] = _server(one, open_secret)
        except SmgError as error:
            unreadable[one.key] = error.message
        except ValueError as error:
            unreadable[one.key] = str(error)
    return Definitions(dict(sorted(servers.items())), unreadable)


def written_secrets(secrets: Mapping[str, str]) -> str:
    """Return secrets as one text, to be sealed."""
    return msgspec.json.encode(dict(secrets)).decode()


def _server(one: SharedValue, open_secret: Callable[[bytes], str | None]) -> DefinedServer:
    plain = one.value.get("spec") if isinstance(one.value, dict) else None
    if not isinstance(plain, dict):
        raise ValueError("it is no definition of a server")
    sealed = sealed_in(one.value).get(SEALED, b"")
    opened = open_secret(sealed) if sealed else "{}"
    kept = None if opened is None else msgspec.json.decode(opened, type=dict[str, str])
    name = one.key.removeprefix(TOOL_SERVER)
    parsed = parse_server(name, plain, programs=False, kept=kept)
    trouble = LOCKED if opened is None else ""
    written = (one.version, one.owner, one.time_ms)
    return DefinedServer(parsed.spec, parsed.secrets, CLUSTER, *written, trouble)
