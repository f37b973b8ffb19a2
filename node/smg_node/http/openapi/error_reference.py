"""Error reference: the Markdown page of all kinds of errors, for users.

`python -m smg_node.http.openapi.error_reference` prints it; `deploy/reference/errors.md` is its
output.
"""

import sys
from typing import Final

from smg_node.core.errors import DEFAULT_CODE, HTTP_STATUS, ErrorKind

_HEAD: Final = """\
# Errors

Generated from `smg_node/core/errors.py` by `make reference`; do not edit.

Every failure is one of these kinds. `code` is what an error says that knows no narrower reason; most know one. A status may
be narrower as well: another 4xx for `invalid_request`, 501 for `upstream_failed`. The message names what is wrong, and where it can
be said, `param` is the place in the request. `retry-after` comes with 429 and 503 where it is known when to try again.
An error in the middle of a stream comes as an event of that stream, because its status went out before.

| Status | Kind | `code` unless narrower | Means | What to do |
|---|---|---|---|---|
"""

# What happened, and what the one who sees it does next.
_TOLD: Final[dict[ErrorKind, tuple[str, str]]] = {
    ErrorKind.INVALID_REQUEST: (
        "the request is wrong, or asks for what nothing here can do",
        "mend the request; sent again as it is, it fails again",
    ),
    ErrorKind.UNAUTHENTICATED: (
        "there is no key, or none that is valid",
        "send a key as `Authorization: Bearer …`; `smg-admin keys list` shows which there are",
    ),
    ErrorKind.FORBIDDEN: (
        "the key is valid and may not do this, or the store refuses to keep it",
        "use a key with the permission that the table of routes names; the message says what was refused",
    ),
    ErrorKind.NOT_FOUND: (
        "no such model, response, conversation, worker or route",
        "look at `GET /v1/models`, or at the id; a tenant sees only its own",
    ),
    ErrorKind.CONFLICT: (
        "somebody else changed it meanwhile, or its state does not allow this",
        "read it anew, then decide",
    ),
    ErrorKind.TOO_LARGE: (
        "the request is larger than is taken",
        "send less, or raise the knob that the message names",
    ),
    ErrorKind.RATE_LIMITED: (
        "a limit or a quota is used up",
        "wait for `retry-after`; `x-smg-limit-reason` says why, `smg-admin limits show` what is left and where",
    ),
    ErrorKind.CLIENT_GONE: (
        "the client went away before its answer; it stands in metrics, nobody receives it",
        "nothing here; look at the time limits of clients and of balancers between",
    ),
    ErrorKind.INTERNAL: (
        "a mistake of ours, or an object in the store that is damaged",
        "look into the node's log for the request id",
    ),
    ErrorKind.UPSTREAM_FAILED: (
        "an engine failed, and nobody could take over exactly",
        "try again; `smg-admin explain REQUEST_ID` names the worker and the reason",
    ),
    ErrorKind.OVERLOADED: (
        "no worker is ready or free, or something that the request needs is away",
        "wait for `retry-after`; `/readiness` and `smg-admin workers list` say what is missing",
    ),
    ErrorKind.UPSTREAM_TIMEOUT: (
        "an engine took longer than it is given",
        "try again; `smg-admin explain REQUEST_ID` says where the time went",
    ),
}


def render_errors_reference() -> str:
    """Return the whole page, one row for each kind in the order of their statuses, ending with a
    line feed.
    """
    kinds = sorted(ErrorKind, key=lambda kind: HTTP_STATUS[kind])
    return _HEAD + "".join(map(_row, kinds))


def _row(kind: ErrorKind) -> str:
    means, remedy = _TOLD[kind]
    return (
        f"| {HTTP_STATUS[kind]} | `{kind.value}` | `{DEFAULT_CODE[kind]}` | {means} | {remedy} |\n"
    )


if __name__ == "__main__":
    sys.stdout.write(render_errors_reference())
