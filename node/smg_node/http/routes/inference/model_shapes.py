"""Models in the shapes of Google's and Anthropic's APIs: entries, and pages of a list.

Google's pages go on behind a token, Anthropic's before or behind a model. Both are found by name, so a page
is right whichever node makes it, as long as that model is served.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from smg_node.core.errors import invalid
from smg_node.core.json_cursor import quoted
from smg_node.http.ports.node import ModelView
from smg_node.http.query_bounds import ANTHROPIC_MODELS, GOOGLE_MODELS, MODELS_MAX

Entry = tuple[str, ModelView]
"""A name under which a model is served, and the model."""

_PREFIX: Final = "models/"
_METHODS: Final = ("generateContent", "streamGenerateContent", "countTokens")


def entries_of(models: Sequence[ModelView]) -> list[Entry]:
    """Return every model, and every alias as an entry of its own."""
    return [(name, model) for model in models for name in (model.id, *model.aliases)]


# ── Google ───────────────────────────────────────────────────────────────────


def google_model(name: str, model: ModelView) -> dict[str, Any]:
    """Return one model as Google's API shows it."""
    limits = {"inputTokenLimit": model.context, "outputTokenLimit": model.context}
    return {
        "name": f"{_PREFIX}{name}",
        "version": name,
        "displayName": name,
        **({} if model.context is None else limits),
        "supportedGenerationMethods": list(_METHODS),
    }


def google_page(entries: Sequence[Entry], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of a list that `pageSize` and `pageToken` ask for."""
    size = _size(query, "pageSize", GOOGLE_MODELS, low=0) or GOOGLE_MODELS
    begin = 0
    token = query.get("pageToken", "")
    if token:
        begin = _place(entries, _last_name(token), "pageToken") + 1
    page = entries[begin : begin + size]
    told: dict[str, Any] = {"models": [google_model(*entry) for entry in page]}
    if page and begin + size < len(entries):
        told["nextPageToken"] = base64.urlsafe_b64encode(page[-1][0].encode()).decode()
    return told


def _last_name(token: str) -> str:
    try:
        return base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError):
        raise invalid("pageToken: is not one that a list gave", "pageToken") from None


# ── Anthropic ────────────────────────────────────────────────────────────────


def anthropic_model(name: str, model: ModelView) -> dict[str, Any]:
    """Return one model as Anthropic's API shows it."""
    created = datetime.fromtimestamp(model.created_s, UTC)
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
        "deprecated_at": None,
        "retires_at": None,
        "line": None,
        "max_input_tokens": model.context,
        "max_tokens": model.context,
        "capabilities": None,
    }


def anthropic_page(entries: Sequence[Entry], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of a list that `limit`, and `after_id` or `before_id`, ask for.

    Behind a model is what comes after it; before one are those next to it, in the same order.
    """
    size = _size(query, "limit", ANTHROPIC_MODELS, low=1)
    after, before = query.get("after_id", ""), query.get("before_id", "")
    if after and before:
        raise invalid("before_id: cannot be combined with after_id", "before_id")
    if before:
        end = _place(entries, before, "before_id")
        begin = max(0, end - size)
        more = begin > 0
    else:
        begin = _place(entries, after, "after_id") + 1 if after else 0
        end = min(begin + size, len(entries))
        more = end < len(entries)
    page = entries[begin:end]
    return {
        "data": [anthropic_model(*entry) for entry in page],
        "has_more": more,
        "first_id": page[0][0] if page else None,
        "last_id": page[-1][0] if page else None,
    }


# ── Queries ──────────────────────────────────────────────────────────────────


def _size(query: Mapping[str, str], name: str, default: int, *, low: int) -> int:
    """Return the size of a page, at most `MODELS_MAX`."""
    text = query.get(name)
    if text is None:
        return default
    size = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else -1
    if size < low:
        raise invalid(f"{name}: must be an integer of at least {low}; got {quoted(text)}", name)
    return min(size, MODELS_MAX)


def _place(entries: Sequence[Entry], name: str, parameter: str) -> int:
    for place, (known, _) in enumerate(entries):
        if known == name:
            return place
    raise invalid(f"{parameter}: there is no model {quoted(name)} in this list", parameter)


SHAPES: Final[Mapping[str, tuple[Callable[..., dict[str, Any]], Callable[..., dict[str, Any]]]]] = {
    "gemini": (google_model, google_page),
    "messages": (anthropic_model, anthropic_page),
}
"""By dialect: how one model is shown, and a page of them."""
