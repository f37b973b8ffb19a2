"""Key import route: takes keys of other gateways over by their SHA-256, for administrators."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from smg_node.access.key_rights import KeyRights, check_end
from smg_node.core.errors import SmgError, invalid
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import read_fields, switch_field
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.keys import IMPORT_MAX, KEYS_FORM, ForeignKey, KeyImport, KeyService
from smg_node.http.ports.shared_state import AuditService
from smg_node.http.routes.tenants.key_body import read_restrictions
from smg_node.http.routes.tenants.key_owner import read_owner

_FIELDS: Final = ("keys", "dry_run")
_KEY_FIELDS: Final = ("sha256", "tenant", "role", "name", "expires_ms", "models")
_ADMIN: Final = "admin"
_SHA256_CHARACTERS: Final = 64
_TIME_MAX_MS: Final = (1 << 53) - 1


class KeyImportRoutes:
    """Serves the import of keys."""

    def __init__(
        self,
        keys: KeyService,
        audit: AuditService,
        bodies: BodyReader,
        rights: Callable[[HttpRequest], KeyRights],
        not_reading: Callable[[int], Sequence[str]],
        closed: Callable[[], bool],
    ) -> None:
        """Take what tells the `rights` of a request's caller, the living members that do not read a form of keys, and
        whether a credential is needed.
        """
        self._keys = keys
        self._audit = audit
        self._bodies = bodies
        self._rights = rights
        self._not_reading = not_reading
        self._closed = closed

    async def take_over(self, request: HttpRequest) -> Reply:
        """Take keys over, all that can be or, where there is no room, none."""
        body = await read_fields(self._bodies, request, _FIELDS)
        rights = self._rights(request)
        wishes, dry_run = _wishes(body.get("keys"), rights), switch_field(body, "dry_run")
        closed = self._closed()
        done = self._keys.take_over(wishes, dry_run=dry_run)
        done = replace(done, closes=done.closes and not closed)
        if done.created and not dry_run:
            subject = f"{len(done.created)} keys of another gateway"
            self._audit.record(caller_of(request), "key.import", subject, after=_audited(done))
        said = {**msgspec.to_builtins(done), "dry_run": dry_run}
        if unknown := self._not_reading(KEYS_FORM):
            said["unknown_on"] = unknown
        return json_reply(said)


def _audited(done: KeyImport) -> Mapping[str, Any]:
    return {
        "created": [view.id for view in done.created],
        "tenants": sorted({view.tenant for view in done.created}),
        "admins": [view.id for view in done.created if view.role == "admin"],
        "closes": done.closes,
    }


def _wishes(said: object, rights: KeyRights) -> Sequence[ForeignKey]:
    if not isinstance(said, list) or not 1 <= len(said) <= IMPORT_MAX:
        raise invalid(f"keys must be a list of 1 to {IMPORT_MAX} objects", "keys")
    wishes = []
    for index, entry in enumerate(said):
        try:
            wishes.append(_wish(entry, rights))
        except SmgError as error:
            where = f"keys[{index}]" + (f".{error.where}" if error.where else "")
            raise SmgError(error.kind, error.message, where=where, code=error.code) from None
    return wishes


def _wish(entry: object, rights: KeyRights) -> ForeignKey:
    if not isinstance(entry, dict) or any(name not in _KEY_FIELDS for name in entry):
        raise invalid(f"a key is an object of {', '.join(_KEY_FIELDS)}", None)
    tenant, role, name = read_owner(entry, rights)
    only = read_restrictions({"models": entry.get("models")})
    if only is not None and role == _ADMIN:
        raise invalid("a key of role admin is not for some models only", "models")
    rights.check_restrictions(only)
    models = () if only is None else only.models
    expires_ms = _expires_ms(entry)
    check_end(expires_ms, rights.until_ms, "expires_ms")
    ends_ms = expires_ms or rights.until_ms or None
    return ForeignKey(_sha256(entry.get("sha256")), tenant, role, name, ends_ms, models)


def _sha256(said: object) -> bytes:
    if isinstance(said, str) and len(said) == _SHA256_CHARACTERS and said.isascii():
        try:
            found = bytes.fromhex(said)
        except ValueError:
            found = b""
        if 2 * len(found) == _SHA256_CHARACTERS:
            return found
    raise invalid("sha256 must be 64 hexadecimal digits: the SHA-256 of a whole key", "sha256")


def _expires_ms(entry: Mapping[str, Any]) -> int | None:
    said = entry.get("expires_ms")
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int) or not 1 <= said <= _TIME_MAX_MS:
        raise invalid("expires_ms must be a time in Unix milliseconds", "expires_ms")
    return said
