"""On whose behalf a request asks the store."""

from smg_node.http.message.http_request import HttpRequest
from smg_node.http.ports.history import History
from smg_storage.records import NO_TENANT, Access

_VALUE_CHARACTERS_MAX = 1_024


def access_of(request: HttpRequest, history: History) -> Access:
    """Return whose history it is, how long an operation of the store may take, and what its hooks are told."""
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
