"""MCP command group, `smg-admin mcp`: its sub-commands in the order in which people need them."""

import typer

from smg_node.admin.commands.mcp.approvals import approvals_app
from smg_node.admin.commands.mcp.probe import probe
from smg_node.admin.commands.mcp.servers import servers_app
from smg_node.admin.commands.mcp.tools import call, tools
from smg_node.admin.options import CommandGroup

mcp_app = typer.Typer(
    cls=CommandGroup,
    help="Servers of tools (Model Context Protocol): define them, look at them, call their tools, allow runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
mcp_app.add_typer(servers_app, name="servers")
mcp_app.command("tools")(tools)
mcp_app.command("call")(call)
mcp_app.add_typer(approvals_app, name="approvals")
mcp_app.command("probe")(probe)
