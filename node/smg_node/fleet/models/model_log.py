"""Model log: log lines about a loaded model: tokenizer, template and output formats."""

import logging

from smg_node.fleet.models.served_model import ServedModel

_log = logging.getLogger("smg_node.fleet")


def tell_reading(model: ServedModel) -> None:
    """Log what a new model's files gave, and how its answers are read."""
    if model.unread is not None:
        _log.info("model %s: its tokenizer is read here when a request needs it", model.name)
        return
    _log.info(
        "model %s: %d token ids, encoder %s, %s",
        model.name,
        model.tokenizer.vocabulary,
        model.tokenizer.encoder,
        model.why_no_template or "chat template found",
    )
    tell_printing(model)


def tell_printing(model: ServedModel) -> None:
    """Log how a model's answers are read and why so."""
    if model.unread is not None:
        return
    chosen = model.printing.chosen
    _log.info(
        "model %s: thoughts are read as %s (%s), calls as %s (%s)",
        model.name,
        chosen.reasoning,
        chosen.why_reasoning,
        chosen.tools,
        chosen.why_tools,
    )
    for warning in chosen.warnings:
        _log.warning("model %s: %s", model.name, warning)
