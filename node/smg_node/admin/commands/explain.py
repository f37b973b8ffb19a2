"""Explain command, `smg-admin explain`: why a request was placed where it was, and what became of
it.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from smg_node.admin.options import options_of
from smg_node.admin.views.output import print_json
from smg_node.admin.views.watch_loop import Watch, watched


def explain(
    context: typer.Context,
    request_id: Annotated[
        str,
        typer.Argument(
            metavar="REQUEST_ID",
            help="The x-request-id of its answer, or the id in its body; resp_… is found too.",
            show_default=False,
        ),
    ],
    node: Annotated[
        str,
        typer.Option(
            metavar="NODE",
            help="Ask only this one; the answer's x-smg-node names it. All otherwise.",
        ),
    ] = "",
    watch: Watch = False,
) -> None:
    """Tell a request's way through the cluster: candidates, costs, attempts, continuations, timing.

    Any node can be asked for what any node served. Each keeps its latest 10,000 requests, and its latest 1,000
    refused ones with the reason. What it knows goes with it; no text of a prompt or of an answer is kept.

    \b
    smg-admin explain req_019863000000a1b2000000000000c3d4
    smg-admin explain chatcmpl-019863000000a1b3000000000000e5f6 --json
    smg-admin explain resp_0198630000001d6a7f30c2b4e6d8f0a1b2c3d4e5f60718
    """
    from smg_node.admin.views.journey_view import draw_explained

    options = options_of(context)
    query = {"node": node} if node else None

    def ask() -> Mapping[str, Any]:
        told: Mapping[str, Any] = options.client.ask(
            "GET", "v1", "cluster", "explain", request_id, query=query
        )
        return told

    def draw() -> str:
        return json.dumps(ask()) if options.as_json else draw_explained(ask())

    if watch:
        watched(draw)
    elif options.as_json:
        print_json(ask())
    else:
        print(draw())
