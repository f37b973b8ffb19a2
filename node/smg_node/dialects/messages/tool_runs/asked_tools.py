"""Asked tools: what one Messages body asks of tools on this node's side, collected while it is read.

Servers stand in `mcp_servers`, what of them is wanted in a toolset for each among the `tools`, and Anthropic's server
tools beside it. The keys of a body have no order, so a toolset may be read before its server: they are joined when
everything was taken. A listing that an earlier answer showed counts instead of asking its server again.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from smg_node.core.forwardable_headers import forwardable
from smg_node.core.generation.tool_serving import (
    SERVERS_MAX,
    AskedBuiltin,
    AskedServer,
    ListedTool,
    OpenToolCall,
    ToolServing,
)
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.core.tool_switch import ON, SWITCH, is_switched_on
from smg_node.dialects.messages.tool_runs.asked_servers import (
    ChangedTools,
    NamedServer,
    Toolset,
    asked_server,
    read_change,
    read_server,
    read_toolset,
)
from smg_node.dialects.messages.tool_runs.server_tools import read_server_tool
from smg_node.dialects.openai.functions import note_twice

LISTING_BETA: Final = "mcp-client-2026-09-15"
"""The beta whose answers list the tools of servers."""
BETAS: Final = ("mcp-client-2025-11-20", LISTING_BETA)
OLD_BETA: Final = "mcp-client-2025-04-04"
"""The beta whose servers say themselves which of their tools are wanted."""
_OPT_IN: Final = f"needs the header anthropic-beta: {BETAS[0]} or {BETAS[1]}, or {SWITCH}: {ON}, with the request"


class AskedTools:
    """What a body asks for, so far.

    `listings` are those that earlier answers showed, `found` the tools that their searches found, and `open_calls`
    their calls that have no result yet.
    """

    __slots__ = (
        "_headers",
        "_lists",
        "_new",
        "_old",
        "builtins",
        "changed",
        "found",
        "listings",
        "open_calls",
        "servers",
        "toolsets",
    )

    def __init__(self, betas: str, headers: Mapping[str, str]) -> None:
        self._headers = headers
        told = {one.strip() for one in betas.split(",")}
        self._lists = LISTING_BETA in told
        switched = is_switched_on(headers)
        self._old = OLD_BETA in told and told.isdisjoint(BETAS)
        self._new = not self._old and (switched or not told.isdisjoint(BETAS))
        self.servers: dict[str, NamedServer] = {}
        self.toolsets: dict[str, Toolset] = {}
        self.builtins: dict[str, AskedBuiltin] = {}
        self.listings: dict[str, tuple[ListedTool, ...]] = {}
        self.changed: dict[str, ChangedTools] = {}
        self.found: dict[str, bool] = {}
        self.open_calls: dict[str, tuple[OpenToolCall, Cursor]] = {}

    def take_servers(self, cursor: Cursor, key: str) -> None:
        """Take `mcp_servers`."""
        if not cursor.array(key, at_most=SERVERS_MAX):
            return
        if not (self._new or self._old):
            cursor.problem(key, _OPT_IN, "unsupported_tool")
            return
        for declared in cursor.objects(key):
            found = read_server(declared, old=self._old)
            if found is None:
                continue
            if found.name in self.servers:
                declared.problem("name", f"there are two servers called {quoted(found.name)}")
            self.servers[found.name] = found

    def take_tool(
        self, declared: Cursor, kind: str, *, taken: Collection[str], tools_max: int
    ) -> bool:
        """Take a toolset or a server tool; false for a tool of any other type. `taken` are names of other tools."""
        if kind == "mcp_toolset":
            self._take_toolset(declared, tools_max)
            return True
        found = read_server_tool(declared, kind)
        if found is None:
            return False
        name, asked = found
        if name in self.builtins or name in taken:
            note_twice(declared, name)
        if asked is not None:
            self.builtins[name] = asked
        return True

    def _take_toolset(self, declared: Cursor, tools_max: int) -> None:
        if not (self._new or self._old):
            declared.problem("type", _OPT_IN, "unsupported_tool")
            return
        found = read_toolset(declared, tools_max=tools_max)
        if found is None:
            return
        if found.server in self.toolsets:
            why = f"there are two toolsets of the server {quoted(found.server)}"
            declared.problem("mcp_server_name", why)
        self.toolsets[found.server] = found

    def take_change(self, place: Cursor, *, removed: bool) -> list[Any]:
        """Take a change of tools in the middle of the conversation, and return what the model is told of it."""
        change = read_change(place)
        if change is None:
            return []
        server, tool = change
        if server not in self.servers:
            why = f"there is no server called {quoted(server)} among the mcp_servers"
            place.problem("server_name", why)
            return []
        if tool:
            self.changed.setdefault(server, ChangedTools()).tools[tool] = removed
        else:
            self.changed[server] = ChangedTools(removed)
        what = tool or f"all tools of {server}"
        return [f"no longer available: {what}" if removed else f"available again: {what}"]

    # ── When everything was taken ────────────────────────────────────────────

    @property
    def any(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.servers or self.builtins)

    def serving(self) -> ToolServing | None:
        """Return what is asked for; None for nothing. What does not fit together is noted."""
        for name, toolset in self.toolsets.items():
            if name not in self.servers:
                why = f"there is no server called {quoted(name)} among the mcp_servers"
                toolset.place.problem("mcp_server_name", why)
        servers = [self._asked(server) for server in self.servers.values()]
        for call, place in self.open_calls.values():
            self._check_open(call, place)
        if not self.any:
            return None
        return ToolServing(
            servers=tuple(one for one in servers if one is not None),
            builtins=tuple(self.builtins.values()),
            headers=forwardable(self._headers),
            open_calls=tuple(call for call, _ in self.open_calls.values()),
            found=tuple(self.found),
        )

    def listed(self, serving: ToolServing) -> frozenset[str]:
        """Return the servers whose tools the answer lists: those that are asked for them, if the client knows of that."""
        if not self._lists:
            return frozenset()
        return frozenset(one.label for one in serving.servers if one.pinned is None)

    def _asked(self, server: NamedServer) -> AskedServer | None:
        toolset = self.toolsets.get(server.name)
        if toolset is None and not self._old:
            why = f"no tool of type 'mcp_toolset' has the mcp_server_name {quoted(server.name)}"
            server.place.problem("name", why)
        asked = asked_server(server, toolset, self.listings.get(server.name))
        changed = self.changed.get(server.name)
        return asked if asked is None or changed is None else changed.applied(asked)

    def _check_open(self, call: OpenToolCall, place: Cursor) -> None:
        """Note a call that is to be run now, of a server or tool that the request does not bring again."""
        owner = call.owner
        if owner.shape != "mcp":
            if not any(one.kind == owner.shape for one in self.builtins.values()):
                why = "the call has no result, and no tool of this name is declared to run it"
                place.problem("name", why)
        elif owner.server not in self.servers:
            why = "the call has no result, and no server of this name is given to run it"
            place.problem("server_name", why)
