"""Spellings of tool calls in each family's format, written out independently of the parsers, for
differential tests.

Each function prints a list of calls as the family's template does, from the values alone, so that
the right reading is known before either parser reads it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Called: TypeAlias = tuple[str, Mapping[str, Any]]
"""A function's name and its arguments."""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _raw(value: Any) -> str:
    """Return a value as templates print it in a tag: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else _json(value)


def _joined(calls: Sequence[Called], one: Callable[[str, Mapping[str, Any]], str]) -> str:
    return "\n".join(one(name, arguments) for name, arguments in calls)


def _hermes(calls: Sequence[Called]) -> str:
    return _joined(
        calls,
        lambda name, arguments: (
            f"<tool_call>\n{_json({'name': name, 'arguments': arguments})}\n</tool_call>"
        ),
    )


def _bare_json(calls: Sequence[Called]) -> str:
    objects = [{"name": name, "parameters": arguments} for name, arguments in calls]
    return _json(objects[0] if len(objects) == 1 else objects)


def _llama(calls: Sequence[Called]) -> str:
    return "<|python_tag|>" + ";".join(
        _json({"name": name, "parameters": arguments}) for name, arguments in calls
    )


def _mistral(calls: Sequence[Called]) -> str:
    return "[TOOL_CALLS] " + _json(
        [{"name": name, "arguments": arguments} for name, arguments in calls]
    )


def _cohere(calls: Sequence[Called]) -> str:
    objects = [
        {"tool_call_id": str(at), "tool_name": name, "parameters": arguments}
        for at, (name, arguments) in enumerate(calls)
    ]
    return f"<|START_ACTION|>{_json(objects)}<|END_ACTION|>"


def _qwen_xml(calls: Sequence[Called]) -> str:
    def one(name: str, arguments: Mapping[str, Any]) -> str:
        values = "".join(
            f"<parameter={key}>\n{_raw(value)}\n</parameter>\n" for key, value in arguments.items()
        )
        return f"<tool_call>\n<function={name}>\n{values}</function>\n</tool_call>"

    return _joined(calls, one)


def _glm(between: str) -> Callable[[Sequence[Called]], str]:
    def one(name: str, arguments: Mapping[str, Any]) -> str:
        pairs = [
            f"<arg_key>{key}</arg_key>{between}<arg_value>{_raw(value)}</arg_value>"
            for key, value in arguments.items()
        ]
        return f"<tool_call>{between.join([name, *pairs, ''])}</tool_call>"

    return lambda calls: _joined(calls, one)


def _deepseek_v3(calls: Sequence[Called]) -> str:
    inner = "\n".join(
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{_json(arguments)}\n```<｜tool▁call▁end｜>"
        for name, arguments in calls
    )
    return f"<｜tool▁calls▁begin｜>{inner}<｜tool▁calls▁end｜>"


def _deepseek_v31(calls: Sequence[Called]) -> str:
    inner = "".join(
        f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{_json(arguments)}<｜tool▁call▁end｜>"
        for name, arguments in calls
    )
    return f"<｜tool▁calls▁begin｜>{inner}<｜tool▁calls▁end｜>"


def _dsml(wrapper: str) -> Callable[[Sequence[Called]], str]:
    def one(name: str, arguments: Mapping[str, Any]) -> str:
        values = "".join(
            f'<｜DSML｜parameter name="{key}" string="{"true" if isinstance(value, str) else "false"}">'
            f"{_raw(value)}</｜DSML｜parameter>\n"
            for key, value in arguments.items()
        )
        return f'<｜DSML｜invoke name="{name}">\n{values}</｜DSML｜invoke>'

    return lambda calls: f"<｜DSML｜{wrapper}>\n{_joined(calls, one)}\n</｜DSML｜{wrapper}>"


def _kimi_k2(calls: Sequence[Called]) -> str:
    inner = "".join(
        f"<|tool_call_begin|>functions.{name}:{at}<|tool_call_argument_begin|>{_json(arguments)}<|tool_call_end|>"
        for at, (name, arguments) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{inner}<|tool_calls_section_end|>"


def _minimax_m2(calls: Sequence[Called]) -> str:
    def one(name: str, arguments: Mapping[str, Any]) -> str:
        values = "".join(
            f'<parameter name="{key}">{_raw(value)}</parameter>\n'
            for key, value in arguments.items()
        )
        return f'<invoke name="{name}">\n{values}</invoke>'

    return f"<minimax:tool_call>\n{_joined(calls, one)}\n</minimax:tool_call>"


def _step3(calls: Sequence[Called]) -> str:
    def one(name: str, arguments: Mapping[str, Any]) -> str:
        values = "".join(
            f'<steptml:parameter name="{key}">{_raw(value)}</steptml:parameter>'
            for key, value in arguments.items()
        )
        return (
            f'<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">{values}'
            "</steptml:invoke><｜tool_call_end｜>"
        )

    return f"<｜tool_calls_begin｜>{_joined(calls, one)}<｜tool_calls_end｜>"


def _python(value: Any) -> str:
    if isinstance(value, str):
        return _json(value)
    return repr(value)


def _pythonic(calls: Sequence[Called]) -> str:
    return "[" + ", ".join(
        f"{name}({', '.join(f'{key}={_python(value)}' for key, value in arguments.items())})"
        for name, arguments in calls
    ) + "]"  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spelling:
    """A format that both programs read. `starts_only`: nothing may stand before its calls."""

    ours: str
    theirs: str
    print: Callable[[Sequence[Called]], str]
    starts_only: bool = False


SPELLINGS: Final = (
    Spelling("hermes", "qwen", _hermes),
    Spelling("json", "json", _bare_json, starts_only=True),
    Spelling("llama3_json", "llama", _llama),
    Spelling("mistral", "mistral", _mistral),
    Spelling("cohere", "cohere", _cohere),
    Spelling("qwen_xml", "qwen_xml", _qwen_xml),
    Spelling("glm", "glm45_moe", _glm("\n")),
    Spelling("glm", "glm47_moe", _glm("")),
    Spelling("deepseek_v3", "deepseek", _deepseek_v3),
    Spelling("deepseek_v31", "deepseek31", _deepseek_v31),
    Spelling("dsml", "deepseek32", _dsml("function_calls")),
    Spelling("dsml_v4", "deepseek_v4", _dsml("tool_calls")),
    Spelling("kimi_k2", "kimik2", _kimi_k2),
    Spelling("minimax_m2", "minimax_m2", _minimax_m2),
    Spelling("step3", "step3", _step3),
    Spelling("pythonic", "pythonic", _pythonic, starts_only=True),
)
"""Formats of calls."""

THOUGHTS: Final = (
    ("think", "deepseek_r1", "<think>", "</think>", True),
    ("think", "qwen3", "<think>", "</think>", False),
    ("think", "qwen3_thinking", "<think>", "</think>", True),
    ("think", "kimi_thinking", "<think>", "</think>", True),
    ("kimi", "kimi", "◁think▷", "◁/think▷", False),
    ("think", "glm45", "<think>", "</think>", False),
    ("think", "step3", "<think>", "</think>", True),
    ("think", "minimax", "<think>", "</think>", True),
    ("think", "nano_v3", "<think>", "</think>", False),
    ("minimax_m3", "minimax_m3", "<mm:think>", "</mm:think>", False),
    ("cohere_cmd", "cohere_cmd", "<|START_THINKING|>", "<|END_THINKING|>", False),
)
"""Formats of thoughts: ours, theirs, opener, closer, and whether theirs takes the opener for printed already."""
