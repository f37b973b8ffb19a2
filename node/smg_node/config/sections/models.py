"""Knobs of one model: what it is also called, and what overrides the engine's own word."""

from pathlib import Path

from pydantic import field_validator

from smg_node.config.declare import Section, number, place, words


class Model(Section):
    """What the operator says about one served model. Anything unset is learned from its engines."""

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


def check_model_name(name: str) -> str:
    """Return `name`; ValueError if it cannot be a model's name in a request and in a header."""
    if not 1 <= len(name) <= 256 or not name.isprintable() or name != name.strip():
        raise ValueError(f"{name[:80]!r} is not a model name (1 to 256 printable characters)")
    return name
