"""Run name: the tool of a run as limits and accounts name it, `SERVER/TOOL`. Pure."""

from typing import Final

CLIENT_GIVEN: Final = "@client/any"
"""Of tools at servers that clients give: the names of those are theirs to choose, and no definition can have this one."""


def run_name(server: str, tool: str) -> str:
    """Return the name of a tool at a defined server; `server` is "" for one that a client gave."""
    return f"{server}/{tool}" if server else CLIENT_GIVEN


def server_of(name: str) -> str:
    """Return the server in such a name."""
    return name.partition("/")[0]
