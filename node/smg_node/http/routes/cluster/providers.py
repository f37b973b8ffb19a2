"""Provider routes: show, define and remove accounts at vendors, routes over their models, prices; explain requests."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from smg_node.core.errors import SmgError, invalid
from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.gemini.methods import STREAM
from smg_node.dialects.options import ReaderOptions
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import (
    expected_version,
    query_switch,
    read_fields,
    text_field,
)
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.providers import PriceView, ProviderService, ProviderView, RouteView

PROVIDER_SET: Final = "provider.set"
PROVIDER_REMOVED: Final = "provider.remove"
ROUTE_SET: Final = "route.set"
ROUTE_REMOVED: Final = "route.remove"
PRICE_SET: Final = "price.set"
PRICE_REMOVED: Final = "price.remove"
APIS: Final = ("chat", "messages", "responses", "generate_content")
"""APIs whose bodies are explained."""
_View: TypeAlias = ProviderView | RouteView | PriceView
_MODEL_MAX: Final = 256
_CLAUDES: Final = frozenset({"system", "stop_sequences", "thinking", "anthropic_version"})
"""Fields that only bodies of the Messages API have, of those that also have `messages`."""


class ProviderRoutes:
    """Serves providers, routes and prices."""

    def __init__(self, parts: HttpParts, providers: ProviderService, bodies: BodyReader) -> None:
        self._parts = parts
        self._node = parts.identity.node
        self._providers = providers
        self._audit = parts.audit
        self._bodies = bodies

    # ── Providers ────────────────────────────────────────────────────────────

    async def providers(self, request: HttpRequest) -> Reply:
        """List the providers that count here, and what of the cluster's cannot be followed."""
        return json_reply(
            {
                "node": self._node,
                "providers": self._providers.providers(),
                "unreadable": self._providers.unreadable(),
            }
        )

    async def provider(self, request: HttpRequest) -> Reply:
        """Show one provider, never its secrets."""
        return _tagged(self._providers.provider(request.values["name"]))

    async def put_provider(self, request: HttpRequest) -> Reply:
        """Define it on every node, if the version is the one that `If-Match` names."""
        name, version = request.values["name"], expected_version(request)
        body = await self._body(request)
        done = self._providers.put_provider(name, body, version=version)
        self._record(request, PROVIDER_SET, name, done.before, done.now)
        assert done.now is not None, "it was written"
        return _tagged(done.now)

    async def remove_provider(self, request: HttpRequest) -> Reply:
        """Take it away on every node, if the version is the one that `If-Match` names."""
        name, version = request.values["name"], expected_version(request)
        force = query_switch(request, "force")
        done = self._providers.remove_provider(name, version=version, force=force)
        self._record(request, PROVIDER_REMOVED, name, done.before, done.now)
        return json_reply({"status": "removed", "name": name, "now": done.now})

    # ── Routes ───────────────────────────────────────────────────────────────

    async def routes(self, request: HttpRequest) -> Reply:
        """List the routes that count here."""
        return json_reply({"node": self._node, "routes": self._providers.routes()})

    async def route(self, request: HttpRequest) -> Reply:
        """Show one route and its targets."""
        return _tagged(self._providers.route(request.values["name"]))

    async def put_route(self, request: HttpRequest) -> Reply:
        """Define it on every node, if the version is the one that `If-Match` names."""
        name, version = request.values["name"], expected_version(request)
        body = await self._body(request)
        done = self._providers.put_route(name, body, version=version)
        self._record(request, ROUTE_SET, name, done.before, done.now)
        assert done.now is not None, "it was written"
        return _tagged(done.now)

    async def remove_route(self, request: HttpRequest) -> Reply:
        """Take it away on every node, if the version is the one that `If-Match` names."""
        name, version = request.values["name"], expected_version(request)
        done = self._providers.remove_route(name, version=version)
        self._record(request, ROUTE_REMOVED, name, done.before, done.now)
        return json_reply({"status": "removed", "name": name, "now": done.now})

    # ── Prices ───────────────────────────────────────────────────────────────

    async def prices(self, request: HttpRequest) -> Reply:
        """List the prices that count here."""
        return json_reply({"node": self._node, "prices": self._providers.prices()})

    async def price(self, request: HttpRequest) -> Reply:
        """Show one price."""
        return _tagged(self._providers.price(request.values["name"]))

    async def put_price(self, request: HttpRequest) -> Reply:
        """Say it on every node, if the version is the one that `If-Match` names."""
        name, version = request.values["name"], expected_version(request)
        body = await self._body(request)
        done = self._providers.put_price(name, body, version=version)
        self._record(request, PRICE_SET, name, done.before, done.now)
        assert done.now is not None, "it was written"
        return _tagged(done.now)

    async def remove_price(self, request: HttpRequest) -> Reply:
        """Take it away on every node, if the version is the one that `If-Match` names."""
        name, version = request.values["name"], expected_version(request)
        done = self._providers.remove_price(name, version=version)
        self._record(request, PRICE_REMOVED, name, done.before, done.now)
        return json_reply({"status": "removed", "name": name, "now": done.now})

    async def shadows(self, request: HttpRequest) -> Reply:
        """Show what became of the copies that this process made of a route's requests."""
        name = request.values["name"]
        told = self._providers.shadows(name)
        return json_reply({"node": self._node, "name": name, **msgspec.structs.asdict(told)})

    # ── What becomes of a request ────────────────────────────────────────────

    async def explain(self, request: HttpRequest) -> Reply:
        """Tell how each target of a model is asked, and what it would ignore or refuse of a body."""
        said = await read_fields(self._bodies, request, ("model", "api", "body"))
        model = text_field(said, "model", _MODEL_MAX)
        if model is None:
            raise invalid("say the model, as clients name it", "model")
        body = said.get("body")
        api = text_field(said, "api", _MODEL_MAX) or ("" if body is None else api_of(body))
        if api not in ("", *APIS):
            raise invalid(f"api must be one of {', '.join(APIS)}", "api")
        wish = None if body is None else self._wish(model, api, body)
        targets = self._providers.explain(model, api if wish is not None else "", wish)
        return json_reply({"node": self._node, "model": model, "api": api, "targets": targets})

    def _wish(self, model: str, api: str, body: object) -> GenerateRequest:
        """Return the request in a body; INVALID_REQUEST with its path below `body`."""
        if not isinstance(body, dict):
            raise invalid("body must be an object: a request as clients send it", "body")
        try:
            if api == "responses":
                return _response_wish({**body, "model": model}, self._parts.reading)
            if api == "generate_content":
                return self._parts.dialects["gemini"].read(body, _GoogleCaller(model)).request
            return self._parts.dialects[api].read({**body, "model": model}).request
        except SmgError as error:
            where = f"body.{error.where}" if error.where else "body"
            raise SmgError(error.kind, error.message, where=where, code=error.code) from error

    async def _body(self, request: HttpRequest) -> Mapping[str, Any]:
        return await self._bodies.large.decoded(await self._bodies.json(request))

    def _record(
        self,
        request: HttpRequest,
        action: str,
        name: str,
        before: _View | None,
        after: _View | None,
    ) -> None:
        self._audit.record(
            caller_of(request), action, name, before=_plain(before), after=_plain(after)
        )


class _GoogleCaller:
    """Caller of a body of Google's API, whose model is in its path."""

    request_id = tenant = ""
    headers: Mapping[str, str] = {}
    query: Mapping[str, str] = {}

    def __init__(self, model: str) -> None:
        self.values: Mapping[str, str] = {"id": f"{model}:{STREAM}"}


def api_of(body: object) -> str:
    """Return the API whose body this looks like; Chat in doubt."""
    if not isinstance(body, dict):
        return APIS[0]
    if "contents" in body:
        return "generate_content"
    if "input" in body:
        return "responses"
    tools = body.get("tools")
    schemas = isinstance(tools, list) and any(
        isinstance(tool, dict) and "input_schema" in tool for tool in tools
    )
    return "messages" if schemas or not _CLAUDES.isdisjoint(body) else APIS[0]


def _response_wish(body: dict[str, Any], options: ReaderOptions) -> GenerateRequest:
    # Imported here: a node that remembers nothing has none of it.
    from smg_node.dialects.responses.request.generate_request import generate_request
    from smg_node.dialects.responses.request.reader import ResponsesReader

    ask = ResponsesReader(options).read(body)
    return generate_request(ask, ask.items)


def _plain(view: _View | None) -> object:
    """Return what a view says of the definition, for the audit log: references and no values."""
    if view is None:
        return None
    if isinstance(view, PriceView):
        return {"price": view.price, "source": view.source}
    if isinstance(view, RouteView):
        return {"spec": view.spec, "source": view.source}
    keys = [key.reference for key in view.keys]
    return {"spec": view.spec, "keys": keys, "secrets": view.secrets, "source": view.source}


def _tagged(view: _View) -> Reply:
    reply = json_reply(view)
    reply.headers["etag"] = f'"{view.version}"'
    return reply
