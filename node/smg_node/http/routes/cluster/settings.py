"""Settings routes: show, change, validate and roll back the settings of the whole cluster."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_node.access.identity import ANYBODY
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import (
    expected_version,
    query_number,
    query_switch,
    read_fields,
    switch_field,
    text_field,
)
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.shared_state import (
    AuditQuery,
    ConfigState,
    SettingChange,
    SettingsService,
    SettingView,
)
from smg_node.http.routes.cluster.settings_history import (
    CHANGES_MAX,
    HISTORY_MAX,
    Change,
    change_of,
    since,
    undone,
)

_OF_ACCESS: Final = "auth."
_DATA: Final = "auth.data"
_KEYS_MAX: Final = 1024
_ID_MAX: Final = 128
_ACTION: Final = "setting"
SET: Final = "setting.set"
UNSET: Final = "setting.unset"
RESTORE: Final = "setting.restore"


class SettingsRoutes:
    """Serves the settings of the cluster."""

    def __init__(self, parts: HttpParts, bodies: BodyReader) -> None:
        self._parts = parts
        self._node = parts.identity.node
        self._settings = parts.cluster_settings
        self._audit = parts.audit
        self._bodies = bodies

    # ── Seeing ───────────────────────────────────────────────────────────────

    async def settings(self, request: HttpRequest) -> Reply:
        """List what is set for the whole cluster, with `?all=true` also what could be."""
        rows = self._settings.settings(unset=query_switch(request, "all"))
        return json_reply(
            {"node": self._node, **config_card(self._settings, self._node), "settings": rows}
        )

    async def setting(self, request: HttpRequest) -> Reply:
        """Show one setting: the cluster's value, this node's own, and the effective one."""
        return _shown(self._settings.setting(request.values["key"]))

    async def difference(self, request: HttpRequest) -> Reply:
        """Show where this node's own values differ from the cluster's, or from those of `?node=`."""
        node = request.query.get("node", "")
        rows = await self._settings.difference(node)
        return json_reply({"node": self._node, "with": node or "cluster", "differences": rows})

    async def history(self, request: HttpRequest) -> Reply:
        """List the latest changes of settings on any node, newest first."""
        limit = query_number(request, "limit", HISTORY_MAX, low=1, high=CHANGES_MAX)
        query = AuditQuery(
            action=_ACTION,
            subject=request.query.get("key", ""),
            before=request.query.get("before", ""),
            limit=limit,
        )
        return json_reply({"changes": [change_of(row) for row in self._audit.rows(query)]})

    # ── Changing ─────────────────────────────────────────────────────────────

    async def change(self, request: HttpRequest) -> Reply:
        """Set it on every node, if the version is the one that `If-Match` names."""
        key, version = request.values["key"], expected_version(request)
        self._check(request, key)
        body = await read_fields(self._bodies, request, ("value",))
        if body.get("value") is None:
            raise invalid(
                'say the value: {"value": …}; DELETE goes back to each node\'s own', "value"
            )
        done = self._settings.change(key, body["value"], version=version)
        self._record(request, SET, done)
        return _shown(done.now)

    async def unset(self, request: HttpRequest) -> Reply:
        """Return every node to its own value, if the version is the one that `If-Match` names."""
        version = expected_version(request)
        self._check(request, request.values["key"])
        done = self._settings.unset(request.values["key"], version=version)
        self._record(request, UNSET, done)
        return _shown(done.now)

    async def validate(self, request: HttpRequest) -> Reply:
        """Check settings, without setting them."""
        body = await read_fields(self._bodies, request, ("settings",))
        values = body.get("settings")
        if not isinstance(values, dict) or not 0 < len(values) <= _KEYS_MAX:
            raise invalid(f"settings must be an object of 1 to {_KEYS_MAX} settings", "settings")
        problems = self._settings.check(values)
        return json_reply({"valid": not problems, "problems": problems})

    async def rollback(self, request: HttpRequest) -> Reply:
        """Undo one change, or all after one; settings changed again since stay, unless `force`."""
        body = await read_fields(self._bodies, request, ("change", "to", "force"))
        change, to = text_field(body, "change", _ID_MAX), text_field(body, "to", _ID_MAX)
        if (change is None) is (to is None):
            raise invalid("say either the change to undo, or the one `to` go back to", "change")
        if change is not None:
            present = {row.key: row.value for row in self._settings.settings(unset=False)}
            found = change_of(self._audit.row(change))
            values = undone(found, present, force=switch_field(body, "force"))
        else:
            assert to is not None
            values = since(self._later(to))
        for key in values:
            self._check(request, key)
        done = self._settings.restore(values)
        for one in done:
            self._record(request, RESTORE, one)
        return json_reply({"restored": [one.now for one in done]})

    def _check(self, request: HttpRequest, key: str) -> None:
        """Return if the caller may set this; FORBIDDEN for what says who may ask, without the permission for that, and for
        letting everybody in who may more than the caller.
        """
        role, roles = request.identity.role, self._parts.options.roles
        if key.startswith(_OF_ACCESS) and "access" not in roles.of(role):
            raise SmgError(
                ErrorKind.FORBIDDEN,
                f"{key[:64]} needs the permission access as well; the credential sent has role {role}",
                where="key",
            )
        if key == _DATA and (
            request.identity.restrictions or not roles.is_within(ANYBODY.role, role)
        ):
            raise SmgError(
                ErrorKind.FORBIDDEN,
                f"{key} says what everybody may, and the credential sent may less: it has role {role},"
                " or is restricted",
                where="key",
                code="key_may_more",
            )

    def _later(self, change_id: str) -> Sequence[Change]:
        change_of(self._audit.row(change_id))
        query = AuditQuery(action=_ACTION, after=change_id, limit=CHANGES_MAX)
        return [change_of(row) for row in self._audit.rows(query)]

    def _record(self, request: HttpRequest, action: str, done: SettingChange) -> None:
        after = {"value": done.now.value} if done.now.is_set else None
        before = None if done.before is None else {"value": done.before}
        self._audit.record(caller_of(request), action, done.now.key, before=before, after=after)


def config_card(settings: SettingsService, node: str) -> Mapping[str, Any]:
    """Return this node's configuration digests, and whether all nodes that report theirs agree."""
    states = settings.states()
    mine = states.get(node, ConfigState("", ""))
    heard = [state for state in states.values() if state.hash]
    return {
        "hash": mine.hash,
        "effective_hash": mine.effective,
        "same": all(state.hash == mine.hash for state in heard),
        "members": msgspec.to_builtins(states),
    }


def _shown(view: SettingView) -> Reply:
    reply = json_reply(view)
    reply.headers["etag"] = f'"{view.version}"'
    return reply
