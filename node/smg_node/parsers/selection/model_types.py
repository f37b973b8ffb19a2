"""Model types: formats by `model_type` or architecture in config.json.

Several families keep the kind of the model they grew out of (Kimi K2 says `deepseek_v3`): where that leaves it
open, nothing is said here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Kind:
    """Formats by name, "" where the kind leaves them open.

    `thinking` is the format of thoughts where the chat template is seen to print any: of kinds whose members
    do not all think, and of those that put more than `<think>` around what they think.
    """

    reasoning: str = ""
    tools: str = ""
    thinking: str = ""


def _joint(name: str) -> Kind:
    return Kind(name, name)


_OPEN: Final = Kind()
_THINK_HERMES: Final = Kind("think", "hermes")
_THINK_XML: Final = Kind("think", "qwen_xml")
_THINK_GLM: Final = Kind("think", "glm")
_COHERE: Final = Kind("cohere_cmd", "cohere")
_MISTRAL: Final = Kind("", "mistral")
_LFM: Final = Kind("", "lfm2")

KINDS: Final[Mapping[str, Kind]] = {
    "gpt_oss": _joint("harmony"),
    "deepseek_v32": Kind("think", "dsml"),
    "deepseek_v4": Kind("think", "dsml_v4"),
    "deepseek_v3": _OPEN,
    "kimi_k25": Kind("think", "kimi_k2"),
    "kimi_k3": _joint("kimi_k3"),
    "glm4_moe": _THINK_GLM,
    "glm_moe_dsa": _THINK_GLM,
    "glm5_next": _THINK_GLM,
    "qwen3": Kind("think"),
    "qwen3_moe": Kind("think"),
    "qwen3_next": Kind("think"),
    "qwen3_5": _THINK_XML,
    "qwen3_5_moe": _THINK_XML,
    "minimax_m2": Kind("think", "minimax_m2"),
    "minimax_m3": _joint("minimax_m3"),
    "minimax_m3_vl": _joint("minimax_m3"),
    "seed_oss": _joint("seed_oss"),
    "step3_vl": Kind("think", "step3"),
    "step3p5": _THINK_XML,
    "step3p7": _THINK_XML,
    "hunyuan_v1_moe": Kind("hunyuan_a13b", "hunyuan_a13b", "hunyuan_a13b"),
    "hy_v3": _joint("hy_v3"),
    "hy_v4": _joint("hy_v3"),
    # Half of this kind never thinks, and whatever its format reads begins inside a thought.
    "ernie4_5_moe": Kind("", "hermes", "ernie45"),
    "nemotron_h": _OPEN,
    "granitemoehybrid": _OPEN,
    "gemma4": _joint("gemma4"),
    "cohere2": _COHERE,
    "cohere2_moe": _COHERE,
    "mistral3": _MISTRAL,
    "ministral3": _MISTRAL,
    "mistral4": _MISTRAL,
    "olmo3": _OPEN,
    "lfm2": _LFM,
    "lfm2_moe": _LFM,
    "apertus": _joint("apertus"),
    "exaone4": _THINK_HERMES,
    "llama4": Kind("", "pythonic"),
    "jamba": Kind("", "tool_calls_json"),
    "internlm2": Kind("", "internlm"),
    "longcat_flash": Kind("", "longcat"),
    "mimo_v2": _THINK_XML,
    "laguna": _THINK_GLM,
    "inkling": _joint("inkling"),
    "muse_glimmer": _joint("muse"),
    "bailing_moe_v3": _THINK_GLM,
}
ARCHITECTURES: Final[Mapping[str, str]] = {
    "GptOssForCausalLM": "gpt_oss",
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "DeepseekV4ForCausalLM": "deepseek_v4",
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "KimiK25ForConditionalGeneration": "kimi_k25",
    "KimiK3ForConditionalGeneration": "kimi_k3",
    "GlmMoeDsaForCausalLM": "glm_moe_dsa",
}


def kind_of(config: Mapping[str, Any]) -> str:
    """Return the kind that config.json names, by `model_type` or by its first known architecture; "" for none.

    Of a model with several parts it is the whole one's, if that is known, else the language part's.
    """
    part = config.get("text_config")
    places = (config, part) if isinstance(part, dict) else (config,)
    said = [kind for place in places for kind in _named(place)]
    return next((kind for kind in said if kind in KINDS), said[0] if said else "")


def _named(config: Mapping[str, Any]) -> list[str]:
    kind, classes = config.get("model_type"), config.get("architectures")
    said = [kind] if isinstance(kind, str) and kind else []
    if isinstance(classes, list):
        named = (each for each in classes if isinstance(each, str))
        said += [ARCHITECTURES[each] for each in named if each in ARCHITECTURES]
    return said
