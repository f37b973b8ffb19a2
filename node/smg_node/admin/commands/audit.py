"""Audit commands: `smg-admin audit` lists who changed what; `smg-admin sessions` shows routing
keys.
"""

from typing import Annotated, Any, Final

import typer

from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.output import format_span, print_facts, print_json, print_table
from smg_node.admin.views.value_text import format_change, format_time

sessions_app = typer.Typer(
    cls=CommandGroup,
    help="See and end sticky placements.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_COLUMNS: Final = ("ID", "TIME", "ON", "BY", "ACTION", "SUBJECT", "CHANGE")

Session = Annotated[
    str,
    typer.Argument(
        metavar="KEY", help="A routing key, or the id of its placement.", show_default=False
    ),
]
Model = Annotated[
    str, typer.Option(metavar="NAME", help="The model that the routing key is used with.")
]
Tenant = Annotated[str, typer.Option(metavar="NAME", help="The tenant that uses it.")]


def audit(
    context: typer.Context,
    action: Annotated[
        str, typer.Option(metavar="ACTION", help="Only this kind: worker, or worker.add.")
    ] = "",
    subject: Annotated[
        str, typer.Option(metavar="NAME", help="Only of this worker, setting or member.")
    ] = "",
    who: Annotated[str, typer.Option(metavar="WHO", help="Only what they did.")] = "",
    node: Annotated[str, typer.Option(metavar="NODE", help="Only what was asked of it.")] = "",
    before: Annotated[str, typer.Option(metavar="ID", help="Only older rows.")] = "",
    after: Annotated[str, typer.Option(metavar="ID", help="Only newer rows.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="At most.")] = 100,
) -> None:
    """Tell who changed what, on any node, newest first: workers, settings, members, keys.

    \b
    smg-admin audit --action worker
    smg-admin audit --action setting.set --subject routing.policy --limit 5
    """
    options = options_of(context)
    wanted = {
        "action": action,
        "subject": subject,
        "who": who,
        "node": node,
        "before": before,
        "after": after,
    }
    query = {"limit": str(limit), **{key: value for key, value in wanted.items() if value}}
    rows = options.client.ask("GET", "v1", "cluster", "audit", query=query)["rows"]
    if options.as_json:
        print_json(rows)
        return
    print_table(
        _COLUMNS,
        (
            (
                row["id"],
                format_time(row["time_ms"]),
                row["node"],
                f"{row['who']} from {row['address']}",
                row["action"],
                row["subject"],
                format_change(row["before"], row["after"]),
            )
            for row in rows
        ),
        empty="Nothing was changed that is still remembered.",
    )


@sessions_app.command("show")
def show_session(
    context: typer.Context, key: Session, model: Model = "", tenant: Tenant = ""
) -> None:
    """Show where the requests of a routing key go, and who said so."""
    options = options_of(context)
    query = _query(model, tenant)
    view = options.client.ask("GET", "v1", "cluster", "sessions", key, query=query)
    if options.as_json:
        print_json(view)
        return
    print_facts(
        [
            ("session", view["id"]),
            ("worker", view["worker"]),
            ("chosen", f"by {view['why']}, on {view['node']}"),
            ("used", f"{format_span(view['age_ms'] / 1000)} ago"),
            ("ends in", format_span(view["expires_ms"] / 1000)),
        ]
    )


@sessions_app.command("end")
def end_session(
    context: typer.Context, key: Session, model: Model = "", tenant: Tenant = ""
) -> None:
    """Forget where the requests of a routing key go: the next one is placed anew."""
    options = options_of(context)
    query = _query(model, tenant)
    answer = options.client.ask("DELETE", "v1", "cluster", "sessions", key, query=query)
    if options.as_json:
        print_json(answer)
    else:
        print(f"{answer['session']['id']} no longer goes to {answer['session']['worker']}")


def _query(model: str, tenant: str) -> dict[str, Any] | None:
    wanted = {"model": model, "tenant": tenant}
    return {name: value for name, value in wanted.items() if value} or None
