"""Worker commands, `smg-admin workers`: list, add, drain and remove engines of the cluster."""

import time
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from smg_node.admin.client import AdminClient, AdminError
from smg_node.admin.options import CommandGroup, Options, options_of
from smg_node.admin.views.output import print_json, print_table, tell
from smg_node.admin.views.value_text import read_file
from smg_node.admin.views.worker_tables import (
    CLUSTER_COLUMNS,
    WORKER_COLUMNS,
    cluster_row,
    print_worker,
    worker_row,
)
from smg_node.config.worker_url import identity_of

workers_app = typer.Typer(
    cls=CommandGroup,
    help="See, add, drain and remove the engines behind a node.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

# A worker that has requests may take this long to let go of them; the node's own limit is 180 s.
_REMOVE_S: Final = 200.0
_POLL_S: Final = 0.25

Priority = Annotated[
    int | None, typer.Option(metavar="N", help="Higher is preferred; 50 unless it is said.")
]
BootstrapPort = Annotated[
    int | None,
    typer.Option(
        min=1, max=65_535, metavar="PORT", help="Where it meets those that share its requests."
    ),
]
Cost = Annotated[float | None, typer.Option(metavar="N", help="Relative; 1 unless it is said.")]
KeyFile = Annotated[
    str,
    typer.Option(
        metavar="FILE", help="Holds the key its engine wants in its first line; - is the input."
    ),
]
Contract = Annotated[
    str,
    typer.Option(metavar="NAME", help="sglang, vllm, trtllm, mlx; the engine is asked otherwise."),
]
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
        str, typer.Option(metavar="ROLE", help="Only those regular, prefill, decode or encode.")
    ] = "",
    cluster: Annotated[
        bool, typer.Option("--cluster", help="What each node says of them, and who looks.")
    ] = False,
) -> None:
    """List the workers, sorted by id. They are the same on every node; their status may differ.

    With --cluster: who registered and who looks at each, on which nodes it is up, and the open requests
    of this node and of all others.
    """
    options = options_of(context)
    if cluster:
        _list_cluster(options, model=model, status=status, role=role)
        return
    wanted = {"model": model, "status": status, "role": role}
    rows = _workers(options.client, {key: value for key, value in wanted.items() if value})
    if options.as_json:
        print_json(rows)
        return
    print_table(WORKER_COLUMNS, map(worker_row, rows), empty="There are no workers.")


def _list_cluster(options: Options, *, model: str, status: str, role: str) -> None:
    rows = [
        row
        for row in options.client.ask("GET", "v1", "cluster", "workers")["workers"]
        if model in ("", row["model"])
        and status in ("", row["status"])
        and role in ("", row["role"])
    ]
    if options.as_json:
        print_json(rows)
        return
    print_table(CLUSTER_COLUMNS, map(cluster_row, rows), empty="There are no workers.")


@workers_app.command("show")
def show_worker(context: typer.Context, worker: Worker) -> None:
    """Show one worker with everything its engine says about itself, and what each node says of it."""
    options = options_of(context)
    view = options.client.ask("GET", "workers", _id(options.client, worker))
    # A node of an older release has no such view.
    query = {"id": str(view["id"])}
    everywhere = options.client.look("GET", "v1", "cluster", "workers", query=query).body or {}
    print_worker(options, view, next(iter(everywhere.get("workers", [])), None))


@workers_app.command("add")
def add_worker(
    context: typer.Context,
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="grpc://host:port[?role=…&model=…], http://host:port or host:port",
            show_default=False,
        ),
    ],
    model: Annotated[
        str, typer.Option(metavar="NAME", help="The model's name; the engine is asked otherwise.")
    ] = "",
    role: Annotated[
        str, typer.Option(metavar="ROLE", help="regular, prefill, decode or encode.")
    ] = "",
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A label; repeatable.")
    ] = None,
    contract: Contract = "",
    priority: Priority = None,
    cost: Cost = None,
    bootstrap_port: BootstrapPort = None,
    api_key_file: KeyFile = "",
    wait: Annotated[bool, typer.Option("--wait", help="Return only when it is ready.")] = False,
    wait_s: Annotated[
        float,
        typer.Option(
            min=0.1, max=86_400, metavar="SECONDS", help="With --wait: at most this long."
        ),
    ] = 120.0,
) -> None:
    """Add a worker to the whole cluster, and with --wait see it ready here.

    \b
    smg-admin workers add grpc://10.0.0.7:30100 --wait
    smg-admin workers add grpc://10.0.0.7:30100 --label rack=r2 --api-key-file key.txt
    smg-admin workers add grpc://10.0.0.8:30100 --role prefill --bootstrap-port 8998
    """
    options = options_of(context)
    body: dict[str, Any] = {"url": url, "labels": _labels(label or [])}
    body |= _said(model, role, contract, priority, cost, bootstrap_port, api_key_file)
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


@workers_app.command("patch")
def patch_worker(
    context: typer.Context,
    worker: Worker,
    model: Annotated[str, typer.Option(metavar="NAME", help="The model's name.")] = "",
    role: Annotated[
        str, typer.Option(metavar="ROLE", help="regular, prefill, decode or encode.")
    ] = "",
    contract: Contract = "",
    priority: Priority = None,
    cost: Cost = None,
    bootstrap_port: BootstrapPort = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="All its labels from now on; repeatable."),
    ] = None,
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Take all labels away.")] = False,
    api_key_file: KeyFile = "",
    no_api_key: Annotated[bool, typer.Option("--no-api-key", help="It wants none.")] = False,
) -> None:
    """Change what the cluster knows of a worker, on every node.

    \b
    smg-admin workers patch w-7f3a91c0d2e4 --priority 80
    smg-admin workers patch grpc://10.0.0.7:30100 --label rack=r3 --label tier=gold
    """
    options = options_of(context)
    body = _said(model, role, contract, priority, cost, bootstrap_port, api_key_file)
    body |= {"labels": _labels(label or [])} if label or no_labels else {}
    body |= {"api_key": ""} if no_api_key else {}
    if not body:
        raise typer.BadParameter("say what to change, such as --priority 80")
    worker_id = _id(options.client, worker)
    view = options.client.ask("PATCH", "workers", worker_id, body=body)
    if options.as_json:
        print_json(view)
    else:
        print(f"{worker_id} is changed on every node: {', '.join(sorted(body))}")


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
    named = identity_of(worker)
    for row in _workers(client):
        if named and identity_of(str(row["url"])) == named:
            return str(row["id"])
    raise AdminError(f"no worker has the URL {worker}")


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


def _said(
    model: str,
    role: str,
    contract: str,
    priority: int | None,
    cost: float | None,
    bootstrap_port: int | None,
    api_key_file: str,
) -> dict[str, Any]:
    """What was said of a worker, as the body of a request."""
    body: dict[str, Any] = {}
    for name, value in (("model", model), ("role", role), ("contract", contract)):
        body |= {name: value} if value else {}
    body |= {"priority": priority} if priority is not None else {}
    body |= {"cost": cost} if cost is not None else {}
    body |= {"bootstrap_port": bootstrap_port} if bootstrap_port is not None else {}
    if api_key_file:
        lines = read_file(api_key_file).splitlines()
        if not lines or not lines[0].strip():
            raise AdminError(f"{api_key_file} holds no key in its first line")
        body["api_key"] = lines[0].strip()
    return body


def _labels(pairs: list[str]) -> dict[str, str]:
    labels = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="--label")
        labels[key] = value
    return labels
