"""Issuers: which family of models made opaque state, by the kind of provider and the vendor's name of the model. Pure.

What a family made goes back to that family, wherever it is hosted; what nobody else can read stays with its provider.
"""

from typing import Final

_BY_KIND: Final = {
    "openai": "openai",
    "azure": "openai",
    "azure_dated": "openai",
    "anthropic": "anthropic",
    "vertex_anthropic": "anthropic",
    "bedrock_invoke": "anthropic",
    "foundry": "anthropic",
    "claude_aws": "anthropic",
    "claude_gcp": "anthropic",
    "gemini": "google",
    "vertex": "google",
    "xai": "xai",
}


def issuer_of(kind: str, model: str, provider: str) -> str:
    """Return the issuer: "anthropic", "google", "openai", "xai", "bedrock", or the provider's own name."""
    found = _BY_KIND.get(kind)
    if found is not None:
        return found
    if kind == "bedrock":
        return "anthropic" if "anthropic." in model else "bedrock"
    if kind == "mantle":
        return "anthropic" if "anthropic" in model or "claude" in model else "openai"
    return provider
