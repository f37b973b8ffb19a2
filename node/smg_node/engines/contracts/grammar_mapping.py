"""Grammar mapping: rewrites output constraints for contracts without a field for them; grammar
abilities of engines. Pure.
"""

from typing import Any, Final

import msgspec

from smg_node.core.generation.request import Constraint
from smg_node.engines.engine import Abilities, Contract, ModelCard
from smg_node.parsers.constraints.structural_tags import Grammars, TagForm

ANY_OBJECT_SCHEMA = '{"type":"object"}'

_SPECIAL = frozenset("\\.^$*+?()[]{}|/")

# What SGLang's and TokenSpeed's grammar backends make of structural tags.
_BACKENDS: Final[dict[str, TagForm]] = {
    "llguidance": "structures",
    "outlines": "none",
    "none": "none",
}


def grammars_of(card: ModelCard, abilities: Abilities) -> Grammars:
    """Return what the grammars of the engine with this card can do."""
    server, kinds = card.server, abilities.constraints
    if card.contract in (Contract.SGLANG, Contract.TOKENSPEED):
        backend = server.get("grammar_backend", "")
        if backend == "none":
            return Grammars()
        waits = card.contract is Contract.SGLANG and bool(server.get("reasoning_parser"))
        return Grammars(kinds, _BACKENDS.get(backend, "formats"), can_wait=waits)
    waits = server.get("constrained_decoding_start") == "after_reasoning"
    return Grammars(kinds, "formats" if "structural_tag" in kinds else "none", waits=waits)


def choices_of(constraint: Constraint) -> list[str]:
    """Return the texts a `choice` constraint allows; its reader has checked the JSON."""
    assert constraint.kind == "choice"
    return msgspec.json.decode(constraint.value, type=list[str])


def choices_pattern(constraint: Constraint) -> str:
    """Return a regular expression that matches exactly the texts a `choice` constraint allows."""
    return "(" + "|".join(_literal(text) for text in choices_of(constraint)) + ")"


def _literal(text: str) -> str:
    """Escape only what every dialect of regular expressions treats as special."""
    return "".join("\\" + character if character in _SPECIAL else character for character in text)


def constrain(params: Any, constraint: Constraint) -> None:
    """Set the constraint of SGLang's and TokenSpeed's sampling parameters, which are named alike."""
    match constraint.kind:
        case "json_object":
            params.json_schema = ANY_OBJECT_SCHEMA
        case "json_schema":
            params.json_schema = constraint.value
        case "regex":
            params.regex = constraint.value
        case "ebnf":
            params.ebnf_grammar = constraint.value
        case "structural_tag":
            params.structural_tag = constraint.value
        case "choice":
            params.regex = choices_pattern(constraint)
