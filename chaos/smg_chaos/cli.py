"""Command line of `smg-chaos`: a table of commands, each of whose modules is imported when it is
used.

A command is one line in `_COMMANDS`: its name, the module that has it, and what it does. The module
is imported when the command is used, so `smg-chaos --help` stays quick however many there are. A
module offers `app`, a `typer.Typer` with one command, or with several: then the name is a group.
"""

from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

_COMMANDS: Final = {
    "engine": ("smg_chaos.engine.cli", "Serve a simulated inference engine."),
    "vendor": ("smg_chaos.vendor.cli", "Serve a stand-in of a vendor of models."),
    "mcp-server": (
        "smg_chaos.mcp.cli",
        "Serve an MCP server with faults, which counts what it runs.",
    ),
    "mcp-cost": ("smg_chaos.mcp.cost_cli", "Measure what a call of a tool costs a node."),
    "kube-api": (
        "smg_chaos.kubernetes.cli",
        "Serve an API server of Kubernetes with faults, for discovery.",
    ),
    "bench": ("smg_chaos.bench.cli", "Measure gateways side by side."),
    "compare": ("smg_chaos.bench.compare_cli", "Hold this gateway to its goals beside others."),
    "crowd": ("smg_chaos.bench.crowd_cli", "Put thousands of streams on one gateway at once."),
    "instructions": ("smg_chaos.bench.instructions", "Count what a request takes, exactly."),
    "provider-memory": (
        "smg_chaos.bench.provider_memory",
        "Measure what vendors' definitions take of a node's memory.",
    ),
    "process-memory": (
        "smg_chaos.bench.process_memory",
        "Measure what each process of a node takes of memory.",
    ),
    "resting": ("smg_chaos.bench.resting", "Measure what nodes with nothing to do cost."),
    "history": ("smg_chaos.history.cli", "Measure what a remembered response costs."),
    "gameday": ("smg_chaos.gameday.cli", "Hurt real clusters in a lab of namespaces."),
    "simulate": ("smg_chaos.simulate.cli", "Simulate a whole cluster on virtual time."),
    "routing": ("smg_chaos.routing.cli", "Compare routing policies on virtual time."),
    "routing-live": ("smg_chaos.routing.live_cli", "Compare how real gateways route chats."),
    "fuzz": ("smg_chaos.fuzz.cli", "Throw hostile datagrams at a node."),
    "state-soak": (
        "smg_chaos.bench.micro.state_soak",
        "Change a replicated document a million times.",
    ),
    "prefix-index": ("smg_chaos.bench.micro.prefix_index", "Measure the index of cached prompts."),
    "decision": ("smg_chaos.bench.micro.decision", "Measure what it costs to choose a worker."),
    "decision-growth": ("smg_chaos.bench.micro.decision_growth", "Measure how that grows."),
    "admission": ("smg_chaos.bench.micro.admission", "Measure what limits cost a request."),
    "parse": ("smg_chaos.bench.micro.parse", "Measure what reading thoughts and calls costs."),
    "messages-read": (
        "smg_chaos.bench.micro.messages_read",
        "Measure what reading bodies of Messages costs.",
    ),
    "signed-tokens": (
        "smg_chaos.bench.micro.signed_tokens",
        "Measure what judging a signed token costs.",
    ),
    "second-opinion": ("smg_chaos.opinion.cli", "Compare parsers with the reference gateway's."),
    "parse-fuzz": ("smg_chaos.opinion.fuzz_cli", "Throw damaged answers at the parsers."),
    "round-trips": ("smg_chaos.opinion.trips_cli", "Read back what chat templates show."),
    "rights": ("smg_chaos.bench.micro.rights", "Measure what limits cost a node."),
    "engine-cost": ("smg_chaos.engine.cost_cli", "Measure what a simulated engine costs."),
}


class LazyCommands(TyperGroup):
    """A Typer group that knows its commands by name and imports the one that is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands' names."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return what a listing shows of a command, or None: the group then says what is near."""
        known = _COMMANDS.get(cmd_name)
        return None if known is None else TyperCommand(cmd_name, help=known[1])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is really used, imported."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or command is None:
            return name, command, rest
        used = get_command(import_module(_COMMANDS[name][0]).app)
        used.name = name
        return name, used, rest


app = typer.Typer(cls=LazyCommands, add_completion=False, no_args_is_help=True)


@app.callback()
def smg_chaos() -> None:
    """Simulated engines, load, and faults on purpose, for smg-node and whatever it is compared with."""


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
