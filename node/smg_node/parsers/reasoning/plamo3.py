"""PLaMo 3 (plamo3) reasoning: `<|plamo:begin_think:plamo|>` … `<|plamo:end_think:plamo|>`, each of
several tokens.
"""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (
    ThoughtFormat(
        "plamo3",
        ("<|plamo:begin_think:plamo|>",),
        ("<|plamo:end_think:plamo|>",),
    ),
)
