"""Dead letter commands, `smg-admin db dead`: turns the store refused, listed, retried or dropped.

They are files of one node, so this runs on its machine; the node itself need not run. One that does finds within
seconds what was given back.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from smg_node.admin.client import AdminError
from smg_node.admin.node_settings import ConfigFile, Folder, NodeName, check_node_agrees, loaded
from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.output import print_json, print_table, tell

if TYPE_CHECKING:
    from smg_node.history.spool.dead_letters import DeadTurn, DeadTurns

_COLUMNS: Final = ("NUMBER", "SINCE", "TENANT", "RESPONSE", "CONVERSATION", "KIND", "REASON")

dead_app = typer.Typer(
    cls=CommandGroup,
    help="Look after turns that the store did not take; on the machine of their node.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Numbers = Annotated[
    list[int] | None, typer.Argument(metavar="NUMBER", help="Which, as `list` shows them.")
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]


@dead_app.command("list")
def show(
    context: typer.Context, config: ConfigFile = "", data_dir: Folder = "", name: NodeName = ""
) -> None:
    """Show them, the oldest first, and why the store does not take them."""
    turns = _turns(context, config, data_dir, name).all()
    if options_of(context).as_json:
        print_json([_plain(one) for one in turns])
        return
    rows = [
        (
            one.number,
            _time(one.spooled_us),
            one.tenant,
            one.response_id,
            one.conversation_id or None,
            one.kind,
            one.reason,
        )
        for one in turns
    ]
    print_table(_COLUMNS, rows, empty="The store took every turn.")


@dead_app.command("retry")
def retry(
    context: typer.Context,
    numbers: Numbers = None,
    of_all: All = False,
    config: ConfigFile = "",
    data_dir: Folder = "",
    name: NodeName = "",
) -> None:
    """Give turns back to the spool: the node writes them to the store, or sets them aside again."""
    turns = _turns(context, config, data_dir, name)
    wanted = _wanted(turns, numbers, of_all=of_all)
    _tell(context, "given back", turns.retry(wanted), wanted)


@dead_app.command("drop")
def drop(
    context: typer.Context,
    numbers: Numbers = None,
    of_all: All = False,
    config: ConfigFile = "",
    data_dir: Folder = "",
    name: NodeName = "",
) -> None:
    """Forget turns for good."""
    turns = _turns(context, config, data_dir, name)
    wanted = _wanted(turns, numbers, of_all=of_all)
    _tell(context, "dropped", turns.drop(wanted), wanted)


def _turns(context: typer.Context, config: str, data_dir: str, name: str) -> "DeadTurns":
    from smg_node.history.service.lazy_history import spool_folder
    from smg_node.history.spool.dead_letters import DeadTurns
    from smg_node.history.spool.spool_format import SALT_BYTES

    found = loaded(config=config, data_dir=data_dir, name=name)
    check_node_agrees(found, options_of(context).client)
    return DeadTurns(spool_folder(found.settings), salt=lambda: os.urandom(SALT_BYTES))


def _wanted(turns: "DeadTurns", numbers: list[int] | None, *, of_all: bool) -> Sequence[int]:
    if bool(numbers) == of_all:
        raise typer.BadParameter("name some, or say --all", param_hint="NUMBER")
    return [one.number for one in turns.all()] if of_all else numbers or ()


def _tell(context: typer.Context, done: str, count: int, wanted: Sequence[int]) -> None:
    if options_of(context).as_json:
        print_json({"turns": count})
    else:
        tell(f"{done}: {count} of {len(wanted)}")
    if count < len(wanted):
        raise AdminError("some of them are not there")


def _plain(one: "DeadTurn") -> dict[str, Any]:
    import msgspec

    return {
        **msgspec.structs.asdict(one),
        "spooled_at": _time(one.spooled_us),
        "dead_at": _time(one.dead_us),
    }


def _time(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="seconds")
