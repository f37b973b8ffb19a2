"""Model views: a model's parsers as the HTTP surface shows them, and live settings applied to
models.
"""

import asyncio
from collections.abc import Mapping, Sequence

from smg_node.cluster.settings.live_settings import LiveSettings
from smg_node.engines.engine import ModelCard
from smg_node.fleet.models.model_registry import Models
from smg_node.fleet.models.served_model import ServedModel
from smg_node.http.ports.node import ParsersView, ParserView, PictureRulesView


def retune_models(models: Models, live: LiveSettings) -> None:
    """Apply the cluster's present settings of models to `models`."""
    models.retune(
        live.of_models("aliases"),
        reasoning_parsers=live.of_models("reasoning_parser"),
        tool_parsers=live.of_models("tool_parser"),
    )


def exposed_models(live: LiveSettings) -> Mapping[str, str]:
    """Return the models that are tools of the node's own MCP server, by name, and what an operator says of each."""
    exposed = [name for name, is_on in live.of_models("mcp.expose").items() if is_on]
    described = live.of_models("mcp.description") if exposed else {}
    return {name: described.get(name, "") for name in sorted(exposed)}


def parsers_view(model: ServedModel) -> ParsersView | None:
    """Show a model's parsers and why they were chosen; None while its files are unread: other nodes
    show it then.
    """
    if model.unread is not None:
        return None
    chosen = model.printing.chosen
    thoughts, calls = chosen.why_reasoning, chosen.why_tools
    form = (chosen.form,) if chosen.form else ()
    return ParsersView(
        ParserView(chosen.reasoning, tuple(sorted(chosen.options)), thoughts.source, thoughts.what),
        ParserView(chosen.tools, form, calls.source, calls.what),
        chosen.warnings,
    )


async def picture_rules_views(
    model: ServedModel, cards: Sequence[ModelCard]
) -> Sequence[PictureRulesView]:
    """Show the rules that pictures of a model follow at workers with these cards; nothing while its files are unread."""
    if model.unread is not None or not any(card.media is not None for card in cards):
        return ()
    # Loaded for models that see.
    from smg_node.pipeline.media.rule_groups import groups_of, rules_of, values_of

    groups = await asyncio.to_thread(groups_of, rules_of(model, cards), model.tokenizer)
    return [
        PictureRulesView(
            group.workers,
            "" if group.family is None else group.family.name,
            group.why_not,
            tuple(
                [
                    {"name": each.name, "value": each.value, "origin": each.origin}
                    for each in values_of(group.family)
                ]
            ),
        )
        for group in groups
    ]
