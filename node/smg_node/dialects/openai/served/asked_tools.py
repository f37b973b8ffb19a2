"""Asked tools: entries of `tools` that this node runs: servers of type `mcp`, and built-in tools in every spelling.

    {type: mcp, server_label, server_url | connector_id | tunnel_id | none of them, allowed_tools, require_approval, …}
    {type: web_search, filters, user_location, …}

What is secret in them, `authorization` and `headers`, is in no message of an error.
"""

import re
from collections.abc import Mapping
from typing import Final

from smg_node.core.generation.tool_serving import (
    SERVERS_MAX,
    ApprovalRule,
    AskedBuiltin,
    AskedServer,
    BuiltinKind,
    ToolFilter,
    ToolServing,
)
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.openai.hosted_tools import builtin_named

_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}\Z")
_SECRET: Final = re.compile(r"[\x20-\x7e\x80-\xff]{1,8192}\Z")
_URL: Final = re.compile(r"https?://[^\s\x00-\x1f\x7f]+\Z")
_URL_CHARACTERS_MAX: Final = 2_048
_NAME_CHARACTERS_MAX: Final = 256
_DESCRIPTION_CHARACTERS_MAX: Final = 2_048
_HEADERS_MAX: Final = 64
_NAMES_MAX: Final = 512
"""So many tools a server may have, and a filter of them name."""
_PLACES: Final = ("server_url", "connector_id", "tunnel_id")
_MCP_KEYS: Final = frozenset(
    {
        "type", "server_label", *_PLACES, "authorization", "headers", "allowed_tools", "require_approval",
        "server_description", "defer_loading",
    }
)  # fmt: skip
_FILTER_KEYS: Final = ("tool_names", "read_only")
_DOMAIN_KEYS: Final = ("allowed_domains", "blocked_domains")
_DOMAINS_MAX: Final = 500
_DOMAIN_CHARACTERS_MAX: Final = 1_024


class AskedTools:
    """Collects what one body asks of tools of ours. `approvals`: its API has them, and nothing said asks for them."""

    def __init__(self, *, approvals: bool = True) -> None:
        self._unsaid = ApprovalRule() if approvals else None
        self._servers: dict[str, AskedServer] = {}
        self._builtins: dict[BuiltinKind, AskedBuiltin] = {}

    def take(self, tool: Cursor, kind: str) -> bool:
        """Take a tool of this type, if it is one of ours; what is wrong with it is noted."""
        if kind == "mcp":
            server = _server(tool, self._unsaid)
            if server is None:
                return True
            if server.label in self._servers:
                tool.problem("server_label", f"there are two servers called {quoted(server.label)}")
            elif len(self._servers) >= SERVERS_MAX:
                tool.problem("", f"there may be at most {SERVERS_MAX} servers")
            self._servers.setdefault(server.label, server)
            return True
        builtin = builtin_named(kind)
        if builtin is None or (builtin == "tool_search" and _is_clients(tool)):
            return False
        if builtin in self._builtins:
            earlier = self._builtins[builtin].spelled
            tool.problem("type", f"is the same tool as the one of type {quoted(earlier)}")
        if builtin == "web_search":
            _check_domains(tool)
            filters = tool.object("filters")
            if filters is not None:
                _check_domains(filters)
        settings = {key: value for key, value in tool.values.items() if key != "type"}
        self._builtins.setdefault(builtin, AskedBuiltin(builtin, kind, settings, where=tool.path()))
        return True

    def serving(self) -> ToolServing | None:
        """Return all of them; None for none."""
        if not self._servers and not self._builtins:
            return None
        return ToolServing(tuple(self._servers.values()), tuple(self._builtins.values()))


def _is_clients(tool: Cursor) -> bool:
    """Whether a search is one that the client makes itself."""
    return tool.word("execution", ("server", "client")) == "client"


def _check_domains(place: Cursor) -> None:
    """Note lists of domains that could not be enforced as they stand."""
    for key in _DOMAIN_KEYS:
        values = place.array(key, at_most=_DOMAINS_MAX)
        domains = values and place.elements(key, str, "a string", values)
        for index, domain in enumerate(domains or ()):
            if not 0 < len(domain.strip()) <= _DOMAIN_CHARACTERS_MAX:
                place.problem(key, "must have 1 to 1024 characters", index=index)


def _server(tool: Cursor, unsaid: ApprovalRule | None) -> AskedServer | None:
    tool.only(_MCP_KEYS)
    before = len(tool.problems)
    label = tool.text("server_label", required=True)
    if label is not None and not _LABEL.match(label):
        tool.problem("server_label", "must be 1 to 64 letters, digits, underscores and hyphens")
    url, definition = _place(tool)
    secret = tool.text("authorization")
    if secret is not None and not _SECRET.match(secret):
        tool.problem("authorization", "must have 1 to 8192 characters that a header can hold")
    headers = _headers(tool)
    tools = _allowed(tool)
    approval = _approval(tool) if tool.has("require_approval") else unsaid
    description = tool.text("server_description", characters_max=_DESCRIPTION_CHARACTERS_MAX)
    deferred = tool.flag("defer_loading") or False
    if len(tool.problems) > before or label is None:
        return None
    return AskedServer(
        label,
        url,
        definition,
        secret or "",
        headers,
        tools,
        approval,
        description=description or "",
        deferred=deferred,
        where=tool.path(),
    )


def _place(tool: Cursor) -> tuple[str, str]:
    """Return the URL and the name of the definition, of which at most one is given."""
    given = [key for key in _PLACES if tool.has(key)]
    if len(given) > 1:
        tool.problem(given[1], f"cannot be combined with {given[0]}")
    url = tool.text("server_url", characters_max=_URL_CHARACTERS_MAX)
    if url is not None and not _URL.match(url):
        tool.problem("server_url", "must be a URL that begins with http:// or https://")
    named = [
        tool.text(key, characters_min=1, characters_max=_NAME_CHARACTERS_MAX) for key in _PLACES[1:]
    ]
    return url or "", next((name for name in named if name), "")


def _headers(tool: Cursor) -> Mapping[str, str]:
    headers = tool.object("headers")
    if headers is None:
        return {}
    if len(headers.values) > _HEADERS_MAX:
        tool.problem("headers", f"must have at most {_HEADERS_MAX} keys")
        return {}
    for name, value in headers.values.items():
        if not _HEADER_NAME.match(name):
            tool.problem("headers", f"{quoted(name)} is not the name of a header")
        elif type(value) is not str or not _SECRET.match(value):
            headers.problem(name, "must be a string of 1 to 8192 characters that a header can hold")
    return headers.values


def _allowed(tool: Cursor) -> ToolFilter | None:
    value = tool.values.get("allowed_tools")
    if value is None:
        return None
    if type(value) is list:
        return ToolFilter(_names(tool, "allowed_tools"))
    inside = tool.object("allowed_tools")
    return None if inside is None else _filter(inside)


def _filter(inside: Cursor) -> ToolFilter:
    inside.only(_FILTER_KEYS)
    names = _names(inside, "tool_names") if inside.has("tool_names") else None
    return ToolFilter(names, inside.flag("read_only"))


def _names(cursor: Cursor, key: str) -> tuple[str, ...]:
    values = cursor.array(key, at_most=_NAMES_MAX)
    names = values and cursor.elements(key, str, "a string", values)
    return tuple(dict.fromkeys(names or ()))


def _approval(tool: Cursor) -> ApprovalRule:
    """Return the rule; what it does not speak of is asked about, unless it only says what is to be."""
    if isinstance(tool.values["require_approval"], str):
        word = tool.word("require_approval", ("always", "never"))
        return ApprovalRule(otherwise="never" if word == "never" else "always")
    inside = tool.object("require_approval")
    if inside is None:
        return ApprovalRule()
    inside.only(("always", "never"))
    always, never = (
        None if (one := inside.object(key)) is None else _filter(one) for key in ("always", "never")
    )
    only_always = always is not None and never is None
    return ApprovalRule(always, never, "never" if only_always else "always")
