"""History access: tenant, time limit and hook context with which a request uses the store."""

from smg_node.http.message.http_request import HttpRequest
from smg_node.http.ports.history import History
from smg_storage.records import NO_TENANT, Access

_VALUE_CHARACTERS_MAX = 1_024


def access_of(request: HttpRequest, history: History) -> Access:
    """Return the access of a request: its tenant, the store's time limit, and the headers for
    hooks.
    """
    identity, headers = request.identity, request.headers
    return Access(
        tenant=identity.tenant or NO_TENANT,
        timeout_s=history.store_timeout_s,
        principal=identity.key_id,
        request_id=request.request_id,
        headers={
            name: headers[name][:_VALUE_CHARACTERS_MAX]
            for name in history.context_headers
            if name in headers
        },
    )
