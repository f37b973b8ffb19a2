"""Spec parser: plain values of YAML and JSON to what a server is and the secrets of it, and back. Pure.

Secrets are texts by name, kept apart from the rest: `token` of a bearer, `client_secret` of client credentials,
`headers.NAME`, `env.NAME` of a program's variables. Each is the value itself, or `file:/PATH` or `env:NAME`, which
every node reads itself. No mistake repeats one.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from smg_node.core.errors import SmgError, invalid
from smg_node.core.forwardable_headers import is_forwardable
from smg_node.core.json_cursor import Cursor, Problems
from smg_node.mcp.definition import CONCURRENCY_MAX, ServerDefinition, check_url, checked
from smg_node.mcp.limits import TOOLS_MAX
from smg_node.mcp.server_spec import (
    AuthKind,
    Replay,
    ServerSpec,
    SessionScope,
    TokenIssuer,
    ToolRule,
    Trust,
    Verdict,
)
from smg_node.mcp.spec_fields import (
    WORD_MAX,
    check_header,
    is_tool,
    one_of,
    plain_rule,
    read_rule,
    text_at,
    without_empty,
    words_at,
)

SPEC_BYTES_MAX: Final = 16_384
"""Of a definition as JSON, secrets included: all nodes hold it."""
CODE: Final = "invalid_mcp_server"
BUILTINS: Final = ("web_search", "web_fetch", "file_search", "code_interpreter", "image_generation")
_SECRET_MAX: Final = 8_192
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
_ARGUMENT: Final = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
_SAID_BY_US: Final = ("user-agent", "traceparent", "tracestate")
"""Headers of a request of this node, whoever it is made for."""
_FIELDS: Final = (
    "url", "command", "args", "env", "cwd", "transport", "protocol", "concurrency", "auth",
    "forward_headers", "tenants", "keys", "trust", "session", "replay", "idempotency", "tools",
    "rules", "builtin", "description", "required", "internal", "pin", "pinned", "may_defer",
)  # fmt: skip
_AUTH_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "client": (),
    "bearer": ("token",),
    "headers": ("headers",),
    "client_credentials": (
        "token_url", "client_id", "client_secret", "scope", "resource", "in_body",
    ),
}  # fmt: skip


class ParsedServer(NamedTuple):
    """A server, and its secrets by name."""

    spec: ServerSpec
    secrets: Mapping[str, str]

    def __repr__(self) -> str:
        return f"ParsedServer({self.spec.name!r})"


def parse_server(
    name: str,
    fields: Mapping[str, Any],
    *,
    programs: bool,
    kept: Mapping[str, str] | None = None,
) -> ParsedServer:
    """Return what plain values define; INVALID_REQUEST `invalid_mcp_server` names every field that is wrong.

    `programs`: a command may be run. `kept` are secrets that are known and left out of the values; with None, secrets
    that are left out are not missed.
    """
    problems = Problems(strict=True)
    try:
        reading = _Reading(Cursor(dict(fields), problems), kept)
        parsed = reading.server(name, programs=programs)
        problems.check()
        _check_size(fields)
        return parsed
    except SmgError as error:
        raise invalid(error.message, error.where, CODE) from error


def parse_servers(servers: Mapping[str, Any]) -> Sequence[ParsedServer]:
    """Return what a node's own file defines; every mistake begins with `servers.NAME`."""
    found: list[ParsedServer] = []
    for name, fields in servers.items():
        path = f"servers.{name}"[:80]
        if not isinstance(fields, Mapping):
            raise invalid(f"{path}: must be a section, one field a line", path, CODE)
        try:
            found.append(parse_server(str(name), fields, programs=True, kept={}))
        except SmgError as error:
            where = f"{path}.{error.where}" if error.where else path
            raise invalid(f"{path}: {error.message}", where, CODE) from error
    return found


def plain_server(spec: ServerSpec) -> dict[str, Any]:
    """Return a server as plain values that `parse_server` reads again: without secrets, and without defaults."""
    definition = msgspec.to_builtins(spec.definition)
    plain = {key: value for key, value in definition.items() if key not in ("name", "env")}
    auth: Any = spec.auth
    if spec.issuer is not None:
        issuer = msgspec.to_builtins(spec.issuer)
        auth = {"kind": spec.auth, "token_url": issuer.pop("url"), **without_empty(issuer)}
    elif spec.auth in ("bearer", "headers"):
        auth = {"kind": spec.auth}
    plain |= {
        "auth": auth,
        **{key: getattr(spec, key) for key in ("trust", "session", "replay", "idempotency")},
        **{key: list(getattr(spec, key)) for key in ("forward_headers", "tenants", "keys")},
        "tools": {name: plain_rule(rule) for name, rule in spec.tools.items()},
        "rules": [{"tools": pattern, "verdict": verdict} for pattern, verdict in spec.rules],
        "builtin": dict(spec.builtin),
        **{key: getattr(spec, key) for key in ("description", "required", "internal", "pin")},
    }
    plain = without_empty(plain)
    if spec.pin:
        plain["pinned"] = list(spec.pinned)
    if not spec.may_defer:
        plain["may_defer"] = False
    return {key: value for key, value in plain.items() if value != _DEFAULTS.get(key)}


class _Reading:
    """Reading of one server. `kept` as in `parse_server`."""

    def __init__(self, body: Cursor, kept: Mapping[str, str] | None) -> None:
        self._body = body
        self._kept = kept
        self._secrets: dict[str, str] = {}

    def server(self, name: str, *, programs: bool) -> ParsedServer:
        body = self._body
        body.only(_FIELDS)
        definition = self._definition(name, programs=programs)
        auth, issuer = self._auth(is_program=bool(definition.command))
        spec = ServerSpec(
            definition,
            auth=auth,
            issuer=issuer,
            forward_headers=self._forwarded(is_program=bool(definition.command)),
            tenants=words_at(body, "tenants"),
            keys=words_at(body, "keys"),
            trust=one_of(body, "trust", Trust) or "standard",
            session=one_of(body, "session", SessionScope) or "shared",
            replay=one_of(body, "replay", Replay) or "hinted",
            idempotency=self._idempotency(),
            tools=self._tools(),
            rules=self._rules(),
            builtin=self._builtin(),
            description=text_at(body, "description"),
            required=body.flag("required") or False,
            internal=body.flag("internal") or False,
            pin=body.flag("pin") or False,
            pinned=self._pinned(),
            may_defer=body.flag("may_defer") is not False,
        )
        return ParsedServer(spec, self._secrets)

    def _definition(self, name: str, *, programs: bool) -> ServerDefinition:
        body = self._body
        command = text_at(body, "command")
        if command and not programs:
            body.problem("command", "runs a program: only a node's own file or flag may name one")
        env = body.object("env")
        if env is not None:
            for variable in env.values:
                self._secret(env, variable, f"env.{variable}")
        if not command:
            for key in ("args", "env", "cwd"):
                if body.has(key):
                    body.problem(key, "belongs to a command")
        definition = ServerDefinition(
            name=name,
            url=text_at(body, "url"),
            command=command,
            args=words_at(body, "args", empty=True),
            cwd=text_at(body, "cwd"),
            transport=text_at(body, "transport") or "auto",
            protocol=text_at(body, "protocol") or "auto",
            concurrency=body.integer("concurrency", low=1, high=CONCURRENCY_MAX) or 32,
        )
        body.problems.check()
        return checked(definition)

    def _auth(self, *, is_program: bool) -> tuple[AuthKind, TokenIssuer | None]:
        body = self._body
        said = body.raw("auth")
        if said is None or isinstance(said, str):
            auth = Cursor({"kind": said or "none"}, body.problems, body, "auth")
        else:
            auth = body.object("auth") or Cursor({}, body.problems, body, "auth")
        kind: AuthKind = one_of(auth, "kind", AuthKind, required=True) or "none"
        auth.only(("kind", *_AUTH_FIELDS[kind]))
        if is_program and kind != "none":
            auth.problem("kind", "a program is shown no credentials: give it variables by env")
        if kind == "bearer":
            self._secret(auth, "token", "token")
        elif kind == "headers":
            self._headers(auth)
        issuer = None
        if kind == "client_credentials":
            self._secret(auth, "client_secret", "client_secret")
            issuer = self._issuer(auth)
        return kind, issuer

    def _headers(self, auth: Cursor) -> None:
        headers = auth.object("headers")
        if headers is not None:
            for name in headers.values:
                check_header(headers, name)
                self._secret(headers, name, f"headers.{name.lower()}")
        elif self._kept is not None:
            named = {name: text for name, text in self._kept.items() if name.startswith("headers.")}
            self._secrets.update(named)
            if not named:
                auth.problem("headers", "is required", "missing_required_parameter")

    def _issuer(self, auth: Cursor) -> TokenIssuer | None:
        url = auth.text("token_url", required=True, characters_max=WORD_MAX)
        client_id = auth.text("client_id", required=True, characters_min=1, characters_max=WORD_MAX)
        try:
            check_url(url or "http://missing", "token_url")
        except SmgError as error:
            auth.problem("token_url", error.message)
        if url is None or client_id is None:
            return None
        scope, resource = text_at(auth, "scope"), text_at(auth, "resource")
        return TokenIssuer(url, client_id, scope, resource, auth.flag("in_body") or False)

    def _secret(self, cursor: Cursor, key: str, name: str) -> None:
        """Take a secret, or the one that is kept where it is left out."""
        said = cursor.text(key, characters_min=1, characters_max=_SECRET_MAX)
        if said is None:
            if cursor.values.get(key) is None and self._kept is not None:
                if name not in self._kept:
                    cursor.problem(key, "is required", "missing_required_parameter")
                else:
                    self._secrets[name] = self._kept[name]
            return
        said = said.strip()
        if said.startswith("file:") and not re.fullmatch(r"file:/[^\x00-\x1f]+", said):
            cursor.problem(key, "must name its file by a whole path, as file:/run/secrets/key")
        elif said in ("", "env:"):
            cursor.problem(key, "names nothing")
        else:
            self._secrets[name] = said

    def _forwarded(self, *, is_program: bool) -> tuple[str, ...]:
        names = tuple(name.lower() for name in words_at(self._body, "forward_headers"))
        if names and is_program:
            self._body.problem("forward_headers", "a program is told no headers")
        for at, name in enumerate(names):
            if not _TOKEN.fullmatch(name):
                self._body.problem("forward_headers", "is no name of a header", index=at)
            elif name in _SAID_BY_US or not is_forwardable(name):
                self._body.problem("forward_headers", f"{name} is never passed on", index=at)
        return tuple(sorted(set(names)))

    def _idempotency(self) -> str:
        said = text_at(self._body, "idempotency") or "meta"
        way, colon, name = said.partition(":")
        forms = {"header": _TOKEN, "argument": _ARGUMENT}
        fine = said in ("meta", "none") or (
            colon and way in forms and forms[way].fullmatch(name) is not None
        )
        if not fine:
            why = "must be meta, none, header:NAME or argument:NAME"
            self._body.problem("idempotency", why)
        elif way == "header":
            check_header(self._body, name, key="idempotency")
            return f"header:{name.lower()}"
        return said

    def _pinned(self) -> tuple[str, ...]:
        body = self._body
        if body.values.get("pin") is not True:
            if body.has("pinned"):
                body.problem("pinned", "belongs to pin: true")
            return ()
        if not body.has("pinned"):
            why = "is required beside pin: the pins that `smg-admin mcp tools NAME --json` shows"
            body.problem("pinned", why, "missing_required_parameter")
        return tuple(sorted(set(words_at(body, "pinned"))))

    def _tools(self) -> Mapping[str, ToolRule]:
        tools = self._body.object("tools")
        if tools is None:
            return {}
        if len(tools.values) > TOOLS_MAX:
            self._body.problem("tools", f"must have at most {TOOLS_MAX} entries")
        found: dict[str, ToolRule] = {}
        for name in tools.values:
            if not is_tool(name):
                tools.problem(name, "is no name of a tool")
            elif (rule := tools.object(name)) is not None:
                found[name] = read_rule(rule)
        return dict(sorted(found.items()))

    def _rules(self) -> tuple[tuple[str, Verdict], ...]:
        found: list[tuple[str, Verdict]] = []
        for rule in self._body.objects("rules", at_most=256):
            rule.only(("tools", "verdict"))
            pattern = rule.text("tools", required=True, characters_min=1, characters_max=256)
            verdict = one_of(rule, "verdict", Verdict, required=True)
            if pattern is not None and verdict is not None:
                found.append((pattern, verdict))
        return tuple(found)

    def _builtin(self) -> Mapping[str, str]:
        builtin = self._body.object("builtin")
        if builtin is None:
            return {}
        builtin.only(BUILTINS)
        found = {kind: builtin.text(kind, characters_min=1) for kind in BUILTINS}
        for kind, tool in found.items():
            if tool is not None and not is_tool(tool):
                builtin.problem(kind, "is no name of a tool")
        return {kind: tool for kind, tool in found.items() if tool is not None}


_DEFAULTS: Final[Mapping[str, Any]] = {
    "transport": "auto", "protocol": "auto", "concurrency": 32, "auth": "none", "trust": "standard",
    "session": "shared", "replay": "hinted", "idempotency": "meta",
}  # fmt: skip
"""Of what is spelled out otherwise."""


def _check_size(fields: Mapping[str, Any]) -> None:
    try:
        size = len(msgspec.json.encode(fields))
    except (msgspec.MsgspecError, TypeError, ValueError, UnicodeEncodeError, RecursionError):
        raise invalid("a server is defined by what JSON can say") from None
    if size > SPEC_BYTES_MAX:
        raise invalid(f"a server's definition has at most {SPEC_BYTES_MAX:,} bytes, not {size:,}")
