"""About routes: version, OpenAPI document, configuration and metrics of this node."""

from collections.abc import Sequence
from importlib import import_module

from smg_node.http.http_parts import HttpParts
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.route_table import Route


class AboutRoutes:
    """Serves the node's own description."""

    def __init__(self, parts: HttpParts, routes: Sequence[Route]) -> None:
        self._parts = parts
        self._routes = routes
        self._document: Reply | None = None

    async def version(self, request: HttpRequest) -> Reply:
        """Show name, version, commit, and which wire versions of the mesh are spoken, if any."""
        identity = self._parts.identity
        spoken = self._parts.cluster.card().wire_version
        return json_reply(
            {
                "name": "smg-node",
                "version": identity.version,
                "commit": identity.commit,
                "wire": {"mesh": {"min": spoken, "max": spoken}} if spoken else None,
            }
        )

    async def openapi(self, request: HttpRequest) -> Reply:
        """Show the OpenAPI document of the route table."""
        if self._document is None:
            # A megabyte of shapes that nobody has asked for on most nodes.
            openapi = import_module("smg_node.http.openapi.document")
            version = self._parts.identity.version
            self._document = json_reply(openapi.document(self._routes, version=version))
        return self._document

    async def server_card(self, request: HttpRequest) -> Reply:
        """Show the configuration, from which the wiring has removed secrets."""
        identity = self._parts.identity
        return json_reply(
            {
                "node": identity.node,
                "version": identity.version,
                "settings": dict(self._parts.settings()),
            }
        )

    async def metrics(self, request: HttpRequest) -> Reply:
        """Show the metrics in the format the scraper prefers."""
        accept = request.headers.get("accept", "")
        if self._parts.scrape is None:
            page, content_type = self._parts.meters.exposition(accept)
        else:
            page, content_type = await self._parts.scrape(accept)
        return Reply(200, page, content_type)

    async def protected_resource(self, request: HttpRequest) -> Reply:
        """Show which issuers' tokens are good here; NOT_FOUND `unknown_url` while there is no issuer."""
        # Not loaded by a node without one.
        from smg_node.http.routes.node.protected_resource import protected_resource

        return protected_resource(self._parts, request)

    async def root(self, request: HttpRequest) -> Reply:
        """Answer an empty 200: some clients check the root first and give up on an error."""
        return Reply(200)
