"""Think tags: `<think>` … `</think>`, as most open models print reasoning; differences are options
(`varied`).

<think>⏎12 eggs.⏎</think>⏎⏎A dozen.
"""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (ThoughtFormat("think", ("<think>",), ("</think>",)),)
