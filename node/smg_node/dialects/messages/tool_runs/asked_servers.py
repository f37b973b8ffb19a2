"""Asked servers: MCP servers that a Messages body names, and the toolsets that say what of them is wanted."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from smg_node.core.generation.tool_serving import AskedServer, ListedTool, ToolFilter
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.messages.cache_control import check_cache_control

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_URL: Final = re.compile(r"https?://[\x21-\x7e]+\Z")
_TOKEN: Final = re.compile(r"[\x21-\x7e]+\Z")
_URL_MAX: Final = 2_048
_TOKEN_MAX: Final = 8_192
_TOOL_NAME_MAX: Final = 256
_SERVER_KEYS: Final = ("type", "name", "url", "authorization_token", "tool_configuration")
_TOOLSET_KEYS: Final = (
    "type", "mcp_server_name", "default_config", "configs", "tools", "cache_control"
)  # fmt: skip


@dataclass(slots=True)
class ChangedTools:
    """Changes of a server's tools in the middle of a conversation: of all of them, and then of single ones."""

    removed: bool = False
    tools: dict[str, bool] = field(default_factory=dict)
    """Whether each was removed."""

    def applied(self, asked: AskedServer) -> AskedServer | None:
        """Return what is asked of the server after them; None where none of its tools are left."""
        gone = tuple(name for name, removed in self.tools.items() if removed)
        if not self.removed:
            return msgspec.structs.replace(asked, excluded=(*asked.excluded, *gone))
        back = [name for name, removed in self.tools.items() if not removed]
        wanted = None if asked.tools is None else asked.tools.names
        names = tuple(name for name in back if wanted is None or name in wanted)
        return msgspec.structs.replace(asked, tools=ToolFilter(names)) if names else None


@dataclass(slots=True)
class NamedServer:
    """A server of `mcp_servers`. `enabled` and `allowed` are what an old client says of its tools."""

    name: str
    place: Cursor
    url: str
    token: str
    enabled: bool = True
    allowed: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"NamedServer({self.name!r}, {self.url.partition('?')[0]!r})"


@dataclass(slots=True)
class Toolset:
    """What is wanted of a server's tools: by default, by name, and as an earlier answer listed them."""

    server: str
    place: Cursor
    enabled: bool
    deferred: bool
    configs: dict[str, tuple[bool, bool]]
    """Whether a tool is enabled, and whether it is found by search only."""
    pinned: tuple[ListedTool, ...] | None


def read_server(declared: Cursor, *, old: bool) -> NamedServer | None:
    """Return the server that is declared; None for one that is wrong, which is noted.

    One without `url` is one that the operator defined. `old`: it says itself which of its tools are wanted.
    """
    declared.only(_SERVER_KEYS)
    declared.word("type", ("url",), required=True)
    name = _server_name(declared, "name")
    url = declared.text("url", characters_min=1, characters_max=_URL_MAX)
    if url is not None and not _URL.match(url):
        declared.problem("url", "must be an http:// or https:// URL without spaces")
    token = declared.text("authorization_token", characters_max=_TOKEN_MAX)
    if token and not _TOKEN.match(token):
        declared.problem("authorization_token", "must be printable ASCII without spaces")
    enabled, allowed = _configuration(declared, old=old)
    if name is None:
        return None
    return NamedServer(name, declared, url or "", token or "", enabled, allowed)


def _server_name(place: Cursor, key: str) -> str | None:
    name = place.text(key, required=True)
    if name is not None and not _NAME.match(name):
        place.problem(key, "must be 1 to 64 letters, digits, underscores and hyphens")
        return None
    return name


def _configuration(declared: Cursor, *, old: bool) -> tuple[bool, tuple[str, ...] | None]:
    place = declared.object("tool_configuration")
    if place is None:
        return True, None
    if not old:
        why = "belongs to the beta mcp-client-2025-04-04; use the configs of an mcp_toolset"
        declared.problem("tool_configuration", why)
        return True, None
    place.only(("enabled", "allowed_tools"))
    values = place.array("allowed_tools")
    names = values and place.elements("allowed_tools", str, "a string", values)
    allowed = None if values is None else tuple(dict.fromkeys(names or ()))
    return place.flag("enabled") is not False, allowed


def read_toolset(declared: Cursor, *, tools_max: int) -> Toolset | None:
    """Return the toolset that is declared; None for one without a server."""
    declared.only(_TOOLSET_KEYS)
    check_cache_control(declared)
    server = _server_name(declared, "mcp_server_name")
    default = declared.object("default_config")
    enabled, deferred = (
        (True, False) if default is None else _config(default, enabled=True, deferred=False)
    )
    configs: dict[str, tuple[bool, bool]] = {}
    named = declared.object("configs")
    if named is not None:
        if len(named.values) > tools_max:
            declared.problem("configs", f"must have at most {tools_max} tools")
            return None
        for name in named.values:
            config = named.object(name)
            if config is not None:
                configs[name] = _config(config, enabled=enabled, deferred=deferred)
    pinned = read_listing(declared, "tools", tools_max=tools_max)
    if server is None:
        return None
    return Toolset(server, declared, enabled, deferred, configs, pinned)


def _config(place: Cursor, *, enabled: bool, deferred: bool) -> tuple[bool, bool]:
    place.only(("enabled", "defer_loading"))
    wanted, later = place.flag("enabled"), place.flag("defer_loading")
    return enabled if wanted is None else wanted, deferred if later is None else later


def read_change(place: Cursor) -> tuple[str, str] | None:
    """Return the server and the tool that a reference names, "" for all tools; None for a wrong one."""
    single = place.values.get("type") == "mcp_tool_reference"
    place.only(("type", "server_name", "name") if single else ("type", "server_name"))
    server = _server_name(place, "server_name")
    name: str | None = ""
    if single:
        name = place.text("name", required=True, characters_min=1, characters_max=_TOOL_NAME_MAX)
    return None if server is None or name is None else (server, name)


def read_listing(place: Cursor, key: str, *, tools_max: int) -> tuple[ListedTool, ...] | None:
    """Return the tools of a server as an answer has listed them; None where there are none at `key`."""
    if not place.has(key):
        return None
    found: dict[str, ListedTool] = {}
    for tool in place.objects(key, at_most=tools_max):
        tool.only(("name", "description", "input_schema"))
        name = tool.text("name", required=True, characters_min=1, characters_max=_TOOL_NAME_MAX)
        description = tool.text("description")
        schema = tool.object("input_schema", required=True)
        if name is None or schema is None:
            continue
        if name in found:
            tool.problem("name", f"there are two tools called {quoted(name)}")
        found[name] = ListedTool(name, description or "", schema.values)
    return tuple(found.values())


def asked_server(
    server: NamedServer, toolset: Toolset | None, listed: tuple[ListedTool, ...] | None
) -> AskedServer | None:
    """Return what is asked of a server; None where none of its tools are wanted.

    `listed` is what an earlier answer told of its tools.
    """
    wanted: dict[str, Any] = {
        "label": server.name,
        "url": server.url,
        "definition": "" if server.url else server.name,
        "authorization": server.token,
        "pinned": listed,
        "where": server.place.path(),
    }
    if toolset is None:
        if not server.enabled:
            return None
        if server.allowed is not None:
            wanted["tools"] = ToolFilter(server.allowed)
        return AskedServer(**wanted)
    if toolset.pinned is not None:
        wanted["pinned"] = toolset.pinned
    wanted["where"] = toolset.place.path()
    configs = toolset.configs.items()
    if toolset.enabled:
        wanted["excluded"] = tuple(name for name, (enabled, _) in configs if not enabled)
    else:
        names = tuple(name for name, (enabled, _) in configs if enabled)
        if not names:
            return None
        wanted["tools"] = ToolFilter(names)
    unlike = tuple(name for name, (_, deferred) in configs if deferred != toolset.deferred)
    wanted["deferred"] = toolset.deferred
    wanted["loaded_tools" if toolset.deferred else "deferred_tools"] = unlike
    return AskedServer(**wanted)
