"""Route reference: the operator's Markdown page of all routes, made from the route table.

`python -m smg_node.http.openapi.route_reference` prints it; `deploy/reference/http.md` is its
output.
"""

import sys
from collections.abc import Iterable
from typing import Final

from smg_node.http.route_table import METRICS_ROUTES, ROUTES, Route

_HEAD: Final = """\
# HTTP routes

Generated from `smg_node/http/route_table.py` by `make reference`; do not edit. `/openapi.json` of a running
node says the same to machines.

Permission: `public` is everyone. Role `user` has generate, history, models, tools.use and usage.own; `tenant_admin` has
keys.own and limits.own besides, for what is of its own tenant; `operator` has what `user` has, and `look`; `admin` has
all. Own roles are in `auth.roles`. As long as no admin key exists, the routes of a user's permissions are open, and the
others answer loopback only.

`PUT` and `DELETE` of a setting of the cluster need `If-Match` with the `version` that the writer has seen, as
its `GET` shows it (in the body and as `ETag`): `0` where the setting must not be set yet, `*` to write over whatever
is there. Without it the answer is 428; if another version is there, 409 with the setting as it is in `current`.
Versions are 64 bits, more than a JSON number holds everywhere, so they are texts.

`POST /v1/responses` takes an `Idempotency-Key`: 1 to 128 printable characters of ASCII, per tenant. The same request
under the same key gets what the first one was answered, with `idempotent-replayed: true`, for as long as
`retention.idempotency_s` says; 409 `idempotency_in_progress` while that is being made, 409 `idempotency_conflict`
for another request. What failed or was given up gives its key back. With `store: false` nothing is kept, so
the key is named in `x-smg-ignored-params`; without the store it is 503, because nothing can be promised.

## Main port

"""
_TABLE_HEAD: Final = "| Method | Path | Query | Permission | Meaning |\n|---|---|---|---|---|\n"


def render_routes_reference() -> str:
    """Return the whole page, ending with a line feed."""
    metrics_head = "\n## Metrics port\n\n"
    return f"{_HEAD}{_table(ROUTES)}{metrics_head}{_table(METRICS_ROUTES)}"


def _table(routes: Iterable[Route]) -> str:
    return _TABLE_HEAD + "".join(map(_row, routes))


def _row(route: Route) -> str:
    query = " ".join(f"`{name}`" for name in route.query)
    path = route.path.replace("+}", "}")
    needed = route.permission if route.own is None else f"{route.permission}, {route.own}"
    return f"| {route.method} | `{path}` | {query} | {needed} | {route.summary} |\n"


if __name__ == "__main__":
    sys.stdout.write(render_routes_reference())
