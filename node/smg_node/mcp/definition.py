"""Definition of one MCP server: where it is or what is run for it, how it is spoken with, and what it is shown. Pure.

Secrets are not in it: what a request is shown travels beside it as `Credential`, which prints as nothing.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from smg_node.core.errors import SmgError, invalid
from smg_node.core.forwardable_headers import BODY, CONNECTION, COOKIES
from smg_node.mcp.revisions import REVISIONS, revision_named
from smg_node.mcp.session.opening import OpeningPlan, Transport

CONCURRENCY_MAX: Final = 10_000
_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
_VALUE: Final = re.compile(r"[\x20-\x7e\x80-\xff]{1,8192}")
_NOT_GIVEN: Final = COOKIES | CONNECTION | BODY
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")


class ServerDefinition(msgspec.Struct, frozen=True, dict=True):
    """One server: either `url`, or `command` with its arguments.

    `env` are the variables a process gets beside HOME, LANG and PATH; `protocol` is `auto` or a revision, `transport`
    `auto`, `http`, `sse` or `stdio`. At most `concurrency` calls are open at once.
    """

    name: str
    url: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""
    transport: str = "auto"
    protocol: str = "auto"
    concurrency: int = 32

    def __repr__(self) -> str:
        return f"ServerDefinition({self.name!r})"

    @property
    def plan(self) -> OpeningPlan:
        """How it is opened."""
        if self.command:
            transport: Transport | None = Transport.STDIO
        else:
            transport = None if self.transport == "auto" else Transport(self.transport)
        return OpeningPlan(transport, revision_named(self.protocol))

    @cached_property
    def digest(self) -> str:
        """A digest of all that decides what is spoken with, and how; the name is not of it. Made once."""
        spelled = msgspec.json.encode(msgspec.structs.replace(self, name=""), order="sorted")
        return hashlib.blake2b(spelled, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, repr=False)
class Credential:
    """Headers that let us in, names in lower case; empty for none.

    `identity` is who is let in, where that stays while the headers change, as tokens that are made anew do; "" where
    the headers are all there is to know.
    """

    headers: tuple[tuple[str, str], ...] = ()
    identity: str = ""

    @property
    def digest(self) -> str:
        """A digest, by which connections and sessions are kept apart."""
        if not self.headers and not self.identity:
            return ""
        spelled = msgspec.json.encode(self.identity or self.headers)
        return hashlib.blake2b(spelled, digest_size=16).hexdigest()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be seen in any message."""
        values = [value for _, value in self.headers]
        words = [word for value in values for word in value.split(" ")[1:]]
        return tuple(
            sorted((one for one in (*values, *words) if len(one) > 5), key=len, reverse=True)
        )

    def __repr__(self) -> str:
        return f"Credential({', '.join(name for name, _ in self.headers) or 'none'})"


NO_CREDENTIAL: Final = Credential()


def bearer(token: str) -> Credential:
    """Return the credential of a token; INVALID_REQUEST for one that no header can hold."""
    return with_headers({"authorization": f"Bearer {token}"})


def with_headers(headers: Mapping[str, str]) -> Credential:
    """Return the credential of headers; INVALID_REQUEST for a name that is ours to set, and for what is no header."""
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise invalid(
                "a header has a name or value that cannot be sent", f"headers.{name[:40]}"
            )
        if name.lower() in _NOT_GIVEN or name.lower().startswith("mcp-"):
            raise invalid(
                f"{name.lower()} is not a header that can be given", f"headers.{name[:40]}"
            )
    return Credential(tuple(sorted((name.lower(), value) for name, value in headers.items())))


def checked(definition: ServerDefinition) -> ServerDefinition:
    """Return a definition that can be used; INVALID_REQUEST with the field that is wrong."""
    if not _LABEL.fullmatch(definition.name):
        raise invalid("a name has 1 to 64 letters, digits, _ and -", "name")
    if bool(definition.url) == bool(definition.command):
        raise invalid("either url or command is given", "url")
    kinds = ("auto", "stdio") if definition.command else ("auto", "http", "sse")
    if definition.transport not in kinds:
        raise invalid(f"transport is one of {', '.join(kinds)}", "transport")
    if definition.protocol != "auto" and revision_named(definition.protocol) is None:
        known = ", ".join(one.name for one in REVISIONS)
        raise invalid(f"protocol is auto or one of {known}", "protocol")
    if (
        definition.transport == "sse"
        and definition.plan.revision
        and definition.plan.revision.modern
    ):
        raise invalid("the transport sse has no sessions of that revision", "protocol")
    if not 1 <= definition.concurrency <= CONCURRENCY_MAX:
        raise invalid(f"concurrency is from 1 to {CONCURRENCY_MAX}", "concurrency")
    if definition.url:
        check_url(definition.url, "url")
    elif "\0" in "".join((definition.command, definition.cwd, *definition.args)):
        raise invalid("a command has no zero bytes", "command")
    return definition


def definition_of(fields: Mapping[str, Any]) -> ServerDefinition:
    """Return the definition that plain values make; INVALID_REQUEST with the field that is wrong."""
    known = ServerDefinition.__struct_fields__
    for name in fields:
        if name not in known:
            raise invalid(f"a server has no field {name[:60]!r}", name[:60])
    try:
        return checked(msgspec.convert(fields, ServerDefinition))
    except msgspec.ValidationError as error:
        raise _of_type(error) from error


def _of_type(error: msgspec.ValidationError) -> SmgError:
    what, _, place = str(error).partition(" - at `$")
    return invalid(what, place.strip("`.") or None)


def check_url(url: str, field: str) -> None:
    """Return if a URL can be asked, and holds nothing that lets somebody in; INVALID_REQUEST with the field otherwise."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise invalid(f"{field}: {error}", field) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or _CONTROL.search(url):
        raise invalid(f"{field} is http:// or https:// with a host", field)
    if parts.username is not None or parts.password is not None:
        raise invalid(f"{field} holds no user and no password: give them as auth", field)
    if parts.fragment or port == 0:
        raise invalid(f"{field} has no fragment, and no port 0", field)
