"""Model views: a model's parsers as the HTTP surface shows them, and live settings applied to
models.
"""

from collections.abc import Mapping

from smg_node.cluster.settings.live_settings import LiveSettings
from smg_node.fleet.models.model_registry import Models
from smg_node.fleet.models.served_model import ServedModel
from smg_node.http.ports.node import ParsersView, ParserView


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
