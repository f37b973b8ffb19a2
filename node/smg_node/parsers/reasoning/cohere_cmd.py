"""Cohere Command reasoning: `<|START_THINKING|>` … `<|END_THINKING|>`, the answer between tokens of
its own.
"""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (
    ThoughtFormat(
        "cohere_cmd",
        ("<|START_THINKING|>",),
        ("<|END_THINKING|>",),
        trim=True,
        frames=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"),
    ),
)
