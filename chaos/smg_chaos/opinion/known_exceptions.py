"""Known exceptions: published templates whose answers cannot be read back, each with its reason, by
file name.

A reason says what in the template prevents it, or that no parser here reads the family. Kinds of
answers that are not named have to be read back exactly.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_OPENED: Final = (
    "prompts open a thought, and past answers are put behind it without its end, which models print"
)
_ALL_CALLS: Final = (
    "text, call",
    "call",
    "two calls",
    "no arguments",
    "code",
    "lookalikes",
    "types",
    "thought, call",
)
_ALL: Final = ("text", "thought, text", *_ALL_CALLS)
_NO_THOUGHT: Final = ("text", *_ALL_CALLS[:-1])


def _reason(why: str, *kinds: str) -> Mapping[str, str]:
    return MappingProxyType(dict.fromkeys(kinds, why))


EXCUSED: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "Apriel-1.6-15b-Thinker-fixed": _reason(_OPENED, *_NO_THOUGHT),
        "unsloth-Apriel-1.5": _reason(_OPENED, *_ALL),
        "NVIDIA-Nemotron-Nano-v2": _reason(_OPENED, "text", "thought, text", "text, call"),
        "LFM2.5-8B-A1B": _reason(
            "prints texts between quotes as they are, so two backslashes look like an escape",
            "code",
        ),
        "MiniMax-M3": _reason("prints null in a list as an empty element", "types"),
        "openai-gpt-oss-120b": _reason(
            "shows what was said before a call as a thought", "text, call"
        ),
        "CohereForAI-c4ai-command-r-plus-tool_use": _reason(
            "its form ('Action:' and a list in a fence) is not read here", *_ALL_CALLS
        ),
        "meetkai-functionary-medium-v3.2": _reason(
            "its form (a recipient's name and a newline before everything) is not read here", *_ALL
        ),
        "upstage-Solar-Open-100B": _reason(
            "its form (messages for thoughts, calls and text) is not read here",
            *_ALL,
        ),
    }
)
