"""Price commands, `smg-admin prices`: what models cost, at single providers or under public names, and published tables."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from smg_node.admin.client import AdminClient, AdminError
from smg_node.admin.commands.providers.definition_writes import (
    PRICES,
    PROVIDERS,
    IfVersion,
    present,
    read_definition,
    version_of,
    written,
)
from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.output import print_json, print_table, tell
from smg_node.admin.views.price_texts import PRICE_COLUMNS, draw_price, price_row
from smg_node.admin.views.value_text import read_file

prices_app = typer.Typer(
    cls=CommandGroup,
    help="Say what calls of models cost, for accounts and limits on cost.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_TABLES: Final = ("genai-prices", "litellm")
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="What clients call the model; PROVIDER/MODEL for a model at one provider.",
        show_default=False,
    ),
]
Rate = Annotated[float | None, typer.Option(metavar="AMOUNT", help="Of a million tokens.")]
PerCall = Annotated[float | None, typer.Option(metavar="AMOUNT", help="Of a call.")]


@prices_app.command("list")
def list_prices(context: typer.Context) -> None:
    """List the prices, of a million tokens each. What `models.NAME` in the settings says counts where there is none here."""
    options = options_of(context)
    answer = options.client.ask("GET", *PRICES)
    if options.as_json:
        print_json(answer)
        return
    rows: Sequence[Mapping[str, Any]] = answer["prices"]
    print_table(PRICE_COLUMNS, map(price_row, rows), empty="Nobody has said what anything costs.")


@prices_app.command("show")
def show(context: typer.Context, name: Name) -> None:
    """Show one price with its steps, tiers and days.

    \b
    smg-admin prices show anthropic-a/claude-sonnet-5
    """
    options = options_of(context)
    view = options.client.ask("GET", *PRICES, name)
    if options.as_json:
        print_json(view)
    else:
        print(draw_price(view))


@prices_app.command("set")
def set_price(
    context: typer.Context,
    name: Name,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="YAML or JSON of the price, or a whole file of `prices:`; - is the standard input.",
            show_default=False,
        ),
    ] = "",
    prompt: Rate = None,
    cached: Rate = None,
    cache_written: Rate = None,
    written_long: Rate = None,
    answer: Rate = None,
    per_call: PerCall = None,
    if_version: IfVersion = "",
) -> None:
    """Say on every node what a model costs, in place of what is there; steps, tiers and days are said by a file.

    What is unsaid of a prompt's tokens (read from a cache, written to it) costs what new ones do.

    \b
    smg-admin prices set claude --prompt 3 --cached 0.3 --cache-written 3.75 --answer 15
    smg-admin prices set anthropic-a/claude-sonnet-5 price.yaml
    """
    options = options_of(context)
    amounts = {
        "prompt": prompt, "cached": cached, "written": cache_written, "written_long": written_long,
        "answer": answer, "per_call": per_call,
    }  # fmt: skip
    said = {what: amount for what, amount in amounts.items() if amount is not None}
    if bool(file) == bool(said):
        raise typer.BadParameter("say either FILE or amounts such as --prompt and --answer")
    body = read_definition(file, "prices", name) if file else said
    view = _write(options.client, name, body, if_version)
    if options.as_json:
        print_json(view)
    else:
        print(f"{name} has a price on every node (version {view['version']})")


@prices_app.command("remove")
def remove(context: typer.Context, name: Name, if_version: IfVersion = "") -> None:
    """Take a price away on every node; calls from now on cost what the public name or the settings say, or nobody knows.

    \b
    smg-admin prices remove anthropic-a/claude-sonnet-5
    """
    options = options_of(context)
    headers = version_of(present(options.client, *PRICES, name), if_version)
    answer = options.client.look("DELETE", *PRICES, name, headers=headers)
    done = written(options.client, f"the price of {name}", answer)
    if options.as_json:
        print_json(done)
        return
    print(f"{name} has no price of the cluster any more")
    if done["now"] is not None:
        tell("the node that was asked has one in its own file, which counts there again")


@prices_app.command("import")
def import_prices(
    context: typer.Context,
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="genai-prices or litellm.", show_default=False)
    ],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="genai-prices' data.json, or litellm's model_prices_and_context_window.json.",
            show_default=False,
        ),
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Write what differs; without it, only show that.")
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Every model of the table, under its own name there, as a public name."
        ),
    ] = False,
    match: Annotated[
        str, typer.Option(metavar="GLOB", help="Only names like that, as 'openai-a/*'.")
    ] = "",
) -> None:
    """Take prices from a published table: of each model at a provider that is served or that a route names.

    First it shows what would change; --write does it. Nothing is fetched: nodes never ask for tables. An amount that no
    price here has a place for (of images, of seconds, of hours of a day) is named, and left out.

    \b
    smg-admin prices import litellm model_prices_and_context_window.json
    smg-admin prices import genai-prices data.json --match 'openai-a/*' --write
    """
    from smg_node.admin.price_tables.price_differences import difference_rows, differences

    options = options_of(context)
    found = _table(table, file)
    known = {row["name"]: row for row in options.client.ask("GET", *PRICES)["prices"]}
    models = None if every else _named_models(options.client)
    changes = differences(found, models, known, match)
    if options.as_json:
        print_json([one._asdict() for one in changes])
    else:
        columns = ("NAME", "CHANGE", "ROW", "NOW", "IN THE TABLE")
        print_table(columns, difference_rows(changes), empty="There is no model to look up.")
    for one in changes:
        if one.lost:
            tell(f"{one.name}: without {', '.join(one.lost)}")
    wanted = [one for one in changes if one.change in ("new", "changed")]
    if not write:
        if wanted:
            tell(f"nothing was written: {len(wanted)} prices would be, with --write")
        return
    for one in wanted:
        assert one.price is not None, "it is in the table"
        version = str(known[one.name]["version"]) if one.name in known else "0"
        _put(options.client, one.name, one.price, version_of(None, version))
    tell(f"{len(wanted)} prices were written")


def _write(
    client: AdminClient, name: str, body: Mapping[str, Any], if_version: str
) -> Mapping[str, Any]:
    return _put(client, name, body, version_of(present(client, *PRICES, name), if_version))


def _put(
    client: AdminClient, name: str, body: Mapping[str, Any], headers: Mapping[str, str]
) -> Mapping[str, Any]:
    answer = client.look("PUT", *PRICES, name, body=body, headers=headers)
    return written(client, f"the price of {name}", answer)


def _table(table: str, file: str) -> Any:
    """Return the table in a file; AdminError for what is none."""
    import json

    if table not in _TABLES:
        raise typer.BadParameter(f"is {' or '.join(_TABLES)}", param_hint="TABLE")
    try:
        said = json.loads(read_file(file))
        if table == "litellm":
            from smg_node.admin.price_tables.litellm_table import LitellmTable

            return LitellmTable(said)
        from smg_node.admin.price_tables.genai_table import GenaiTable

        return GenaiTable(said)
    except (ValueError, RecursionError) as error:
        raise AdminError(f"{file}: {error}") from None


def _named_models(client: AdminClient) -> Sequence[Any]:
    """Return the models at providers that are served under their own names, or that routes name."""
    from smg_node.admin.price_tables.price_row import NamedModel

    found: dict[str, NamedModel] = {}
    for view in client.ask("GET", *PROVIDERS)["providers"]:
        spec = view["spec"]
        for target in view["targets"]:
            kind, base, region = view["kind"], spec.get("base", ""), spec.get("region", "")
            found[target["to"]] = NamedModel(target["to"], kind, base, region)
    return [found[name] for name in sorted(found)]
