"""Provider commands, `smg-admin providers`: accounts at vendors for the whole cluster, and what requests lose there."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from smg_node.admin.client import AdminError
from smg_node.admin.commands.providers.definition_writes import (
    PROVIDERS,
    IfVersion,
    present,
    read_definition,
    version_of,
    written,
)
from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.output import print_json, print_table, tell
from smg_node.admin.views.provider_texts import (
    PROVIDER_COLUMNS,
    draw_explained,
    draw_provider,
    provider_row,
    troubles,
)
from smg_node.admin.views.value_text import read_file, read_key

providers_app = typer.Typer(
    cls=CommandGroup,
    help="Serve models of vendors: define accounts, see their keys and models, explain requests.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Words: TypeAlias = list[str] | None
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="What the provider is called here: anthropic-a.", show_default=False
    ),
]
File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="YAML or JSON of the provider, or a whole file of `providers:`; - is the standard input.",
        show_default=False,
    ),
]
Kind = Annotated[
    str, typer.Option(metavar="KIND", help="openai, anthropic, gemini, bedrock, azure, …")
]
Base = Annotated[
    str, typer.Option(metavar="URL", help="Where it is, if not at its kind's own address.")
]
Region = Annotated[str, typer.Option(metavar="NAME", help="Of AWS, or of OpenAI.")]
Location = Annotated[str, typer.Option(metavar="NAME", help="Of Google Cloud.")]
Project = Annotated[str, typer.Option(metavar="NAME", help="Google's or OpenAI's.")]
Resource = Annotated[str, typer.Option(metavar="NAME", help="Azure's.")]
Credentials = Annotated[
    str, typer.Option(metavar="KIND", help="How nodes get in: keys, none, aws, gcp or entra.")
]
ApiKey = Annotated[
    Words,
    typer.Option(
        metavar="WHERE",
        help="file:/PATH or env:NAME, which each node reads itself; again for another key.",
    ),
]
ApiKeyFile = Annotated[
    Words,
    typer.Option(
        metavar="FILE",
        help="A file here whose first line is a key: it is sealed and given to all nodes; again for another key.",
    ),
]
Model = Annotated[
    Words,
    typer.Option(
        metavar="MODEL", help="A model, as the vendor calls it; clients ask for it by that name."
    ),
]
Label = Annotated[Words, typer.Option(metavar="NAME=VALUE", help="A label, as zone=eu.")]


@providers_app.command("list")
def list_providers(context: typer.Context) -> None:
    """List the providers with their keys and the state of their models, as this node sees them.

    A provider of the cluster goes before one of that name in a node's own file. Secrets are never shown.
    """
    options = options_of(context)
    answer = options.client.ask("GET", *PROVIDERS)
    if options.as_json:
        print_json(answer)
        return
    rows: Sequence[Mapping[str, Any]] = answer["providers"]
    print_table(PROVIDER_COLUMNS, map(provider_row, rows), empty="There is no provider.")
    for key, why in answer["unreadable"].items():
        tell(f"{key} is not followed by this node: {why}")


@providers_app.command("show")
def show(context: typer.Context, name: Name) -> None:
    """Show one provider: its definition, where its keys come from and whether they rest, its models.

    A key is shown as file:/PATH or env:NAME, or as (set) for a value.

    \b
    smg-admin providers show anthropic-a
    smg-admin providers show anthropic-a --json
    """
    options = options_of(context)
    view = options.client.ask("GET", *PROVIDERS, name)
    if options.as_json:
        print_json(view)
    else:
        print(draw_provider(view))


@providers_app.command("set")
def set_provider(
    context: typer.Context,
    name: Name,
    file: File = "",
    kind: Kind = "",
    base: Base = "",
    region: Region = "",
    location: Location = "",
    project: Project = "",
    resource: Resource = "",
    credentials: Credentials = "",
    api_key: ApiKey = None,
    api_key_file: ApiKeyFile = None,
    model: Model = None,
    label: Label = None,
    if_version: IfVersion = "",
) -> None:
    """Define a provider on every node, by a file or by flags; keys that are not given stay as they are.

    A file replaces the whole definition but its keys. Flags change only what they name. New keys take effect at once:
    requests that are under way end with the old ones.

    \b
    smg-admin providers set anthropic-a --kind anthropic --api-key-file a.key --model claude-sonnet-5
    smg-admin providers set anthropic-a --api-key-file new.key
    smg-admin providers set local --kind openai_like --base http://10.0.0.7:8000/v1 --credentials none
    smg-admin providers set bedrock-eu providers.yaml
    """
    options = options_of(context)
    plain = {
        "kind": kind, "base": base, "region": region, "location": location, "project": project,
        "resource": resource, "credentials": credentials,
    }  # fmt: skip
    flags: dict[str, Any] = {field: value for field, value in plain.items() if value}
    flags |= _many(api_key, api_key_file, model, label)
    if bool(file) == bool(flags):
        raise typer.BadParameter("say either FILE or flags such as --kind and --api-key-file")
    seen = present(options.client, *PROVIDERS, name)
    body = read_definition(file, "providers", name) if file else _changed(name, seen, flags)
    headers = version_of(seen, if_version)
    answer = options.client.look("PUT", *PROVIDERS, name, body=body, headers=headers)
    view = written(options.client, name, answer)
    if options.as_json:
        print_json(view)
        return
    print(f"{name} is a provider of kind {view['kind']} on every node (version {view['version']})")
    if not view["targets"]:
        tell("clients cannot ask for a model of it yet: name one with --model, or make a route")
    for line in troubles(view["targets"]):
        tell(line)


@providers_app.command("remove")
def remove(
    context: typer.Context,
    name: Name,
    force: Annotated[
        bool, typer.Option("--force", help="Also if routes name it: those lose their targets.")
    ] = False,
    if_version: IfVersion = "",
) -> None:
    """Take a provider away on every node, with its keys; requests that are under way end.

    \b
    smg-admin providers remove anthropic-a
    """
    options = options_of(context)
    headers = version_of(present(options.client, *PROVIDERS, name), if_version)
    query = {"force": "true"} if force else None
    answer = options.client.look("DELETE", *PROVIDERS, name, query=query, headers=headers)
    done = written(options.client, name, answer)
    if options.as_json:
        print_json(done)
        return
    print(f"{name} is no provider of the cluster any more")
    if done["now"] is not None:
        tell(
            "the node that was asked has one of that name in its own file, which counts there again"
        )


@providers_app.command("explain")
def explain(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="As clients name it: a route, or a model.", show_default=False
        ),
    ],
    body: Annotated[
        str,
        typer.Argument(
            metavar="BODY",
            help="A file with a request in JSON, as a client sends it; - is the standard input.",
            show_default=False,
        ),
    ] = "",
    api: Annotated[
        str,
        typer.Option(
            metavar="API",
            help="Of the request: chat, messages, responses or generate_content. Else seen by its fields.",
        ),
    ] = "",
) -> None:
    """Tell which targets a model has, in which API each is asked, and what it would ignore or refuse.

    native: the client's bytes go to the vendor as they came. translated: the request is written anew in the API that
    the target speaks. With a request, what the target cannot be told is listed. No vendor is called.

    \b
    smg-admin providers explain claude
    smg-admin providers explain claude request.json --api chat
    """
    options = options_of(context)
    asked: dict[str, Any] = {"model": model, **({"api": api} if api else {})}
    if body:
        asked["body"] = _json(body)
    told = options.client.ask("POST", *PROVIDERS, "explain", body=asked)
    if options.as_json:
        print_json(told)
    else:
        print(draw_explained(told))


def _changed(
    name: str, seen: Mapping[str, Any] | None, flags: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the definition that is there, with these fields changed."""
    body = {**({} if seen is None else seen["spec"]), **flags}
    if "kind" not in body:
        raise typer.BadParameter(f"{name} is new: say its --kind", param_hint="--kind")
    return body


def _many(api_key: Words, api_key_file: Words, model: Words, label: Words) -> Mapping[str, Any]:
    """Return the fields of flags that may be given again."""
    said: dict[str, Any] = {}
    for text in api_key or ():
        if not text.startswith(("file:/", "env:")):
            raise typer.BadParameter(
                "takes file:/PATH or env:NAME; a key itself is given by --api-key-file",
                param_hint="--api-key",
            )
    keys = [
        *(api_key or ()),
        *(read_key(str(Path(path).expanduser())) for path in api_key_file or ()),
    ]
    if keys:
        said["keys"] = keys
    if model:
        said["models"] = list(model)
    if label:
        pairs = [text.partition("=") for text in label]
        if not all(key and equals for key, equals, _ in pairs):
            raise typer.BadParameter("takes NAME=VALUE, as zone=eu", param_hint="--label")
        said["labels"] = {key: value for key, _, value in pairs}
    return said


def _json(file: str) -> Mapping[str, Any]:
    import json

    try:
        found = json.loads(read_file(file))
    except (ValueError, RecursionError) as error:
        raise AdminError(f"{file} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise AdminError(f"{file} must hold a request: a JSON object")
    return found
