"""Discovery routes: sources of workers, who watches them, and what they come to."""

from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.ports.discovery import DiscoveryViews


class DiscoveryRoutes:
    """Serves what is known of sources, on whichever node it is asked."""

    def __init__(self, views: DiscoveryViews) -> None:
        self._views = views

    async def discovery(self, request: HttpRequest) -> Reply:
        """Show all sources with the words of all nodes."""
        return json_reply(self._views.view())
