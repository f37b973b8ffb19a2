"""A request for each hosting of vendors: its path, and the least body that is answered there."""

from typing import Any

HELLO: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 9}
CONTENTS: Any = {"contents": [{"parts": [{"text": "hello"}]}]}
CONVERSE: Any = {"messages": [{"role": "user", "content": [{"text": "hello"}]}]}
VERTEX = "/v1/projects/p/locations/eu/publishers"
PLACES: dict[str, tuple[str, Any]] = {
    "openai": ("/v1/chat/completions", {"model": "gpt-4.1-mini", **HELLO}),
    "anthropic": ("/v1/messages", {"model": "claude-haiku-4-5", **HELLO}),
    "gemini": ("/v1beta/models/gemini-2.5-flash:generateContent", CONTENTS),
    "vertex": (f"{VERTEX}/google/models/gemini-2.5-flash:generateContent", CONTENTS),
    "vertex_anthropic": (
        f"{VERTEX}/anthropic/models/claude-haiku-4-5:rawPredict",
        {"anthropic_version": "vertex", **HELLO},
    ),
    "bedrock": ("/model/amazon.nova-pro-v1%3A0/converse", CONVERSE),
    "bedrock_invoke": (
        "/model/eu.anthropic.claude-sonnet-5/invoke",
        {"anthropic_version": "bedrock", **HELLO},
    ),
    "mantle": ("/openai/v1/chat/completions", {"model": "openai.gpt-oss-120b", **HELLO}),
    "azure": ("/openai/v1/chat/completions", {"model": "gpt-4.1-mini", **HELLO}),
    "azure_dated": (
        "/openai/deployments/gpt-4.1-mini/chat/completions?api-version=2024-10-21",
        HELLO,
    ),
    "foundry": ("/anthropic/v1/messages", {"model": "claude-haiku-4-5", **HELLO}),
    "claude_aws": ("/v1/messages", {"model": "claude-haiku-4-5", **HELLO}),
    "claude_gcp": (
        "/v1/projects/p/locations/eu/workspaces/w/invoke/v1/messages",
        {"model": "claude-haiku-4-5", **HELLO},
    ),
    "xai": ("/v1/chat/completions", {"model": "grok-4.5", **HELLO}),
    "openai_like": ("/api/paas/v4/chat/completions", {"model": "model-large", **HELLO}),
}
"""Kind of hosting to path and body."""
