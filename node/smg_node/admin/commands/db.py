"""Database commands, `smg-admin db`: status and migration of the history tables, without a node.

Where they are is what a node of the same configuration would be told: by its file, the environment, or here;
`status` says by whom. Where nobody tells, a node that runs at --url is asked, and must agree.
"""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from smg_node.admin.client import AdminError
from smg_node.admin.commands.dead_letters import dead_app
from smg_node.admin.node_settings import (
    ConfigFile,
    Folder,
    Store,
    check_node_agrees,
    loaded,
    store_origin,
)
from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.output import print_facts, print_json, tell

if TYPE_CHECKING:
    from smg_storage.migrate import Migrated, Migrations

T = TypeVar("T")

db_app = typer.Typer(
    cls=CommandGroup,
    help="Look at the tables of history, and bring them up to date; no node has to run.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
db_app.add_typer(dead_app, name="dead")


@db_app.command("status")
def status(
    context: typer.Context, store: Store = "", config: ConfigFile = "", data_dir: Folder = ""
) -> None:
    """Show of which revision the tables are, and whether a node can use them."""
    where, origin, migrations = _opened(context, store, config, data_dir)
    from smg_storage.migrate import head
    from smg_storage.sql.schema.revision import NEEDED

    found, newest = _done(migrations.current()), head()
    state, words = _state(found, needed=NEEDED, newest=newest)
    if options_of(context).as_json:
        print_json(
            {
                "store": where,
                "said_by": origin,
                "revision": found or None,
                "needed": NEEDED,
                "newest": newest,
                "state": state,
            }
        )
        return
    print_facts(
        (
            ("store", where),
            ("said by", origin),
            ("revision", found),
            ("needed", NEEDED),
            ("tables", words),
        )
    )


@db_app.command("migrate")
def migrate(
    context: typer.Context,
    store: Store = "",
    config: ConfigFile = "",
    data_dir: Folder = "",
    to: Annotated[
        str, typer.Option("--to", metavar="REVISION", help="Up to this one; base is none at all.")
    ] = "head",
    down: Annotated[
        bool,
        typer.Option("--down", help="Go back to an older one, and lose what only newer ones keep."),
    ] = False,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the statements for somebody else to run.")
    ] = False,
    since: Annotated[
        str,
        typer.Option(
            "--from", metavar="REVISION", help="With --sql: as if the tables were of this one."
        ),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
) -> None:
    """Bring the tables up to date; others who do the same at this moment are waited for.

    Tables of SMG (version 3 of its schema in PostgreSQL) are taken over: they are kept under new names.

    \b
    smg-admin db migrate --store postgresql://smg@db/history --dry-run
    smg-admin db migrate --config /etc/smg/node.yaml
    smg-admin db migrate --sql --from base > tables.sql
    """
    if since and not sql:
        raise typer.BadParameter("only with --sql", param_hint="--from")
    where, _, migrations = _opened(context, store, config, data_dir)
    if sql:
        found = since or _done(migrations.current())
        print(_said(lambda: migrations.statements(found=found, to=to)), end="")
        return
    moving = migrations.downgrade if down else migrations.upgrade
    moved = _done(moving(to, dry_run=dry_run))
    if options_of(context).as_json:
        print_json({"store": where, **_moved(moved), "dry_run": dry_run})
        return
    for step in moved.steps:
        print(f"{'would do' if dry_run else 'done'}: {step}")
    _tell_end(moved)


@db_app.command("stamp")
def stamp(
    context: typer.Context,
    store: Store = "",
    config: ConfigFile = "",
    data_dir: Folder = "",
    to: Annotated[
        str, typer.Option("--to", metavar="REVISION", help="The one that the tables are of.")
    ] = "head",
) -> None:
    """Write down of which revision the tables are, after somebody ran the statements of `migrate --sql`."""
    where, _, migrations = _opened(context, store, config, data_dir)
    moved = _done(migrations.stamp(to))
    if options_of(context).as_json:
        print_json({"store": where, **_moved(moved)})
    else:
        _tell_end(moved)


def _state(found: str, *, needed: str, newest: str) -> tuple[str, str]:
    from smg_storage.sql.schema.revision import is_older

    if not found:
        return "none", "none of ours: run `smg-admin db migrate`"
    if is_older(found, needed):
        return "old", "too old: run `smg-admin db migrate`"
    if is_older(newest, found):
        return "newer", "of a newer program, and can be used"
    return "current", "up to date"


def _moved(moved: "Migrated") -> dict[str, Any]:
    ends = {"before": moved.found or None, "revision": moved.reached or None}
    return {**ends, "steps": list(moved.steps)}


def _tell_end(moved: "Migrated") -> None:
    if not moved.steps and moved.found == moved.reached:
        tell("there is nothing to do")
    tell(f"the tables are of revision {moved.reached}" if moved.reached else "there are no tables")


# ── Between ──────────────────────────────────────────────────────────────────


def _opened(
    context: typer.Context, store: str, config: str, data_dir: str
) -> tuple[str, str, "Migrations"]:
    """The store as it can be shown, who said so, and its migrations; AdminError if there can be none."""
    found = loaded(store=store, config=config, data_dir=data_dir)
    check_node_agrees(found, options_of(context).client)
    settings = found.settings
    from smg_node.history.store.open_store import store_options, store_url

    try:
        from smg_storage.migrate import Migrations

        url = store_url(settings)
        return url.redacted(), store_origin(found), Migrations(url, store_options(settings))
    except ImportError as error:
        raise AdminError(f"the package {error.name!r} is not installed") from None
    except ValueError as error:
        raise AdminError(str(error)) from None


def _done(work: Coroutine[Any, Any, T]) -> T:
    import asyncio

    return _said(lambda: asyncio.run(work))


def _said(ask: Callable[[], T]) -> T:
    """What is answered; AdminError for everything that a store may say against it."""
    from smg_storage.errors import StoreError

    try:
        return ask()
    except StoreError as error:
        raise AdminError(error.message) from None
