"""Model routes: list and show the served models, in the shape that a client's own API has.

Three official clients ask at one path. Google's is known by the header of its key, and by `v1beta` and
`v1alpha` in the path; Anthropic's by the header with its version.
"""

from typing import Any

import msgspec

from smg_node.core.errors import invalid
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.error_replies import dialect_of_client
from smg_node.http.middleware.model_access import allow_model, visible
from smg_node.http.ports.node import Catalog, ModelView


class ModelRoutes:
    """Shows the catalogue of models."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def models(self, request: HttpRequest) -> Reply:
        """List every model, and every alias as an entry of its own."""
        dialect = dialect_of_client(request.headers)
        if dialect:
            return self._page(dialect, request)
        rows: list[dict[str, Any]] = []
        for model in visible(request, self._catalog.models()):
            rows.append(_row(model, model.id))
            rows.extend(_row(model, alias) for alias in model.aliases)
        return json_reply({"object": "list", "data": rows})

    async def model(self, request: HttpRequest) -> Reply:
        """Show one model by id or alias; an id may contain slashes."""
        dialect = dialect_of_client(request.headers)
        if dialect:
            return self._one(dialect, request)
        name = request.values["id"]
        served, model = self._named(request, name)
        row = _row(model, name)
        if model.sees:
            rules = await self._catalog.pictures(served.id)
            row["x_smg"]["pictures"] = [msgspec.to_builtins(each) for each in rules]
        return json_reply(row)

    async def google_models(self, request: HttpRequest) -> Reply:
        """List every model and alias as Google's API does."""
        return self._page("gemini", request)

    async def google_model(self, request: HttpRequest) -> Reply:
        """Show one model as Google's API does."""
        return self._one("gemini", request)

    def _page(self, dialect: str, request: HttpRequest) -> Reply:
        # Most nodes are asked by clients of one API only.
        from smg_node.http.routes.inference.model_shapes import SHAPES, entries_of

        _, page = SHAPES[dialect]
        return json_reply(page(entries_of(visible(request, self._catalog.models())), request.query))

    def _one(self, dialect: str, request: HttpRequest) -> Reply:
        from smg_node.http.routes.inference.model_shapes import SHAPES

        shown, _ = SHAPES[dialect]
        name = request.values["id"]
        return json_reply(shown(name, self._named(request, name)[1]))

    def _named(self, request: HttpRequest, name: str) -> tuple[ModelView, ModelView]:
        """Return the model of that name, and as much of it as the caller may know."""
        request.model = name
        allow_model(request)
        model = self._catalog.model(name)
        (shown,) = visible(request, (model,))
        return model, shown

    async def model_card(self, request: HttpRequest) -> Reply:
        """Show the model that `?model=` names, or the only one there is."""
        name = request.query.get("model", "")
        if name:
            return json_reply(_card(self._named(request, name)[1]))
        models = visible(request, self._catalog.models())
        if len(models) != 1:
            raise invalid(
                f"this node serves {len(models)} models; say which with ?model=",
                "model",
                "missing_required_parameter",
            )
        return json_reply(_card(models[0]))


def _row(model: ModelView, name: str) -> dict[str, Any]:
    own: dict[str, Any] = {
        "workers": model.workers,
        "workers_ready": model.workers_ready,
        "roles": dict(model.roles),
        "context": model.context,
        "modalities": ["text", "image"] if model.sees else ["text"],
        "aliases": list(model.aliases),
    }
    if model.parsers is not None:
        own["parsers"] = msgspec.to_builtins(model.parsers)
    if name != model.id:
        own["alias_of"] = model.id
    return {
        "id": name,
        "object": "model",
        "created": model.created_s,
        "owned_by": model.owned_by,
        "x_smg": own,
    }


def _card(model: ModelView) -> dict[str, Any]:
    return {
        "model_path": model.id,
        "served_model_names": [model.id, *model.aliases],
        "is_generation": True,
        "context": model.context,
        "workers": model.workers,
        "workers_ready": model.workers_ready,
    }
