"""Cluster routes: show the members and the keyring, join, leave, drain and forget members."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import invalid
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import query_word, read_fields, switch_field
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.node import Cluster, HealthReport, KeyringView, MemberRow
from smg_node.http.ports.shared_state import AuditService, ConfigState, SettingsService
from smg_node.http.query_bounds import MEMBER_STATES
from smg_node.http.routes.cluster.settings import config_card

PEERS_MAX: Final = 256
_PEER_CHARACTERS_MAX: Final = 300
_KEY_CHARACTERS_MAX: Final = 128
_FINGERPRINT_CHARACTERS_MAX: Final = 32
"""A key itself has 43 or more."""
_CHANGES: Final = ("install", "use", "remove")


class ClusterRoutes:
    """Serves the member table and the keyring."""

    def __init__(
        self,
        cluster: Cluster,
        settings: SettingsService,
        audit: AuditService,
        bodies: BodyReader,
        health: HealthReport,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._audit = audit
        self._bodies = bodies
        self._health = health

    async def cluster(self, request: HttpRequest) -> Reply:
        """Show the cluster as this node sees it."""
        card = self._cluster.card()
        config = config_card(self._settings, card.node)
        # What else is not as it should be belongs to it: a history, for one, that lies on many nodes.
        degraded = dict.fromkeys([*card.degraded, *self._health.health().degraded])
        told = {**msgspec.to_builtins(card), "degraded": list(degraded), "config": config}
        return json_reply(told)

    async def members(self, request: HttpRequest) -> Reply:
        """List the members, all or those in `?state=`."""
        state = query_word(request, "state", MEMBER_STATES)
        states = self._settings.states()
        rows = [_shown(row, states) for row in self._cluster.members() if state in ("", row.state)]
        return json_reply({"node": self._cluster.card().node, "members": rows})

    async def member(self, request: HttpRequest) -> Reply:
        """Show one member."""
        row = self._cluster.member(request.values["name"])
        return json_reply(_shown(row, self._settings.states()))

    async def join(self, request: HttpRequest) -> Reply:
        """Look for these nodes from now on; the result shows later."""
        body = await read_fields(self._bodies, request, ("peers",))
        peers = body.get("peers")
        if not isinstance(peers, list) or not 0 < len(peers) <= PEERS_MAX:
            raise invalid(f"peers must be a list of 1 to {PEERS_MAX} HOST[:PORT]", "peers")
        for at, peer in enumerate(peers):
            if not isinstance(peer, str) or not 0 < len(peer) <= _PEER_CHARACTERS_MAX:
                raise invalid("a peer is written HOST or HOST:PORT", f"peers[{at}]")
        self._cluster.join(peers)
        node = self._cluster.card().node
        self._audit.record(caller_of(request), "cluster.join", node, after={"peers": peers})
        return json_reply({"status": "accepted", "peers": peers}, 202)

    async def leave(self, request: HttpRequest) -> Reply:
        """Begin this node's shutdown; this answer is among the last."""
        node = self._cluster.card().node
        # Written first: what follows is this node's farewell.
        self._audit.record(caller_of(request), "node.leave", node)
        self._cluster.leave()
        return json_reply({"status": "leaving", "node": node}, 202)

    async def drain_member(self, request: HttpRequest) -> Reply:
        """Make a member refuse new work; its process and its listeners stay."""
        return await self._set_aside(request, on=True)

    async def undrain_member(self, request: HttpRequest) -> Reply:
        """Make a member take work again."""
        return await self._set_aside(request, on=False)

    async def _set_aside(self, request: HttpRequest, *, on: bool) -> Reply:
        row = await self._cluster.set_aside(request.values["name"], on=on)
        action = "member.drain" if on else "member.undrain"
        self._audit.record(caller_of(request), action, row.name, after={"draining": on})
        return json_reply(_shown(row, self._settings.states()))

    async def forget_member(self, request: HttpRequest) -> Reply:
        """Drop the row of a dead member here and on every member that can be reached."""
        name = request.values["name"]
        members = await self._cluster.forget(name)
        self._audit.record(caller_of(request), "member.forget", name, after={"members": members})
        return json_reply({"name": name, "members": members})

    async def keyring(self, request: HttpRequest) -> Reply:
        """List the keys by fingerprint, with the members that hold them."""
        return _keyring(await self._cluster.keyring("list", "", force=False))

    async def change_keyring(self, request: HttpRequest) -> Reply:
        """Apply one step of a rotation on every member: `install`, then `use`, then `remove`."""
        body = await read_fields(self._bodies, request, ("operation", "key", "force"))
        operation, key, force = body.get("operation"), body.get("key"), switch_field(body, "force")
        if operation not in _CHANGES:
            raise invalid(f"operation must be one of {', '.join(_CHANGES)}", "operation")
        if not isinstance(key, str) or not 0 < len(key) <= _KEY_CHARACTERS_MAX:
            needs = "a key of 32 bytes in base64" if operation == "install" else "a fingerprint"
            raise invalid(f"{operation} needs {needs}", "key")
        view = await self._cluster.keyring(operation, key.strip(), force=force)
        # What is installed is a key and no fingerprint, and must not be written down.
        subject = key.strip() if len(key.strip()) <= _FINGERPRINT_CHARACTERS_MAX else ""
        after = {"primary": view.primary, "fingerprints": sorted(view.keys), "force": force}
        self._audit.record(caller_of(request), f"keyring.{operation}", subject, after=after)
        return _keyring(view)


def _shown(row: MemberRow, states: Mapping[str, ConfigState]) -> Mapping[str, Any]:
    """Return a member, with the versions that it runs."""
    state = states.get(row.name, ConfigState("", ""))
    runs = {"config_hash": state.hash, "effective_hash": state.effective}
    return {**msgspec.to_builtins(row), **runs}


def _keyring(view: KeyringView) -> Reply:
    keys = [
        {"fingerprint": key, "primary": key == view.primary, "members": list(holders)}
        for key, holders in view.keys.items()
    ]
    return json_reply({"primary": view.primary, "keys": keys, "members": view.members})
