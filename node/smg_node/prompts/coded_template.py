"""Coded template: chat template written in code, for families whose checkpoint brings none.

It stands in the place of a `ChatTemplate`: it is given the same messages and variables and gives the same
kind of text, so that everything around it is the renderer's own. Which family a model is of stands in its
`config.json`. A checkpoint that has a template of its own is never rendered by code.
"""

import hashlib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.prompts.analysis.template_facts import TemplateFacts
from smg_node.prompts.encoders import deepseek, harmony, inkling, kimi_k3
from smg_node.prompts.encoders.conversation import Conversation, RefusedError
from smg_node.prompts.jinja.chat_template import TemplateError
from smg_node.prompts.jinja.sandbox import Today

Encode: TypeAlias = Callable[[Conversation], str]

OUTPUT_MAX: Final = 1 << 24
"""Characters of a prompt."""
_CONFIGURATION: Final = "config.json"
# Counts up when the text of any family changes: two nodes with the same digest print the same.
_VERSION: Final = 2
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class CodedTemplate:
    """Renderer of one family's prompts."""

    name: str
    encode: Encode
    facts: TemplateFacts
    source: str = ""
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(f"code {self.name} {_VERSION}".encode()).hexdigest()
        object.__setattr__(self, "digest", digest)

    def render(
        self,
        variables: Mapping[str, Any],
        *,
        given: Container[int] = (),
        rest: Callable[[], None] | None = None,
    ) -> str:
        """Return the prompt for the variables of a template; `TemplateError` if it cannot be made."""
        today = variables.get("strftime_now")
        conversation = Conversation(
            messages=variables["messages"],
            tools=variables.get("tools") or (),
            variables=variables,
            prompted=bool(variables.get("add_generation_prompt")),
            continued=bool(variables.get("continue_final_message")),
            today=today if isinstance(today, Today) else Today(_EPOCH),
        )
        try:
            text = self.encode(conversation)
        except RefusedError as refusal:
            raise TemplateError("raised", str(refusal)) from refusal
        if len(text) > OUTPUT_MAX:
            raise TemplateError("output", "the prompt is too long")
        return text


def coded_template(bundle: TokenizerBundle) -> CodedTemplate | None:
    """Return the code that renders a model's prompts, None for a family that there is none for."""
    names = _families(bundle)
    return next((template for template, types in _KNOWN if not names.isdisjoint(types)), None)


def _families(bundle: TokenizerBundle) -> frozenset[str]:
    raw = bundle.files.get(_CONFIGURATION)
    if raw is None:
        return frozenset()
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return frozenset()
    if not isinstance(found, dict):
        return frozenset()
    architectures = found.get("architectures")
    names: Sequence[Any] = architectures if isinstance(architectures, list) else ()
    return frozenset(name for name in (found.get("model_type"), *names) if isinstance(name, str))


_KNOWN: Final[tuple[tuple[CodedTemplate, frozenset[str]], ...]] = (
    (
        CodedTemplate("harmony", harmony.encode, harmony.FACTS),
        frozenset(("gpt_oss", "GptOssForCausalLM")),
    ),
    (
        CodedTemplate("kimi_k3", kimi_k3.encode, kimi_k3.FACTS),
        frozenset(("kimi_k3", "KimiK3ForConditionalGeneration")),
    ),
    (
        CodedTemplate("inkling", inkling.encode, inkling.FACTS),
        frozenset(("inkling", "inkling_mm_model", "InklingForConditionalGeneration")),
    ),
    (
        CodedTemplate("deepseek_v32", deepseek.encode_v32, deepseek.V32_FACTS),
        frozenset(("deepseek_v32", "DeepseekV32ForCausalLM")),
    ),
    (
        CodedTemplate("deepseek_v4", deepseek.encode_v4, deepseek.V4_FACTS),
        frozenset(("deepseek_v4", "DeepseekV4ForCausalLM")),
    ),
)
