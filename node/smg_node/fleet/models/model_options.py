"""Model options: what the operator and a worker say about a model, over what its files say."""

from dataclasses import dataclass

from smg_node.engines.engine import ModelCard


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What the operator says about a model, over what is learned."""

    aliases: tuple[str, ...] = ()
    tokenizer_path: str | None = None
    chat_template_path: str | None = None
    context: int | None = None
    prompt_tokens_max: int | None = None
    reasoning_parser: str | None = None
    tool_parser: str | None = None
    thinking_key: str | None = None
    media_processor: str | None = None
    """JSON object of numbers of its image processor, over those of its files."""


@dataclass(frozen=True, slots=True)
class Labels:
    """What a worker calls the formats of its model, in its own program's words; "" where it says nothing.

    `path` is where it has the model from.
    """

    reasoning: str = ""
    tools: str = ""
    path: str = ""


def labels_of(card: ModelCard) -> Labels:
    """Return what an engine's settings call the formats of its model."""
    said = card.server
    return Labels(
        said.get("reasoning_parser", ""),
        said.get("tool_call_parser", "") or said.get("tool_parser", ""),
        card.model_path,
    )
