"""Listings of models, in each vendor's form."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from smg_chaos.vendor.errors.vendor_error import Reason, VendorError
from smg_chaos.vendor.hostings.models import traits_of
from smg_chaos.vendor.hostings.operations import Style

_CREATED_S: Final = 1_760_000_000
_CREATED: Final = "2026-08-01T00:00:00Z"


def listed(style: Style, kind: str, models: Sequence[str]) -> dict[str, Any]:
    """Return the list."""
    rows = [_ROWS[style](model) for model in models]
    if style == "google":
        if kind == "vertex":
            names = [f"publishers/google/models/{model}" for model in models]
            return {"publisherModels": [{"name": name} for name in names]}
        return {"models": rows}
    if style == "anthropic":
        ends = {"first_id": models[0], "last_id": models[-1]} if models else {}
        return {"data": rows, "has_more": False, **ends}
    return {"object": "list", "data": rows}


def one(style: Style, models: Sequence[str], name: str) -> dict[str, Any]:
    """Return one model; VendorError if it is not there."""
    if name not in models:
        raise VendorError(Reason.NO_MODEL, f"The model '{name}' does not exist", path="model")
    return _ROWS[style](name)


def _openai(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": _CREATED_S, "owned_by": "vendor"}


def _anthropic(model: str) -> dict[str, Any]:
    return {"type": "model", "id": model, "display_name": model, "created_at": _CREATED}


def _google(model: str) -> dict[str, Any]:
    traits = traits_of(model)
    return {
        "name": f"models/{model}",
        "version": "001",
        "displayName": model,
        "inputTokenLimit": traits.context,
        "outputTokenLimit": traits.output_max,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "thinking": traits.thinks,
    }


_ROWS: Final[Mapping[Style, Callable[[str], dict[str, Any]]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "google": _google,
    "aws": _openai,
}
