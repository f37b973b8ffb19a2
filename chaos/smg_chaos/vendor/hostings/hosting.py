"""Hosting: one place that serves an API, as a row of a table: paths, credentials, envelopes, and how limits are told."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote

from smg_chaos.vendor.errors.envelopes import Family
from smg_chaos.vendor.hostings.operations import (
    Operation,
    Path,
    Style,
    google_paths,
    messages_paths,
    openai_paths,
    path,
)

Scheme = Literal["bearer", "x-api-key", "api-key", "x-goog-api-key", "sigv4"]
LimitStyle = Literal["openai", "azure", "anthropic", "together", "huggingface", "none"]


class Route(NamedTuple):
    """What a path asks for, in whose style, and the names in it, decoded."""

    operation: Operation
    style: Style
    names: dict[str, str]


class Hosting(NamedTuple):
    """One row. `family` is the envelope of errors; `gate` that of errors about credentials, rates and paths; `service`
    what signatures are made for; `needs` are headers that must be there.
    """

    base: str
    paths: tuple[Path, ...]
    schemes: tuple[Scheme, ...]
    family: Family
    limits: LimitStyle = "none"
    gate: Family | None = None
    service: str = ""
    needs: tuple[str, ...] = ()
    models: str = ""
    quirks: frozenset[str] = frozenset()

    def route(self, method: str, raw_path: str) -> Route | None:
        """Return what a path asks for, or None."""
        for one in self.paths:
            if one.method == method and (found := one.pattern.fullmatch(raw_path)):
                names = {name: unquote(value) for name, value in found.groupdict().items()}
                return Route(one.operation, one.style, names)
        return None


_BEDROCK: Final = tuple(
    path("POST", f"/model/{{M}}/{name}", operation, "aws")
    for name, operation in (
        ("converse", Operation.CONVERSE),
        ("converse-stream", Operation.CONVERSE_STREAM),
        ("count-tokens", Operation.COUNT_CONVERSE),
    )
)
_INVOKE: Final = (
    path("POST", "/model/{M}/invoke", Operation.INVOKE, "aws"),
    path("POST", "/model/{M}/invoke-with-response-stream", Operation.INVOKE_STREAM, "aws"),
    path("POST", "/model/{M}/count-tokens", Operation.COUNT_CONVERSE, "aws"),
)
_VERTEX: Final = "/{V}/projects/{P}/locations/{L}/publishers"
_RAW: Final = (
    path(
        "POST",
        f"{_VERTEX}/anthropic/models/count-tokens:rawPredict",
        Operation.COUNT_RAW,
        "anthropic",
    ),
    path(
        "POST", f"{_VERTEX}/anthropic/models/{{G}}:rawPredict", Operation.RAW_PREDICT, "anthropic"
    ),
    path(
        "POST",
        f"{_VERTEX}/anthropic/models/{{G}}:streamRawPredict",
        Operation.STREAM_RAW_PREDICT,
        "anthropic",
    ),
)
_DATED: Final = "/openai/deployments/{D}"
_AZURE_DATED: Final = (
    path("POST", f"{_DATED}/chat/completions", Operation.CHAT, "openai"),
    path("POST", f"{_DATED}/completions", Operation.COMPLETIONS, "openai"),
    path("POST", f"{_DATED}/embeddings", Operation.EMBEDDINGS, "openai"),
    path("POST", "/openai/responses", Operation.RESPONSES, "openai"),
    path("GET", "/openai/models", Operation.MODELS, "openai"),
)
_CLAUDE_GCP: Final = "/v1/projects/{P}/locations/{L}/workspaces/{I}/invoke"
_NEEDS_VERSION: Final = ("anthropic-version",)

HOSTINGS: Final[Mapping[str, Hosting]] = {
    "openai": Hosting("/v1", openai_paths("/v1"), ("bearer",), "openai", "openai", models="openai"),
    "anthropic": Hosting(
        "",
        messages_paths(""),
        ("x-api-key", "bearer"),
        "anthropic",
        "anthropic",
        needs=_NEEDS_VERSION,
        models="anthropic",
    ),
    "gemini": Hosting(
        "",
        (*google_paths("/{V}"), *openai_paths("/{V}/openai")),
        ("x-goog-api-key", "bearer"),
        "google",
        models="google",
    ),
    "vertex": Hosting(
        "", google_paths(f"{_VERTEX}/google"), ("bearer",), "google", models="google"
    ),
    "vertex_anthropic": Hosting(
        "", _RAW, ("bearer",), "anthropic", gate="google", models="anthropic"
    ),
    "bedrock": Hosting(
        "", _BEDROCK, ("sigv4", "bearer"), "aws", service="bedrock", models="bedrock"
    ),
    "bedrock_invoke": Hosting(
        "", _INVOKE, ("sigv4", "bearer"), "aws", service="bedrock", models="bedrock"
    ),
    "mantle": Hosting(
        "",
        (*openai_paths("/openai/v1"), *messages_paths("/anthropic")),
        ("sigv4", "bearer", "x-api-key"),
        "openai",
        service="bedrock-mantle",
        models="mantle",
        quirks=frozenset(("data_first", "call_counter", "reservation")),
    ),
    "azure": Hosting(
        "/openai/v1", openai_paths("/openai/v1"), ("api-key", "bearer"), "azure", "azure",
        models="openai", quirks=frozenset(("content_filters",)),
    ),
    "azure_dated": Hosting(
        "/openai", _AZURE_DATED, ("api-key", "bearer"), "azure", "azure",
        models="openai", quirks=frozenset(("content_filters", "needs_api_version")),
    ),
    "foundry": Hosting(
        "/anthropic", messages_paths("/anthropic"), ("api-key", "x-api-key", "bearer"),
        "anthropic", "azure", gate="azure", needs=_NEEDS_VERSION, models="anthropic",
    ),
    "claude_aws": Hosting(
        "", messages_paths(""), ("sigv4", "x-api-key"), "anthropic", "anthropic",
        service="aws-external-anthropic", needs=(*_NEEDS_VERSION, "anthropic-workspace-id"),
        models="anthropic",
    ),
    "claude_gcp": Hosting(
        "", messages_paths(_CLAUDE_GCP), ("bearer",), "anthropic", gate="google",
        needs=_NEEDS_VERSION, models="anthropic",
    ),
    "xai": Hosting(
        "/v1", openai_paths("/v1"), ("bearer",), "xai", "openai", models="xai",
        quirks=frozenset(("usage_apart", "reasoning_content")),
    ),
    "openai_like": Hosting("/v1", openai_paths("{ANY}"), ("bearer",), "openai", models="open"),
}  # fmt: skip
"""Kind of hosting to what is particular to it."""
