"""Discovery routes: sources of workers, who watches them, what they come to, and the cluster's definitions of them."""

import asyncio
from typing import Final

from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import expected_version
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.discovery import DefinedSource, DiscoveryService, SourceChange

DEFINED: Final = "discovery.set"
REMOVED: Final = "discovery.remove"


class DiscoveryRoutes:
    """Serves what is known of sources, on whichever node it is asked, and defines them."""

    def __init__(self, parts: HttpParts, sources: DiscoveryService, bodies: BodyReader) -> None:
        self._sources = sources
        self._audit = parts.audit
        self._bodies = bodies

    async def discovery(self, request: HttpRequest) -> Reply:
        """Show all sources with the words of all nodes."""
        return json_reply(self._sources.view())

    async def define(self, request: HttpRequest) -> Reply:
        """Define a source on every node, if the version is the one that `If-Match` names."""
        kind, name = request.values["kind"], request.values["name"]
        version = expected_version(request)
        body = await self._bodies.large.decoded(await self._bodies.json(request))
        # Its checks come with a library that is slow to load.
        checked = await asyncio.to_thread(self._sources.check, kind, name, body)
        done = self._sources.define(kind, name, checked, version=version)
        assert done.after is not None, "it was written"
        self._record(request, DEFINED, done)
        return json_reply(done.after)

    async def remove(self, request: HttpRequest) -> Reply:
        """Take the cluster's definition of a source away, if the version is the one that `If-Match` names."""
        kind, name = request.values["kind"], request.values["name"]
        done = self._sources.remove(kind, name, version=expected_version(request))
        self._record(request, REMOVED, done)
        own = self._sources.is_own(kind, name)
        return json_reply({"status": "removed", "kind": kind, "name": name, "own": own})

    def _record(self, request: HttpRequest, action: str, done: SourceChange) -> None:
        one = done.after or done.before
        assert one is not None, "it was there before or is now"
        before, after = _plain(done.before), _plain(done.after)
        subject = f"{one.kind}/{one.name}"
        self._audit.record(caller_of(request), action, subject, before=before, after=after)


def _plain(one: DefinedSource | None) -> object:
    return None if one is None else one.spec
