"""Parser labels: names that other servers give the same formats, for operators' settings and
workers' metadata.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from smg_node.config.schema.suggestions import nearest
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.json_cursor import quoted
from smg_node.core.registry import Registry
from smg_node.parsers.reading.format import THINK_OPTIONS
from smg_node.parsers.selection.registry import known_joint, known_thoughts, known_tools

TEMPLATE: Final = "response_template"
"""Stands for the format that a checkpoint describes itself."""
PLAIN: Final = "plain"
_NO_OPTIONS: Final = "none"

_THINK: Final = """
    deepseek_r1 deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4 deepseek_v41 deepseek_v4_1
    qwen3 qwen3_thinking glm45 glm47 glm kimi_k2 kimi_k25 kimi_thinking step3 step3p5
    minimax minimax_m2 minimax_append_think minimax_m2_append_think nano_v3 nemotron_v3 nemotron_3
    llama_nemotron olmo3 ling3 ling mimo holo2 interns1 nanbeige poolside_v1 dots iquest_q1 lfm2_5
    granite_thinking_parser minicpmv base basic
"""
_THINKS_FIRST: Final = frozenset({"deepseek_r1", "qwen3_thinking", "step3"})
"""Names under which all servers that have them read every text as a thought up to its closer."""
_TOOLS: Final = {
    "hermes": "qwen qwen25 qwen2_5 qwen3 granite4 interns1 ernie45",
    "qwen_xml": "qwen3_coder qwen_coder qwen3_xml step3p5 mimo nemotron nemotron_3",
    "glm": "glm45 glm47 glm45_moe glm47_moe glm4 ling ling3 poolside_v1",
    "deepseek_v3": "deepseekv3 deepseek",
    "deepseek_v31": "deepseekv31 deepseek31",
    "dsml": "deepseek_v32 deepseekv32 deepseek32",
    "dsml_v4": "deepseek_v4 deepseekv4",
    "dsml_v41": "deepseek_v4_1 deepseek_v41 deepseekv41",
    "kimi_k2": "kimik2 kimi_k25",
    "mistral": "mistral_v13",
    "llama3_json": "llama3 llama llama4_json",
    "pythonic": "llama4_pythonic",
    "harmony": "gpt_oss openai openai_gptoss",
    "cohere": "cohere_command3 cohere_command4 cohere_cmd",
    "phi4": "phi4_mini_json",
    "tool_calls_json": "jamba minimax_m1",
    "functiongemma": "function_gemma",
    TEMPLATE: "hf",
    PLAIN: "passthrough",
}
_REASONING: Final = {
    "think": _THINK,
    "harmony": "gpt_oss openai openai_gptoss",
    "cohere_cmd": "cohere cohere_command3 cohere_command4",
    TEMPLATE: "hf",
    PLAIN: "passthrough",
}


def _by_label(table: Mapping[str, str]) -> Mapping[str, str]:
    return {label: name for name, labels in table.items() for label in labels.split()}


_REASONING_BY_LABEL: Final = _by_label(_REASONING)
_TOOLS_BY_LABEL: Final = _by_label(_TOOLS)


def reasoning_of_label(label: str) -> str:
    """Return the format of thoughts that a worker's label means, "" if it means nothing here."""
    if not label:
        return ""
    name = _plain(label)
    known = {*known_thoughts(), *known_joint(), TEMPLATE}
    return _REASONING_BY_LABEL.get(name, name if name in known else "")


def tools_of_label(label: str) -> str:
    """Return the format of calls that a worker's label means, "" if it means nothing here."""
    if not label:
        return ""
    name = _plain(label)
    known = {*known_tools(), *known_joint(), TEMPLATE, PLAIN}
    return _TOOLS_BY_LABEL.get(name, name if name in known else "")


def reasoning_named(text: str) -> tuple[str, frozenset[str] | None]:
    """Return the format of thoughts an operator names, and its options; None: what fits the model.

    Options stand behind the name, `think+implicit+trim`; `think+none` has none. A label of another program
    will do. NOT_FOUND, with the nearest name, for what is neither.
    """
    name, plus, rest = text.partition("+")
    found = _found(name, reasoning_of_label(name), "reasoning parser", reasoning_names())
    if not plus:
        return found, None
    options: Registry[str] = Registry("option of a reasoning parser")
    for option in (*THINK_OPTIONS, _NO_OPTIONS):
        options.add(option, option)
    return found, frozenset(options.get(option) for option in rest.split("+")) - {_NO_OPTIONS}


def thinks_first(text: str) -> bool:
    """Whether a text without marks is a thought to other servers' parsers of that name."""
    return _plain(text) in _THINKS_FIRST


def tools_named(text: str) -> str:
    """Return the format of calls an operator names; NOT_FOUND, with the nearest name, for what is none."""
    return _found(text, tools_of_label(text), "tool parser", tool_names())


def reasoning_names() -> Mapping[str, Sequence[str]]:
    """Return every format of thoughts by name, with the labels of other programs that mean it."""
    return _listed({*known_thoughts(), *known_joint(), TEMPLATE}, _REASONING)


def tool_names() -> Mapping[str, Sequence[str]]:
    """Return every format of calls by name, with the labels of other programs that mean it."""
    return _listed({*known_tools(), *known_joint(), TEMPLATE, PLAIN}, _TOOLS)


def parser_trouble(field: str, text: str) -> str:
    """Return what is wrong with `text` as a model's `reasoning_parser` or `tool_parser`, "" if nothing."""
    try:
        if field == "reasoning_parser":
            reasoning_named(text)
        else:
            tools_named(text)
    except SmgError as error:
        return error.message
    return ""


def _found(said: str, meant: str, kind: str, known: Mapping[str, Sequence[str]]) -> str:
    if meant:
        return meant
    near = nearest(_plain(said), [*known, *chain(*known.values())])
    if near:
        hint = f"did you mean {near!r}?"
    else:
        hint = f"known, with other names of theirs: {', '.join(map(_with_labels, known.items()))}"
    raise SmgError(ErrorKind.NOT_FOUND, f"no {kind} is called {quoted(said)}; {hint}")


def _with_labels(listed: tuple[str, Sequence[str]]) -> str:
    name, labels = listed
    return f"{name} ({' '.join(labels)})" if labels else name


def _listed(names: Iterable[str], labels: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    return {name: sorted(set(labels.get(name, "").split()) - {name}) for name in sorted(set(names))}


def _plain(label: str) -> str:
    return label.strip().lower().replace("-", "_").replace(".", "_")
