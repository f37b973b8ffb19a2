"""Access routes: issuers of tokens and the state of their keys, and subjects whose tokens are refused."""

import asyncio
import re
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from smg_node.access.key_rights import KeyRights
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.administrators import has_administrator
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import (
    expected_version,
    number_field,
    query_switch,
    read_fields,
    text_field,
)
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.access import FOR_MAX_S, SUBJECT_MAX, AccessService, IssuerChange
from smg_node.http.ports.keys import CLOSED_META

DENIED: Final = "access.deny"
UNDONE: Final = "access.undo"
CHANGED: Final = "issuer.changed"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
_LIVING: Final = ("alive", "suspect")
_LAST: Final = (
    "this is the last issuer, and there is no admin key: without it data is open to everyone again, and the admin API"
    " answers loopback only, on {}; force it (?force=true, --force) if that is meant"
)
_LOCKED: Final = (
    "nobody could administer this node any more: no key is good for that, and no issuer or certificate is worth the role"
    " admin; make a key first (smg-admin keys create --role admin), or map a role to admin; force it (?force=true,"
    " --force) if that is meant"
)
_SHOWN: Final = 8
_FIELDS: Final = ("issuer", "subject", "before_ms", "for_s")
_ISSUER_MAX: Final = 63
_TIME_MAX_MS: Final = (1 << 53) - 1


class AccessRoutes:
    """Serves what operators see of issuers, and denies subjects."""

    def __init__(self, parts: HttpParts, access: AccessService, bodies: BodyReader) -> None:
        self._parts = parts
        self._node = parts.identity.node
        self._access = access
        self._audit = parts.audit
        self._bodies = bodies

    async def issuers(self, request: HttpRequest) -> Reply:
        """List the issuers of this node, with the state of their keys."""
        return json_reply(
            {
                "node": self._node,
                "issuers": self._access.issuers(),
                "unreadable": self._access.unreadable(),
            }
        )

    async def define(self, request: HttpRequest) -> Reply:
        """Define an issuer on every node, if the version is the one that `If-Match` names; with `?force=true` also one that
        leaves nobody who could administer this node.
        """
        name, version = request.values["name"], expected_version(request)
        if not _NAME.fullmatch(name):
            raise invalid("a name has small letters, digits and . _ -, at most 63", "name")
        body = await self._bodies.large.decoded(await self._bodies.json(request))
        # Its checks come with a library that is slow to load.
        checked = await asyncio.to_thread(self._access.check, name, body)
        # What tokens of that name were worth before is taken away.
        roles = {*checked["role_map"].values(), *self._access.worth(name)}
        self._rights(request).check_mapped(roles)
        if not query_switch(request, "force"):
            self._check_administered(name, set(checked["role_map"].values()))
        closed = self._is_closed()
        done = self._access.define(name, checked, version=version)
        self._record(request, CHANGED, name, done)
        return json_reply({**msgspec.to_builtins(done.after), "closes": not closed})

    async def remove(self, request: HttpRequest) -> Reply:
        """Take the cluster's definition of an issuer away, if the version is the one that `If-Match` names; with
        `?force=true` also the last one, where nothing else closes the cluster.
        """
        name, version = request.values["name"], expected_version(request)
        forced, rights = query_switch(request, "force"), self._rights(request)
        rights.check_mapped(self._access.worth(name))
        if opened := self._opened_without(name):
            if not forced:
                where = ", ".join(opened[:_SHOWN])
                raise SmgError(
                    ErrorKind.CONFLICT, _LAST.format(where), where="name", code="last_issuer"
                )
            rights.check_opened()
        elif not forced and name in self._access.mapped():
            self._check_administered(name, ())
        done = self._access.remove(name, version=version)
        self._record(request, CHANGED, name, done)
        return json_reply({"status": "removed", "name": name, "now": done.after})

    def _rights(self, request: HttpRequest) -> KeyRights:
        return KeyRights(request.identity, self._parts.options.roles)

    def _opened_without(self, name: str) -> Sequence[str]:
        """Return the living members that nothing would close any more without the cluster's definition of an issuer."""
        parts = self._parts
        if parts.keys.closed_everywhere or not self._access.is_last(name):
            return ()
        own = parts.keys.closed or parts.options.certificates or self._access.has_own
        return [
            row.name
            for row in parts.cluster.members()
            if row.state in _LIVING and not (own if row.me else row.meta.get(CLOSED_META))
        ]

    def _check_administered(self, name: str, roles: Collection[str]) -> None:
        """Return if somebody may administer this node once tokens of an issuer are worth these roles, or if nobody may now;
        CONFLICT `nobody_administers`.
        """
        before = self._access.mapped()
        after = {**before, name: roles}
        if has_administrator(self._parts, after):
            return
        # Open, whoever is on its machine administers it.
        was_open = not before and not self._is_closed()
        if was_open or has_administrator(self._parts, before):
            raise SmgError(ErrorKind.CONFLICT, _LOCKED, where="role_map", code="nobody_administers")

    def _is_closed(self) -> bool:
        return bool(self._parts.authenticator.closed or self._parts.options.certificates)

    def _record(self, request: HttpRequest, action: str, name: str, done: IssuerChange) -> None:
        before = None if done.before is None else done.before.spec
        after = None if done.after is None else done.after.spec
        self._audit.record(caller_of(request), action, name, before=before, after=after)

    async def denials(self, request: HttpRequest) -> Reply:
        """List all subjects whose tokens are refused, those that are over too."""
        return json_reply({"node": self._node, "denials": self._access.denials()})

    async def deny(self, request: HttpRequest) -> Reply:
        """Refuse the tokens of a subject on every node, in place of what was said of it."""
        body = await read_fields(self._bodies, request, _FIELDS)
        issuer = text_field(body, "issuer", _ISSUER_MAX)
        subject = text_field(body, "subject", SUBJECT_MAX)
        for_s = number_field(body, "for_s", low=1, high=FOR_MAX_S, whole=True)
        before_ms = number_field(body, "before_ms", low=1, high=_TIME_MAX_MS, whole=True)
        if issuer is None:
            raise _missing("issuer", "say which issuer's tokens are meant, by its name here")
        if subject is None:
            raise _missing("subject", "say whose tokens are meant: their `sub`")
        if for_s is None:
            raise _missing("for_s", "say for how many seconds: longer than any of its tokens lives")
        done = self._access.deny(
            issuer,
            subject,
            before_ms=None if before_ms is None else int(before_ms),
            for_s=int(for_s),
        )
        self._audit.record(
            caller_of(request), DENIED, f"{issuer}/{subject}", before=done.before, after=done.after
        )
        return json_reply(done.after)

    async def undo(self, request: HttpRequest) -> Reply:
        """Refuse the tokens of a subject no longer."""
        issuer, subject = request.values["issuer"], request.values["subject"]
        done = self._access.undo(issuer, subject)
        self._audit.record(
            caller_of(request), UNDONE, f"{issuer}/{subject}", before=done.before, after=None
        )
        return json_reply(done.before)


def _missing(field: str, why: str) -> Exception:
    return invalid(why, field, "missing_required_parameter")
