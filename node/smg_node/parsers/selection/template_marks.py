"""Template marks: formats by strings in a chat template and special tokens of a tokenizer.

The rows are tried from the top; what decides is the first one that says something. Families borrow from one
another, so a mark that several of them share (a bare `<tool_call>`) decides nothing.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Rule: TypeAlias = Literal["if think", "if think else plain"]
"""Thoughts between `<think>` and `</think>` if the template has them; otherwise undecided, or none."""
_RULES: Final = ("if think", "if think else plain")


@dataclass(frozen=True, slots=True)
class Marks:
    """One row. All words of `template` and all `tokens` must be there; a token may have a suffix (`<a:b>`).

    `reasoning` is a format, a `Rule`, or "" where nothing is said; `form` is a variant of the calls.
    """

    template: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    reasoning: str = ""
    tools: str = ""
    form: str = ""

    def found(self, template: str, tokens: Collection[str], *, suffixed: Collection[str]) -> bool:
        """Whether the row speaks of this model. `suffixed` are its tokens without their suffixes."""
        return all(word in template for word in self.template) and all(
            token in tokens or token in suffixed for token in self.tokens
        )

    def why(self) -> str:
        """Return the marks in words for people."""
        parts = [f"{word!r} in the chat template" for word in self.template]
        return ", ".join([*parts, *(f"the token {token!r}" for token in self.tokens)])


def both(name: str, *, template: tuple[str, ...] = (), tokens: tuple[str, ...] = ()) -> Marks:
    """Return the row of a format that stands in both places."""
    return Marks(template, tokens, name, name)


MARKS: Final = (
    Marks(("<|iquest_assistant|>",), (), "think", "glm", "iquest"),
    Marks(("<｜GCML｜tool_calls>",), (), "think", "dsml_gcml"),
    both("k2_horizon", template=("<ifm|think>",)),
    both("k2_horizon", template=("<ifm|tool_calls>",)),
    both("apertus", tokens=("<|inner_prefix|>",)),
    both("gemma4", template=("<|channel>",)),
    both("harmony", tokens=("<|channel|>", "<|constrain|>")),
    both("muse", template=("<atem:function_calls>",)),
    both("kimi_k3", template=("<|open|>", "<|sep|>")),
    both("kimi_k3", tokens=("<|end_of_msg|>",)),
    both("inkling", tokens=("<|message_model|>",)),
    Marks((), ("<|tool_calls_section_begin|>", "<think>"), "think", "kimi_k2"),
    Marks((), ("<|tool_calls_section_begin|>",), "if think else plain", "kimi_k2"),
    both("minimax_m3", template=("<mm:think>",)),
    both("minimax_m3", template=("]<]minimax[>[",)),
    Marks(("<minimax:tool_call>",), (), "think", "minimax_m2"),
    Marks((), ("[TOOL_CALLS]", "[THINK]", "[ARGS]"), "mistral", "mistral", "v11"),
    Marks((), ("[TOOL_CALLS]", "[THINK]"), "mistral", "mistral"),
    Marks((), ("[TOOL_CALLS]", "[ARGS]"), "if think else plain", "mistral", "v11"),
    Marks((), ("[TOOL_CALLS]",), "if think else plain", "mistral"),
    Marks(("<｜DSML｜ calls>",), (), "think", "dsml_v41"),
    Marks(("<｜DSML｜tool_calls>",), (), "think", "dsml_v4"),
    Marks(("<｜DSML｜function_calls>",), (), "think", "dsml"),
    # Templates that put the token before the rest of each tag.
    Marks(("｜DSML｜", "function_calls>"), (), "think", "dsml"),
    Marks(("｜DSML｜", "tool_calls>"), (), "think", "dsml_v4"),
    Marks(("```json",), ("<｜tool▁calls▁begin｜>",), "if think", "deepseek_v3"),
    Marks((), ("<｜tool▁calls▁begin｜>",), "if think", "deepseek_v31"),
    Marks(("<steptml:",), (), "think", "step3"),
    Marks((), ("<|tool_call_start|>",), "if think", "lfm2"),
    both("seed_oss", template=("<seed:tool_call>",)),
    Marks(("<function name=", "<param name="), (), "think", "minicpm5"),
    both("hy_v3", tokens=("<tool_sep>",)),
    both("hy_v3", template=("<tool_calls>", "<arg_key>")),
    Marks(("[gMASK]<sop>",), (), "think", "glm"),
    Marks((), ("<arg_key>", "<arg_value>"), "think", "glm"),
    Marks(("<function=", "<parameter="), (), "if think", "qwen_xml"),
    Marks(("<TOOLCALL>",), (), "think", "nemotron_json"),
    Marks(("<cofl:",), ("<|START_THINKING|>",), "cohere_cmd", "cofl"),
    Marks((), ("<|START_THINKING|>",), "cohere_cmd", "cohere"),
    Marks(("<cofl:",), (), "cohere_cmd", "cofl"),
    Marks((), ("<|START_ACTION|>",), "cohere_cmd", "cohere"),
    Marks(("<function_calls>",), (), "if think", "olmo3"),
    Marks(("<start_function_call>",), (), "if think else plain", "functiongemma"),
    Marks((), ("<|action_start|>",), "if think else plain", "internlm"),
    Marks((), ("<|python_start|>",), "if think else plain", "pythonic"),
    Marks((), ("<|python_tag|>",), "if think else plain", "llama3_json"),
    Marks(("◁think▷",), (), "kimi", "plain"),
    Marks(("[BEGIN FINAL RESPONSE]",), (), "apriel"),
    Marks(("<|role_sep|>", "function call"), (), "if think", "gigachat3"),
    Marks(("<longcat_tool_call>",), (), "if think", "longcat"),
    Marks(("functools",), (), "if think", "phi4"),
    Marks(("<tool_calls>",), (), "if think", "tool_calls_json"),
    # Solar Open borrows the next row's opener, for calls of another form; nothing here reads them.
    Marks(("<|tool_calls|>", "<|tool_call:begin|>"), (), "if think", "plain"),
    Marks(("<|tool_calls|>",), (), "if think", "sarashina"),
    Marks(("<tool_call>[",), (), "if think", "granite"),
    Marks(("<tool_call>", '"arguments"'), (), "if think", "hermes"),
    Marks(("<think>",), (), "if think"),
    Marks(("</think>",), (), "if think"),
)

_SUFFIX: Final = re.compile(r"<([^:<>]+):[^<>]*>")


@dataclass(frozen=True, slots=True)
class Marked:
    """Formats by the marks; "" where they say nothing.

    `thinks` is whether the template prints the most common marks of thoughts; `only_so` whether it is all that
    `reasoning` rests on, so that a family's own way goes before it.
    """

    reasoning: str = ""
    why_reasoning: str = ""
    tools: str = ""
    why_tools: str = ""
    form: str = ""
    thinks: bool = False
    only_so: bool = False


def read_marks(template: str, tokens: Collection[str]) -> Marked:
    """Return what the marks of a model say."""
    thinks = "<think>" in template or "</think>" in template
    suffixed = {f"<{found[1]}>" for token in tokens if (found := _SUFFIX.fullmatch(token))}
    rows = [row for row in MARKS if row.found(template, tokens, suffixed=suffixed)]
    reasoning = why_reasoning = ""
    only_so = False
    for row in rows:
        reasoning = _ruled(row.reasoning, thinks=thinks)
        if reasoning:
            only_so = row.reasoning in _RULES and reasoning == "think"
            why_reasoning = "'<think>' in the chat template" if only_so else row.why()
            break
    called = next((row for row in rows if row.tools), Marks())
    return Marked(
        reasoning, why_reasoning, called.tools, called.why(), called.form, thinks, only_so
    )


def _ruled(reasoning: str, *, thinks: bool) -> str:
    if reasoning not in _RULES:
        return reasoning
    if thinks:
        return "think"
    return "plain" if reasoning == "if think else plain" else ""
