"""Overview commands, `smg-admin status`, `models` and `loads`: the state of a node."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from smg_node.admin.client import AdminClient
from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.output import print_facts, print_json, print_table

models_app = typer.Typer(
    cls=CommandGroup,
    help="See which models are served.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_NOT_TOLD: Final = (401, 403, 404)
"""How a node answers who may not see its workers; 404 where the admin API has a listener of its own."""
_NOT_SHOWN: Final = "not shown without an operator's key, or at this address"
_LOADS: Final = {
    "worker": "WORKER",
    "rank": "RANK",
    "inflight": "IN FLIGHT",
    "running": "RUNNING",
    "running_max": "MOST",
    "waiting": "WAITING",
    "kv_usage": "KV USED",
    "tokens_per_s": "TOKENS/S",
    "cache_hit_rate": "CACHE HITS",
    "error": "ERROR",
}


def status(context: typer.Context) -> None:
    """Say whether the node is ready, its version and its workers. Exit code 1 when it is not ready.

    Workers are shown to operators only: without a key where one is needed, they are left out (null with --json).
    """
    options = options_of(context)
    version = options.client.ask("GET", "version")
    probe = options.client.look("GET", "readiness").body or {}
    workers = _workers(options.client)
    ready = probe.get("status") == "ready"
    found: dict[str, Any] = {
        "url": options.client.url,
        "name": version["name"],
        "version": version["version"],
        "commit": version.get("commit"),
        "ready": ready,
        "reasons": probe.get("reasons", []),
        "workers": workers,
    }
    if options.as_json:
        print_json(found)
    else:
        _print_status(found)
    raise typer.Exit(0 if ready else 1)


def _workers(client: AdminClient) -> Mapping[str, Any] | None:
    """Return how many workers there are; None where that is not told to who sent no credential."""
    answer = client.look("GET", "workers")
    if answer.status in _NOT_TOLD and not client.key and client.tokens is None:
        return None
    workers = client.taken(answer)
    return {"total": len(workers["workers"]), "by_status": workers["stats"].get("by_status", {})}


def _print_status(found: Mapping[str, Any]) -> None:
    counts = _NOT_SHOWN if found["workers"] is None else _counts(found["workers"]["by_status"])
    commit = f" ({found['commit']})" if found["commit"] else ""
    print_facts(
        [
            ("node", f"{found['name']} {found['version']}{commit} at {found['url']}"),
            ("state", "ready" if found["ready"] else "not ready"),
            *(("", reason) for reason in found["reasons"]),
            ("workers", counts),
        ]
    )


def _counts(by_status: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(by_status.items())) or "none"


@models_app.command("list")
def list_models(context: typer.Context) -> None:
    """List the served models, sorted by name."""
    options = options_of(context)
    rows = options.client.ask("GET", "v1", "models")["data"]
    models = [_model(row) for row in rows if "alias_of" not in row.get("x_smg", {})]
    models.sort(key=lambda model: str(model["id"]))
    if options.as_json:
        print_json(models)
        return
    print_table(
        ("MODEL", "WORKERS", "READY", "CONTEXT", "THOUGHTS", "CALLS", "ALIASES"),
        (
            (
                model["id"],
                model["workers"],
                model["workers_ready"],
                model["context"],
                _parser(model, "reasoning"),
                _parser(model, "tools"),
                model["aliases"],
            )
            for model in models
        ),
        empty="No model is served.",
    )


def _model(row: Mapping[str, Any]) -> dict[str, Any]:
    own: Mapping[str, Any] = row.get("x_smg", {})
    return {
        "id": row["id"],
        "owned_by": row.get("owned_by"),
        "created": row.get("created"),
        "workers": own.get("workers"),
        "workers_ready": own.get("workers_ready"),
        "context": own.get("context"),
        "aliases": sorted(own.get("aliases", [])),
        "modalities": own.get("modalities", []),
        **{name: own[name] for name in ("parsers", "pictures") if name in own},
    }


def _parser(model: Mapping[str, Any], part: str) -> str | None:
    parsers = model.get("parsers")
    return None if parsers is None else str(parsers[part]["name"])


@models_app.command("explain")
def explain_model(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Its name, or an alias.", show_default=False),
    ],
) -> None:
    """Tell how a model's thoughts and tool calls are read, how its pictures are made, and what decided for it.

    In order: models.NAME.reasoning_parser and .tool_parser, what its worker calls them, the checkpoint's own
    response template, its chat template and tokens, its config.json, its name. For pictures: models.NAME.media.processor,
    the files that its workers have of the image processor, the defaults of its family.

    \b
    smg-admin models explain qwen3-32b
    smg-admin config set models/qwen3-32b/tool_parser hermes
    """
    options = options_of(context)
    found = _model(options.client.ask("GET", "v1", "models", *model.split("/")))
    if options.as_json:
        print_json(found)
        return
    print_facts(_explained(found))


def _explained(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    parsers = model.get("parsers")
    if parsers is None:
        return [("model", model["id"]), ("parsers", "its workers speak HTTP and read its answers")]
    rows = [("model", str(model["id"]))]
    for what, name in (("thoughts", "reasoning"), ("tool calls", "tools")):
        found = parsers[name]
        variant = "".join(f"+{option}" for option in found["options"])
        rows.append((what, f"{found['name']}{variant}"))
        why = f"{found['source']}: {found['evidence']}" if found["evidence"] else "nothing is known"
        rows.append(("", why))
    rows.extend(("warning", warning) for warning in parsers.get("warnings", []))
    return [*rows, *_pictures(model.get("pictures", []))]


def _pictures(groups: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return what is told of how pictures are made, for each group of workers that agree."""
    rows = []
    for group in groups:
        at = f", at {group['workers']} of its workers" if len(groups) > 1 else ""
        rows.append(("pictures", f"{group['family'] or 'by its engines: ' + group['why_not']}{at}"))
        rows.extend(
            ("", f"{each['name']} = {_value(each['value'])} ({each['origin']})")
            for each in group["values"]
        )
    if len(groups) > 1:
        told = "its workers prepare pictures differently: set models.NAME.media.processor, or give them the same files"
        rows.append(("warning", told))
    return rows


def _value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def loads(context: typer.Context) -> None:
    """Ask every ready worker how busy it is; one row a rank."""
    options = options_of(context)
    rows: list[dict[str, Any]] = options.client.ask("GET", "get_loads")["loads"]
    rows.sort(key=lambda row: (str(row.get("worker")), row.get("rank") or 0))
    if options.as_json:
        print_json(rows)
        return
    shown = [name for name in _LOADS if any(row.get(name) is not None for row in rows)]
    print_table(
        [_LOADS[name] for name in shown],
        ([row.get(name) for name in shown] for row in rows),
        empty="No worker is ready.",
    )
