"""MiniMax M3 reasoning: `<mm:think>` … `</mm:think>`, sometimes with closers that nothing was
opened for.
"""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (ThoughtFormat("minimax_m3", ("<mm:think>",), ("</mm:think>",), trim=True),)
