"""Protected resource: tells clients which issuers' tokens are good here, where those look first (RFC 9728)."""

import re
from typing import Final
from urllib.parse import quote

from smg_node.core.errors import invalid
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.route_table import nothing_at

_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(:\d{1,5})?", re.ASCII)


def protected_resource(parts: HttpParts, request: HttpRequest) -> Reply:
    """Return issuers and how tokens are sent; NOT_FOUND `unknown_url` while there is no issuer.

    `resource` is the URL that was asked about, as the client wrote it: it compares the two (RFC 9728 3.3).
    """
    issuers = parts.issuers()
    if not issuers:
        raise nothing_at(request.method, request.path)
    host = request.headers.get("host", "")
    if not _HOST.fullmatch(host):
        raise invalid("the request names no host that it is for", "host", "invalid_host")
    path = request.values.get("path", "")
    below = f"/{quote(path, safe='/')}" if path else ""
    return json_reply(
        {
            "resource": f"{_scheme(request)}://{host}{below}",
            "authorization_servers": list(issuers),
            "bearer_methods_supported": ["header"],
        }
    )


def _scheme(request: HttpRequest) -> str:
    """Return the scheme that the client came by: what a believed proxy says, else that of the connection."""
    secure = getattr(request.line, "secure", None)
    if secure is None:
        transport = request.line.transport
        secure = transport is not None and transport.get_extra_info("sslcontext") is not None
    return "https" if secure else "http"
