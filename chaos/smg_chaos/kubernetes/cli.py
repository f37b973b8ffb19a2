"""CLI of `smg-chaos kube-api`: an API server of Kubernetes for discovery, with faults on purpose and without nodes."""

import sys
from typing import Annotated, Final

import typer

_ROUTES: Final = (
    "Pods and endpoint slices lie where Kubernetes has them: create, patch (merge patches), delete, list, watch, and"
    " `pods/NAME/status` for what a kubelet would say. GET /_kube/audit says what was asked and how many watches were"
    " open at once; PUT /_kube/faults takes a JSON object of faults; POST /_kube/compact forgets all history, POST"
    " /_kube/cut breaks all watches."
)
_FAULTS: Final = (
    'Faults: {"stopped": true} takes connections and says nothing; "store_stopped": lists wait; "silent": watches say'
    ' nothing; "denied": ["list"]; "failing": {"watch": 503} with "retry_after_s"; "tokens": ["known"]; "bookmark_s".'
)

app: Final = typer.Typer(add_completion=False)


@app.command(name="kube-api", epilog="\n\n".join((_ROUTES, _FAULTS)))
def kube_api(
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: the system chooses.")] = 0,
    token: Annotated[
        list[str] | None, typer.Option(help="A bearer token that is known; none: all are.")
    ] = None,
    bookmark_s: Annotated[
        float, typer.Option(min=0.1, help="How often watches say that they live.")
    ] = 60.0,
) -> None:
    """Serve the part of Kubernetes that workers are found by.

    Prints `listening on HOST:PORT url=…` once it listens, and exits 0 on SIGTERM.
    """
    from smg_chaos.kubernetes.faults import Faults
    from smg_chaos.kubernetes.host import serve

    try:
        serve(host, port, Faults(tokens=token or [], bookmark_s=bookmark_s))
    except OSError as error:
        print(f"smg-chaos kube-api: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
