"""Models whose prompts are made by code: bundles without a template, their renderers and prompts."""

import json
from datetime import UTC, datetime
from typing import Any, Final

from smg_node.core.generation.request import ChatPrompt, Tool, Turn
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.prompts.renderer import Renderer, RenderOptions, renderer_of

NOW: Final = datetime(2026, 11, 3, 9, 30, tzinfo=UTC)
FAMILIES: Final = ("deepseek_v32", "deepseek_v4", "gpt_oss", "inkling", "kimi_k3")
_CITY: Final = {"type": "string", "description": "Where it is."}
MUSEUM: Final = Tool(
    "find_museum",
    "Finds one.\nNever two.",
    {
        "type": "object",
        "properties": {"city": _CITY, "max": {"type": "integer", "default": 3}},
        "required": ["city"],
    },
)
ROOMS: Final = Tool("list_rooms")


def files(**more: bytes) -> TokenizerBundle:
    """Return a bundle of these files."""
    return TokenizerBundle(
        {name.replace("_json", ".json"): raw for name, raw in more.items()}, "", "a test"
    )


def renderer(bundle: TokenizerBundle, **more: Any) -> Renderer:
    """Return the renderer of a bundle."""
    return renderer_of(
        bundle,
        {},
        configured=None,
        options=RenderOptions(),
        monotonic_s=lambda: 0.0,
        **more,
    )


def coded(family: str, **more: Any) -> Renderer:
    """Return the renderer of a model of that type which has no template."""
    return renderer(files(config_json=json.dumps({"model_type": family}).encode()), **more)


def render(family: str, *turns: Turn, **more: Any) -> str:
    """Return the prompt of a family for these turns."""
    return coded(family).render(ChatPrompt(turns, **more), now=NOW)
