"""Seed-OSS reasoning: `<seed:think>` … `</seed:think>`, with remarks on the budget inside that
belong to it.
"""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (ThoughtFormat("seed_oss", ("<seed:think>",), ("</seed:think>",)),)
