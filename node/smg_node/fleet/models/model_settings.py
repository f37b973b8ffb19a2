"""Model settings: the operator's settings of each model, validated and converted for the fleet.

The formats that answers are read in are imported with the first name of a parser: a node whose models are all
recognised never needs them for this.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from smg_node.config.frozen_settings import Settings
from smg_node.config.schema.problems import ConfigurationError, Problem
from smg_node.fleet.models.model_options import ModelSettings

PARSER_FIELDS: Final = ("reasoning_parser", "tool_parser")
"""The settings of a model that name a parser."""


def model_settings(settings: Settings) -> Mapping[str, ModelSettings]:
    """Return the settings of each configured model; ConfigurationError for an unknown parser."""
    problems = [
        Problem(f"models.{name}.{field}", trouble)
        for name, model in settings.models.items()
        for field in PARSER_FIELDS
        if (said := getattr(model, field)) and (trouble := parser_trouble(field, said))
    ]
    if problems:
        raise ConfigurationError(problems)
    return {
        name: ModelSettings(
            aliases=model.aliases,
            tokenizer_path=str(model.tokenizer) if model.tokenizer else None,
            chat_template_path=str(model.chat_template) if model.chat_template else None,
            context=model.context,
            prompt_tokens_max=model.prompt_max_tokens,
            reasoning_parser=model.reasoning_parser,
            tool_parser=model.tool_parser,
            thinking_key=model.thinking_key,
            media_processor=model.media.processor,
        )
        for name, model in settings.models.items()
    }


def parser_trouble(field: str, name: str) -> str:
    """Return what is wrong with `name` as that setting, with the nearest name there is; "" if nothing."""
    from smg_node.parsers.selection.parser_labels import parser_trouble as trouble

    return trouble(field, name)


def parser_checks() -> Mapping[str, Callable[[str], str]]:
    """Return the checks of values that are set while nodes run, by the key of the setting."""
    return {f"models/NAME/{field}": partial(parser_trouble, field) for field in PARSER_FIELDS}
