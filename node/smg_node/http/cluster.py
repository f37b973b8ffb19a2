"""The routes by which an operator sees the cluster's members and moves them."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.errors import invalid
from smg_node.dialects.json_body import read_json
from smg_node.http.body import BodyReader
from smg_node.http.ports import Cluster, KeyringView
from smg_node.http.reply import Reply, json_reply
from smg_node.http.request import HttpRequest

PEERS_MAX: Final = 256
_PEER_CHARACTERS_MAX: Final = 300
_KEY_CHARACTERS_MAX: Final = 128
_CHANGES: Final = ("install", "use", "remove")


class ClusterRoutes:
    """Serves the member table and the keyring."""

    def __init__(self, cluster: Cluster, bodies: BodyReader) -> None:
        self._cluster = cluster
        self._bodies = bodies

    async def cluster(self, request: HttpRequest) -> Reply:
        """Show the cluster as this node sees it."""
        return json_reply(self._cluster.card())

    async def members(self, request: HttpRequest) -> Reply:
        """List the members, all or those in `?state=`."""
        state = request.query.get("state", "")
        rows = [row for row in self._cluster.members() if state in ("", row.state)]
        return json_reply({"node": self._cluster.card().node, "members": rows})

    async def member(self, request: HttpRequest) -> Reply:
        """Show one member."""
        return json_reply(self._cluster.member(request.values["name"]))

    async def join(self, request: HttpRequest) -> Reply:
        """Look for these nodes from now on; whether they answer is seen later."""
        body = await self._body(request, ("peers",))
        peers = body.get("peers")
        if not isinstance(peers, list) or not 0 < len(peers) <= PEERS_MAX:
            raise invalid(f"peers must be a list of 1 to {PEERS_MAX} HOST[:PORT]", "peers")
        for at, peer in enumerate(peers):
            if not isinstance(peer, str) or not 0 < len(peer) <= _PEER_CHARACTERS_MAX:
                raise invalid("a peer is written HOST or HOST:PORT", f"peers[{at}]")
        self._cluster.join(peers)
        return json_reply({"status": "accepted", "peers": peers}, 202)

    async def leave(self, request: HttpRequest) -> Reply:
        """Begin this node's farewell; this answer is among the last."""
        self._cluster.leave()
        return json_reply({"status": "leaving", "node": self._cluster.card().node}, 202)

    async def drain_member(self, request: HttpRequest) -> Reply:
        """Let a member take no new work; its process and its listeners stay."""
        return json_reply(await self._cluster.set_aside(request.values["name"], on=True))

    async def undrain_member(self, request: HttpRequest) -> Reply:
        """Let a member take work again."""
        return json_reply(await self._cluster.set_aside(request.values["name"], on=False))

    async def forget_member(self, request: HttpRequest) -> Reply:
        """Drop the row of a dead member here and on every member that can be asked."""
        name = request.values["name"]
        return json_reply({"name": name, "members": await self._cluster.forget(name)})

    async def keyring(self, request: HttpRequest) -> Reply:
        """List the keys by fingerprint, and who holds them."""
        return _keyring(await self._cluster.keyring("list", "", force=False))

    async def change_keyring(self, request: HttpRequest) -> Reply:
        """Carry one step of a rotation to every member: `install`, then `use`, then `remove`."""
        body = await self._body(request, ("operation", "key", "force"))
        operation, key, force = body.get("operation"), body.get("key"), body.get("force", False)
        if operation not in _CHANGES:
            raise invalid(f"operation must be one of {', '.join(_CHANGES)}", "operation")
        if not isinstance(key, str) or not 0 < len(key) <= _KEY_CHARACTERS_MAX:
            needs = "a key of 32 bytes in base64" if operation == "install" else "a fingerprint"
            raise invalid(f"{operation} needs {needs}", "key")
        if not isinstance(force, bool):
            raise invalid("force must be true or false", "force")
        return _keyring(await self._cluster.keyring(operation, key.strip(), force=force))

    async def _body(self, request: HttpRequest, known: tuple[str, ...]) -> Mapping[str, Any]:
        body = read_json(await self._bodies.json(request))
        for key in body:
            if key not in known:
                raise invalid(
                    f"there is no {key[:64]!r}; known: {', '.join(known)}",
                    key[:64],
                    "unknown_parameter",
                )
        return body


def _keyring(view: KeyringView) -> Reply:
    keys = [
        {"fingerprint": key, "primary": key == view.primary, "members": list(holders)}
        for key, holders in view.keys.items()
    ]
    return json_reply({"primary": view.primary, "keys": keys, "members": view.members})
