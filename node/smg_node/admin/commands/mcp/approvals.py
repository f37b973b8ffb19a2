"""Approval commands, `smg-admin mcp approvals`: runs of tools that wait for an operator's word, on any node."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.approval_texts import APPROVAL_COLUMNS, approval_row, draw_approval
from smg_node.admin.views.output import print_json, print_table, tell

APPROVALS: Final = ("v1", "mcp", "approvals")
approvals_app = typer.Typer(
    cls=CommandGroup,
    help="Allow or deny runs of tools that wait for an operator's word, on whichever node they wait.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

RunId = Annotated[
    str, typer.Argument(metavar="ID", help="The id that the list shows.", show_default=False)
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; a model that is denied is told.")]


@approvals_app.command("list")
def list_runs(context: typer.Context) -> None:
    """List the runs that wait on all nodes, the longest wait first, with the beginnings of their arguments.

    Clients of Chat and Messages wait meanwhile, mcp.approval_wait_s at most. A node that does not answer is named.

    \b
    smg-admin mcp approvals list
    smg-admin mcp approvals list --json
    """
    options = options_of(context)
    answer = options.client.ask("GET", *APPROVALS)
    if options.as_json:
        print_json(answer)
        return
    rows: Sequence[Mapping[str, Any]] = answer["approvals"]
    print_table(APPROVAL_COLUMNS, map(approval_row, rows), empty="No run waits for approval.")
    if answer["left_out"]:
        tell(f"{answer['left_out']} more wait: the list is full")
    for name, why in answer["members"].items():
        tell(f"{name} cannot be asked: {why}")


@approvals_app.command("show")
def show(context: typer.Context, run_id: RunId) -> None:
    """Show one run that waits, with all of its arguments.

    \b
    smg-admin mcp approvals show mcpa_0198f2a4c51e00071f6d2b9c04e83a5d
    """
    options = options_of(context)
    answer = options.client.ask("GET", *APPROVALS, run_id)
    if options.as_json:
        print_json(answer)
    else:
        print(draw_approval(answer["approval"]))


@approvals_app.command("approve")
def approve(context: typer.Context, run_id: RunId, reason: Reason = "") -> None:
    """Let a run go on, once. Exit code 1 where it is over, or somebody has answered already.

    \b
    smg-admin mcp approvals approve mcpa_0198f2a4c51e00071f6d2b9c04e83a5d
    """
    _answer(context, run_id, reason, yes=True)


@approvals_app.command("deny")
def deny(context: typer.Context, run_id: RunId, reason: Reason = "") -> None:
    """Do not let a run go on; its model is told the reason, and answers without it.

    \b
    smg-admin mcp approvals deny mcpa_0198f2a4c51e00071f6d2b9c04e83a5d --reason 'ask the owner first'
    """
    _answer(context, run_id, reason, yes=False)


def _answer(context: typer.Context, run_id: str, reason: str, *, yes: bool) -> None:
    options = options_of(context)
    body = {"approve": yes, "reason": reason}
    done = options.client.ask("POST", *APPROVALS, run_id, body=body)
    if options.as_json:
        print_json(done)
        return
    word = "goes on" if yes else "is denied"
    print(f"{done['server']}/{done['tool']} {word} on {done['node']}")
