"""Standing policy: what an operator's rules say of a tool where no request adds to them. Pure."""

from fnmatch import fnmatchcase

from smg_node.mcp.server_spec import Verdict
from smg_node.mcp.tool_servers import ResolvedServer
from smg_node.mcp.tools.tool import Tool


def standing_verdict(server: ResolvedServer, tool: Tool) -> Verdict:
    """Return the verdict of the first that speaks: the tool's own rule, a pattern, the trust in its server."""
    spec = server.spec
    rule = spec.rule(tool.name)
    if rule.approval is not None:
        return rule.approval
    for pattern, verdict in spec.rules:
        if fnmatchcase(tool.name, pattern):
            return verdict
    if spec.trust == "untrusted":
        return "allow" if rule.read_only is True else "ask"
    if spec.trust == "sandboxed":
        # Only an operator's word counts here, and he has none for a closed world.
        return "allow" if rule.read_only is True and _closed(tool) else "deny"
    return "allow"


def _closed(tool: Tool) -> bool:
    return tool.annotations.get("openWorldHint") is False
