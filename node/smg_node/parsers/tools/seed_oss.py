"""Seed-OSS calls: as in `qwen_xml`, between tags of their own and with values in their tags' line.

<seed:tool_call>⏎<function=find_museum>⏎<parameter=city>Ghent</parameter>⏎</function>⏎</seed:tool_call>
"""

from typing import Final

from smg_node.parsers.tools.qwen_xml import functions

FORMATS: Final = (functions("seed_oss", "<seed:tool_call>", "</seed:tool_call>"),)
