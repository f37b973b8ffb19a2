"""Reasoning variants: options (`varied`) of families that print reasoning between the same
marks.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from smg_node.parsers.selection.model_names import normal_name

_NONE: Final[frozenset[str]] = frozenset()
_SUFFIXED: Final = re.compile(r"<think(:[^<>]+)>")
_IMPLICIT: Final = frozenset({"implicit"})
_BOTH: Final = frozenset({"implicit", "interleaved"})
_LINE: Final = frozenset({"implicit", "line"})
_LINE_TRIM: Final = frozenset({"implicit", "line", "trim"})
_TRIM: Final = frozenset({"trim"})


@dataclass(frozen=True, slots=True)
class Family:
    """One family: its kinds, or names, or a word of its template; where `tools` are named, only with these calls."""

    options: frozenset[str]
    kinds: tuple[str, ...] = ()
    names: str = "(?!)"
    template: str = ""
    tools: tuple[str, ...] = ()

    def fits(self, kind: str, names: Sequence[str], template: str, tools: str) -> bool:
        """Whether a model is of this family, as far as can be told."""
        if self.tools and tools not in self.tools:
            return False
        return (
            kind in self.kinds
            or (self.template != "" and self.template in template)
            or any(re.search(self.names, name) for name in names)
            or not (self.kinds or self.template or self.names != "(?!)")
        )


FAMILIES: Final = (
    Family(_NONE, names=r"deepseek|r1.*distill|r1.*qwen3", template="<｜Assistant｜>"),
    Family(_LINE, kinds=("laguna",), names=r"laguna|poolside"),
    Family(_BOTH, names=r"glm-?4[.-][56](?![\db])", template="/nothink", tools=("glm",)),
    Family(
        _IMPLICIT,
        kinds=("glm4_moe", "glm_moe_dsa", "glm5_next"),
        names=r"glm-?(4[.-])?[5-9](?![\db])",
        template="[gMASK]<sop>",
        tools=("glm",),
    ),
    Family(_IMPLICIT, tools=("kimi_k2",)),
    Family(frozenset({"interleaved"}), tools=("minimax_m2",)),
    Family(
        _LINE_TRIM,
        kinds=("nemotron_h", "granitemoehybrid"),
        names=r"nemotron-?3|nemotron.*nano.*v3|nano-?v3|granite-?4[.-]2",
        tools=("qwen_xml",),
    ),
    Family(
        _TRIM, kinds=("nemotron_h",), names=r"(?<!llama-)nemotron-nano", tools=("nemotron_json",)
    ),
    Family(_TRIM, kinds=("step3_vl", "step3p5", "step3p7"), names=r"step-?3"),
    Family(_TRIM, tools=("step3",)),
    Family(
        _IMPLICIT, kinds=("qwen3_5", "qwen3_5_moe"), names=r"qwen-?3[.-](5|6|8)(?![\db])|qwen-?3p5"
    ),
    Family(_NONE, names=r"qwen-?3.*(coder|instruct)"),
    Family(_BOTH, kinds=("qwen3", "qwen3_moe", "qwen3_next"), names=r"qwen-?3", tools=("hermes",)),
)
"""The first that fits counts; a model of none has no options."""


def options_of(kind: str, names: Sequence[str], template: str, tools: str) -> frozenset[str]:
    """Return the options of a model that prints `<think>` and calls in the format `tools`."""
    normal = [normal_name(name) for name in names]
    return next(
        (each.options for each in FAMILIES if each.fits(kind, normal, template, tools)), _NONE
    )


def suffix_of(tokens: Collection[str]) -> frozenset[str]:
    """Return the suffix that a tokenizer has behind the names of its marks (`<think:opensource>`), as an option."""
    found = (_SUFFIXED.fullmatch(token) for token in sorted(tokens))
    return frozenset(match[1] for match in found if match)
