"""Model knobs: aliases of one model, and overrides of what its engine reports."""

from pathlib import Path

from pydantic import Field, field_validator

from smg_node.config.schema.declaration import Section, number, place, switch, text, words
from smg_node.config.schema.model_name import check_model_name
from smg_node.config.sections.media import ModelMedia

_PRICE_WHY = "nobody pays to be asked; a unit of currency a token is beyond any model"


class ModelTool(Section):
    """The model as a tool of the node's own MCP server."""

    expose: bool = switch(
        False,
        "Whether clients of /mcp may ask it as a tool, each under its own key and limits.",
    )
    description: str = text(
        "",
        "What those clients, and the models that choose among tools, are told of it.",
        most=2048,
        shown="that it answers questions",
    )


class Model(Section):
    """What is said of one served model; the rest is learned from engines."""

    aliases: tuple[str, ...] = words(
        (), "Other names clients may use for it.", most=64, metavar="NAME"
    )
    tokenizer: Path | None = place(
        None,
        "Directory or file of its tokenizer, instead of the engine's own.",
        shown="from the engine",
    )
    chat_template: Path | None = place(
        None,
        "File of its chat template, instead of the tokenizer's own.",
        shown="from the tokenizer",
    )
    reasoning_parser: str | None = text(
        None,
        "How its thoughts are told from its answers: a parser's name, or what vLLM or SGLang call it; deploy/reference/parsers.md lists them.",
        most=64,
        metavar="NAME",
        shown="recognised",
    )
    tool_parser: str | None = text(
        None,
        "How its tool calls are read: a parser's name, or what vLLM or SGLang call it; deploy/reference/parsers.md lists them.",
        most=64,
        metavar="NAME",
        shown="recognised",
    )
    thinking_key: str | None = text(
        None,
        "Variable of its chat template that switches thoughts on and off; `none` has none.",
        most=64,
        metavar="NAME",
        shown="from the template",
    )
    context: int | None = number(
        None,
        "Longest prompt and answer together, in tokens.",
        low=1,
        high=1_000_000_000,
        why="at least one token; a billion is beyond any model and still safe to add up",
        shown="from the engine",
    )
    prompt_max_tokens: int | None = number(
        None,
        "Longest prompt, in tokens.",
        low=1,
        high=1_000_000_000,
        why="at least one token; a billion is beyond any model and still safe to add up",
        shown="from the engine",
    )

    policy: str | None = text(
        None,
        "Rule that picks a worker for this model, instead of `routing.policy`.",
        most=64,
        metavar="NAME",
        shown="routing.policy",
    )
    prefill_policy: str | None = text(
        None,
        "Rule that picks who works a prompt for this model off, instead of `routing.prefill_policy`.",
        most=64,
        metavar="NAME",
        shown="routing.prefill_policy",
    )
    decode_policy: str | None = text(
        None,
        "Rule that picks who draws an answer of this model, instead of `routing.decode_policy`.",
        most=64,
        metavar="NAME",
        shown="routing.decode_policy",
    )
    encode_policy: str | None = text(
        None,
        "Rule that picks who encodes a picture for this model, instead of `routing.encode_policy`.",
        most=64,
        metavar="NAME",
        shown="routing.encode_policy",
    )

    mcp: ModelTool = ModelTool()

    prompt_price: float | None = number(
        None,
        "What a million prompt tokens cost, in your currency, for limits on cost and for accounts.",
        low=0,
        high=1_000_000,
        why=_PRICE_WHY,
        shown="nothing",
    )
    cached_price: float | None = number(
        None,
        "What a million prompt tokens cost that the engine had cached.",
        low=0,
        high=1_000_000,
        why=_PRICE_WHY,
        shown="prompt_price",
    )
    answer_price: float | None = number(
        None,
        "What a million tokens of answers cost.",
        low=0,
        high=1_000_000,
        why=_PRICE_WHY,
        shown="nothing",
    )

    media: ModelMedia = Field(default_factory=ModelMedia)

    @field_validator("aliases")
    @classmethod
    def _names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            check_model_name(name)
        return names

    @field_validator("tokenizer", "chat_template")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return path.expanduser() if path is not None else None
