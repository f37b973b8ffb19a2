"""Format recognition: finds the output formats of one model when it is loaded, or its operator or a
worker names others.
"""

from dataclasses import dataclass, field, replace

from smg_node.fleet.models.model_options import Labels, ModelSettings
from smg_node.parsers.selection.model_formats import Printing
from smg_node.parsers.selection.recognition import Clues, recognise


@dataclass(frozen=True, slots=True)
class Recognition:
    """The evidence that a model's files hold. `special_tokens` are the texts of its tokenizer's control tokens."""

    clues: Clues
    special_tokens: frozenset[str] = field(default_factory=frozenset)

    def printing(self, settings: ModelSettings, labels: Labels) -> Printing:
        """Return its output formats; NOT_FOUND where the operator names an unknown format."""
        names = self.clues.names
        clues = replace(
            self.clues,
            names=(*names, labels.path) if labels.path else names,
            reasoning_parser=settings.reasoning_parser or "",
            tool_parser=settings.tool_parser or "",
            reasoning_label=labels.reasoning,
            tool_label=labels.tools,
        )
        return Printing(recognise(clues), self.special_tokens)
