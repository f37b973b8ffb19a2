"""`smg-admin workers`: see, add, drain and remove the engines behind a node."""

import time
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from smg_node.admin.client import AdminClient, AdminError
from smg_node.admin.options import Options, options_of
from smg_node.admin.screen import print_facts, print_json, print_table, tell

workers_app = typer.Typer(
    help="See, add, drain and remove the engines behind a node.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

# A worker that has requests may take this long to let go of them; the node's own limit is 180 s.
_REMOVE_S: Final = 200.0
_POLL_S: Final = 0.25
_COLUMNS: Final = ("ID", "URL", "MODEL", "CONTRACT", "ROLE", "STATUS", "IN FLIGHT", "REASON")

Worker = Annotated[
    str, typer.Argument(metavar="WORKER", help="Its id, or its URL.", show_default=False)
]


@workers_app.command("list")
def list_workers(
    context: typer.Context,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="Only those that serve this model.")
    ] = "",
    status: Annotated[
        str,
        typer.Option(
            metavar="STATUS", help="Only those pending, ready, not_ready, failed or draining."
        ),
    ] = "",
    role: Annotated[
        str, typer.Option(metavar="ROLE", help="Only those regular, prefill or decode.")
    ] = "",
) -> None:
    """List the workers, sorted by id."""
    options = options_of(context)
    wanted = {"model": model, "status": status, "role": role}
    rows = _workers(options.client, {key: value for key, value in wanted.items() if value})
    if options.as_json:
        print_json(rows)
        return
    print_table(_COLUMNS, map(_row, rows), empty="There are no workers.")


@workers_app.command("show")
def show_worker(context: typer.Context, worker: Worker) -> None:
    """Show one worker with everything its engine says about itself."""
    options = options_of(context)
    _print_worker(options, options.client.ask("GET", "workers", _id(options.client, worker)))


@workers_app.command("add")
def add_worker(
    context: typer.Context,
    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="grpc://host:port[?role=…&model=…]", show_default=False),
    ],
    model: Annotated[
        str, typer.Option(metavar="NAME", help="The model's name; the engine is asked otherwise.")
    ] = "",
    role: Annotated[str, typer.Option(metavar="ROLE", help="regular, prefill or decode.")] = "",
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A label; repeatable.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return only when it is ready.")] = False,
    wait_s: Annotated[
        float,
        typer.Option(
            min=0.1, max=86_400, metavar="SECONDS", help="With --wait: at most this long."
        ),
    ] = 120.0,
) -> None:
    """Add a worker, and with --wait see it ready."""
    options = options_of(context)
    body: dict[str, Any] = {"url": url, "labels": _labels(label or [])}
    body |= {"model": model} if model else {}
    body |= {"role": role} if role else {}
    accepted = options.client.ask("POST", "workers", body=body)
    worker_id = str(accepted["worker_id"])
    if wait:
        view = _await_ready(options, worker_id, wait_s)
        if options.as_json:
            print_json(view)
        else:
            print(f"{worker_id} is ready and serves {view.get('model') or 'its model'}")
    elif options.as_json:
        print_json(accepted)
    else:
        print(f"{worker_id} is accepted; it gets requests once it is ready")


@workers_app.command("drain")
def drain_worker(context: typer.Context, worker: Worker) -> None:
    """Send a worker no new requests; those it has may finish."""
    _change(context, worker, "drain", "gets no new requests")


@workers_app.command("undrain")
def undrain_worker(context: typer.Context, worker: Worker) -> None:
    """Send a drained worker requests again."""
    _change(context, worker, "undrain", "may get requests again")


@workers_app.command("probe")
def probe_worker(context: typer.Context, worker: Worker) -> None:
    """Look at a worker now, and say what was seen."""
    _change(context, worker, "probe", "was probed")


@workers_app.command("remove")
def remove_worker(
    context: typer.Context,
    worker: Worker,
    force: Annotated[
        bool, typer.Option("--force", help="At once, instead of when its requests have ended.")
    ] = False,
) -> None:
    """Drain a worker, and forget it when its requests have ended (at most 180 s)."""
    options = options_of(context)
    worker_id = _id(options.client, worker)
    patience_s = options.client.timeout_s if force else max(options.client.timeout_s, _REMOVE_S)
    query = {"force": "true"} if force else None
    answer = options.client.ask("DELETE", "workers", worker_id, query=query, timeout_s=patience_s)
    if options.as_json:
        print_json(answer)
    else:
        print(f"{worker_id} is removed")


def _change(context: typer.Context, worker: str, verb: str, said: str) -> None:
    options = options_of(context)
    worker_id = _id(options.client, worker)
    view = options.client.ask("POST", "workers", worker_id, verb)
    if options.as_json:
        print_json(view)
        return
    reason = f" ({view['reason']})" if view.get("reason") else ""
    print(f"{worker_id} {said}; it is {view['status']}{reason}, {view['inflight']} in flight")


def _workers(client: AdminClient, query: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = client.ask("GET", "workers", query=query)["workers"]
    return sorted(rows, key=lambda row: str(row["id"]))


def _id(client: AdminClient, worker: str) -> str:
    """The id of a worker that is named by id or by URL."""
    if "://" not in worker:
        return worker
    endpoint = worker.partition("?")[0].rstrip("/")
    for row in _workers(client):
        if str(row["url"]).partition("?")[0] == endpoint:
            return str(row["id"])
    raise AdminError(f"no worker has the URL {endpoint}")


def _await_ready(options: Options, worker_id: str, wait_s: float) -> dict[str, Any]:
    """Return the worker once it is ready; AdminError when it failed or time is up. Says what it waits for."""
    until_s = time.monotonic() + wait_s
    seen = ""
    while True:
        view: dict[str, Any] = options.client.ask("GET", "workers", worker_id)
        state = f"{view['status']}{': ' + view['reason'] if view.get('reason') else ''}"
        if view["status"] == "ready":
            return view
        if view["status"] in ("failed", "draining"):
            raise AdminError(f"{worker_id} is {state}")
        if state != seen:
            tell(f"{worker_id} is {state}")
            seen = state
        if time.monotonic() >= until_s:
            raise AdminError(f"{worker_id} is not ready after {wait_s:g} s; it is {state}")
        time.sleep(_POLL_S)


def _labels(pairs: list[str]) -> dict[str, str]:
    labels = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="--label")
        labels[key] = value
    return labels


def _row(row: Mapping[str, Any]) -> tuple[object, ...]:
    reason = row["reason"] if row["status"] != "ready" else ""
    fields = ("id", "url", "model", "contract", "role", "status", "inflight")
    return (*(row[name] for name in fields), reason)


def _print_worker(options: Options, view: Mapping[str, Any]) -> None:
    if options.as_json:
        print_json(view)
        return
    details: Mapping[str, Any] = view.get("details") or {}
    engine: Mapping[str, Any] = details.get("server") or {}
    print_facts((name, value) for name, value in view.items() if name != "details")
    print_facts((name, value) for name, value in details.items() if name != "server")
    if engine:
        print("\nWhat the engine says:")
        print_facts(sorted(engine.items()))
