"""Parser reference: the Markdown page of all parsers, with their names in other programs.

`python -m smg_node.parsers.selection.parser_reference` prints it; `deploy/reference/parsers.md` is its
output.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Final

from smg_node.parsers.reading.format import THINK_OPTIONS
from smg_node.parsers.selection.parser_labels import reasoning_names, tool_names

_HEAD: Final = """\
# Parsers

Generated from `smg_node/parsers/selection/parser_labels.py` by `make reference`; do not edit.

Names for `models.NAME.reasoning_parser` and `models.NAME.tool_parser`, for `reasoning_parser` and `tool_call_parser` of
`/parse/reasoning` and `/parse/function_call`, and for what workers say of themselves. The names that vLLM, SGLang and other
programs have for a parser mean the same here. Capitals, `-` and `.` count as small letters and `_`. Without any of this the
format of a model is recognised; `smg-admin models explain MODEL` shows what was chosen, and on what evidence.

"""
_TABLE_HEAD: Final = "| Parser | Other names |\n|---|---|\n"


def render_parsers_reference() -> str:
    """Return the whole page, ending with a line feed."""
    options = ", ".join(f"`+{option}`" for option in THINK_OPTIONS)
    return (
        f"{_HEAD}## Reasoning parsers\n\nOptions may follow a name, as in `think+implicit`: {options}; `+none` has none.\n\n"
        f"{_table(reasoning_names())}\n## Tool call parsers\n\n{_table(tool_names())}"
    )


def _table(names: Mapping[str, Sequence[str]]) -> str:
    return _TABLE_HEAD + "".join(
        f"| `{name}` | {' '.join(f'`{label}`' for label in labels)} |\n"
        for name, labels in names.items()
    )


if __name__ == "__main__":
    sys.stdout.write(render_parsers_reference())
