"""Renderer of one model: conversations to prompt text, by its chat templates or known skeletons.

A `Renderer` holds a model's templates, compiled, with what was found out about each, and the texts of
its special tokens. Rendering is pure: the time of day is an argument, and one request sees one time.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.generation.request import ChatPrompt, Turn, media_of
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.prompts.analysis.template_facts import TemplateFacts, find_facts
from smg_node.prompts.analysis.template_selection import TemplateTexts, find_templates
from smg_node.prompts.analysis.thinking_variables import thinking_variables
from smg_node.prompts.call_ids import with_ids
from smg_node.prompts.coded_template import CodedTemplate, coded_template
from smg_node.prompts.continued_message import cut_open, open_ended
from smg_node.prompts.jinja.chat_template import ChatTemplate, TemplateError, TemplateLimits
from smg_node.prompts.jinja.prompt_skeleton import Forms, form_of
from smg_node.prompts.jinja.sandbox import Moment, Today
from smg_node.prompts.jinja.symbolic_run import Dates
from smg_node.prompts.jinja.symbolic_text import Notes
from smg_node.prompts.message_forms import Message, later_systems_as_reminders, other_forms
from smg_node.prompts.messages import (
    Warn,
    documents_handed,
    symbolic_messages,
    to_messages,
    to_tools,
    with_rests,
)

if TYPE_CHECKING:
    # Loaded with the first prompt that has more than text.
    from smg_node.prompts.media_forms import MediaForms, PicturedPrompt

# A template from a request is compiled while others wait for the interpreter: 0.6 s at worst.
REQUEST_SOURCE_MAX_BYTES: Final = 1 << 16
REQUEST_NODES_MAX: Final = 10_000
# Templates from requests that are remembered, the latest first to stay.
_REMEMBERED_MAX: Final = 32
_KWARGS_MAX: Final = 64
_KWARGS_PATH: Final = "chat_template_kwargs"
_OWNED: Final = frozenset(
    (
        *("messages", "tools", "documents", "add_generation_prompt", "continue_final_message"),
        *("bos_token", "eos_token", "pad_token", "unk_token", "chat_template", "tokenize"),
        *("raise_exception", "strftime_now", "range", "dict", "namespace", "cycler", "joiner"),
    )
)


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """Operator's options of rendering."""

    allow_from_request: bool = False
    limits: TemplateLimits = field(default_factory=TemplateLimits)


@dataclass(frozen=True, slots=True)
class _Known:
    """A compiled template and what was found out about it."""

    template: ChatTemplate | CodedTemplate
    facts: TemplateFacts
    brought: bool
    """Whether the request brought it, so that its faults are the client's."""


def _silent(_what: str, _parameter: str = "", /) -> None:
    """Drop a warning."""


class Renderer:
    """Renders the conversations of one model. Safe to share between threads.

    `template` is the one that an ordinary chat takes. `call_ids` is the family whose form ids of calls get, see
    `with_ids`; `thinking_key` what the operator says of the switch for thoughts, see `find_switch`.
    """

    def __init__(
        self,
        texts: TemplateTexts,
        special_tokens: Mapping[str, str],
        *,
        options: RenderOptions,
        monotonic_s: Callable[[], float],
        call_ids: str = "",
        thinking_key: str = "",
        coded: CodedTemplate | None = None,
    ) -> None:
        """Compile and examine every template; INVALID_REQUEST if there is none.

        `coded` stands in where there is no text of a template.

        INTERNAL `chat_template_broken` for one that cannot be compiled.
        """
        self._texts = texts
        self._tokens = dict(special_tokens)
        self._owned = _OWNED | frozenset(self._tokens)
        self._options = options
        self._monotonic_s = monotonic_s
        self._call_ids = call_ids
        self._thinking_key = thinking_key
        self._brought: dict[str, _Known] = {}
        self._named = {name: self._own(name, text) for name, text in texts.texts.items()}
        if not self._named and coded is not None:
            self._texts = TemplateTexts({"default": ""}, coded.name)
            self._named["default"] = _Known(coded, coded.facts, brought=False)
        if not self._named:
            raise invalid("its tokenizer files hold no chat template", "messages")
        default = self._named.get("default")
        traceable = default is not None and isinstance(default.template, ChatTemplate)
        self.forms = Forms() if traceable else None
        self.template = next(
            known.template
            for name in ("default", "tool_use", *sorted(self._named))
            if (known := self._named.get(name)) is not None
        )

    def name_calls(self, family: str) -> None:
        """Give ids of calls the form of that family from now on; see `with_ids`."""
        self._call_ids = family

    def facts(self, name: str = "default") -> TemplateFacts:
        """Return what was found out about the template of that name."""
        return self._named[name].facts

    def known(self, prompt: ChatPrompt, *, now_ms: int) -> str | None:
        """Return the text of a prompt whose form was found before, at the price of joining it; None for any other.

        `now_ms` is what the template takes for the present. What is nothing but turns of a plain role and a string,
        `forms` may be asked for.
        """
        forms = self.forms
        if forms is None:
            return None
        found = form_of(prompt)
        return None if found is None else forms.text(found[0], found[1], Moment(now_ms))

    def render(
        self,
        prompt: ChatPrompt,
        *,
        now: datetime,
        warn: Warn = _silent,
        rest: Callable[[], None] | None = None,
        media: "MediaForms | None" = None,
        model: str = "",
    ) -> str:
        """Return the prompt's text, beginning-of-text token and all if the template prints one.

        `now` is what the template takes for the present. INVALID_REQUEST if the template refuses the
        conversation (its own message) or fails on it, and for what the prompt may not ask; TOO_LARGE
        if the text would be longer than a prompt may be. `warn` is told of what was mended, and of a wish
        about thinking that this template cannot honour. `rest` is what a thread does after every millisecond or so.
        `media` is how the model sees media, None if it sees none, which is refused at the part (`model` is its name).
        A prompt with pictures holds the anchor once for each, in their order; INVALID_REQUEST if it cannot be so.
        """
        self._check(prompt)
        pictured = _pictured(prompt, media, model) if media_of(prompt.turns) else None
        known = self._choose(prompt)
        if prompt.handed is not None and prompt.documents is None and known.facts.takes_documents:
            prompt = documents_handed(prompt, prompt.handed)
        turns: Iterable[Turn] = with_ids(prompt.turns, self._call_ids)
        if rest is not None:
            turns = with_rests(turns, rest)
        messages = to_messages(turns, known.facts, warn, media)
        if prompt.systems_stay and not known.facts.later_systems:
            messages = later_systems_as_reminders(messages)
        tools = to_tools(prompt.tools, known.facts)
        thinking = thinking_variables(prompt.thinking, known.facts.switch, prompt.kwargs)
        if thinking.unheeded:
            warn(thinking.unheeded, prompt.thinking.where)
        variables: dict[str, Any] = {
            **self._tokens,
            **_choice(prompt),
            **thinking.variables,
            **prompt.kwargs,
            "tools": tools,
            "documents": None if prompt.documents is None else list(prompt.documents),
            "add_generation_prompt": prompt.add_generation_prompt,
            "continue_final_message": prompt.continue_final_message,
            "strftime_now": Today(now),
        }
        if prompt.continue_final_message:
            messages[-1] = open_ended(messages[-1], known.facts)
        try:
            mended = pictured is None or pictured.mendable
            text = _render(known, messages, variables, _given(tools), rest, mended=mended)
        except TemplateError as failure:
            raise _error(failure, prompt, known) from failure
        if pictured is not None:
            pictured.check(text)
        if not thinking.unheeded:  # what must be said each time
            self._learn(prompt, known, messages, variables, text)
        return cut_open(text, prompt.where) if prompt.continue_final_message else text

    def _learn(
        self,
        prompt: ChatPrompt,
        known: _Known,
        messages: list[Message],
        variables: dict[str, Any],
        text: str,
    ) -> None:
        """Look for the skeleton of a prompt that was rendered as `text`, if it may have one that is
        not known.
        """
        found, forms, template = form_of(prompt), self.forms, known.template
        if found is None or forms is None or not isinstance(template, ChatTemplate):
            return
        key, texts = found
        if not forms.wanted(key):
            return
        notes, dates = Notes(), Dates(variables["strftime_now"])
        hidden = symbolic_messages(messages, texts, notes)
        form = hidden and template.trace({**variables, "messages": hidden}, notes, dates)
        if form and form.text(texts, dates) == text:
            forms.learn(key, form)

    def _check(self, prompt: ChatPrompt) -> None:
        if len(prompt.kwargs) > _KWARGS_MAX:
            raise invalid(f"at most {_KWARGS_MAX} template variables are taken", _KWARGS_PATH)
        for name in prompt.kwargs:
            if name in self._owned or name.startswith("_"):
                raise invalid(
                    f"{name!r} belongs to the server and cannot be set for a template",
                    f"{_KWARGS_PATH}.{name}",
                )
        if not prompt.continue_final_message:
            return
        if prompt.add_generation_prompt:
            raise invalid(
                "continue_final_message and add_generation_prompt exclude each other",
                "continue_final_message",
            )
        last = prompt.turns[-1] if prompt.turns else None
        if last is None or last.role != "assistant" or last.calls:
            raise invalid(
                "continue_final_message needs an assistant message without tool calls at the end",
                "continue_final_message",
            )

    def _choose(self, prompt: ChatPrompt) -> _Known:
        if prompt.template is not None:
            return self._asked_for(prompt.template)
        documents = prompt.documents is not None or prompt.handed is not None
        name = self._texts.choose(tools=bool(prompt.tools), documents=documents)
        if name is None:
            raise invalid(
                f"this model has chat templates for {', '.join(sorted(self._named))} only",
                prompt.where,
            )
        return self._named[name]

    def _asked_for(self, template: str) -> _Known:
        if not self._options.allow_from_request:
            raise invalid(
                "a template in the request is not allowed here (templates.allow_from_request)",
                "chat_template",
                code="unsupported_parameter",
            )
        known = self._named.get(template) or self._brought.get(template)
        if known is None:
            known = self._compile_brought(template)
            for oldest in list(self._brought)[: 1 - _REMEMBERED_MAX]:
                self._brought.pop(oldest, None)
            self._brought[template] = known
        return known

    def _compile_brought(self, text: str) -> _Known:
        limits = self._options.limits
        tighter = TemplateLimits(
            source_max_bytes=min(limits.source_max_bytes, REQUEST_SOURCE_MAX_BYTES),
            nodes_max=min(limits.nodes_max, REQUEST_NODES_MAX),
            output_max_bytes=limits.output_max_bytes,
            render_max_s=limits.render_max_s,
        )
        try:
            return self._compile(text, tighter, brought=True)
        except TemplateError as failure:
            raise invalid(failure.message, "chat_template") from failure

    def _own(self, name: str, text: str) -> _Known:
        try:
            return self._compile(text, self._options.limits, brought=False)
        except TemplateError as failure:
            raise SmgError(
                ErrorKind.INTERNAL,
                f"template {name!r} from {self._texts.origin}: {failure.message}",
                code="chat_template_broken",
            ) from failure

    def _compile(self, text: str, limits: TemplateLimits, *, brought: bool) -> _Known:
        template = ChatTemplate(text, limits=limits, monotonic_s=self._monotonic_s)
        facts = find_facts(
            template, self._tokens, thinking_key="" if brought else self._thinking_key
        )
        return _Known(template, facts, brought)


def renderer_of(
    bundle: TokenizerBundle,
    special_tokens: Mapping[str, str],
    *,
    configured: str | None,
    options: RenderOptions,
    monotonic_s: Callable[[], float],
    call_ids: str = "",
    thinking_key: str = "",
) -> Renderer:
    """Return the renderer for a model's files; `configured` is the operator's own template text.

    `call_ids` and `thinking_key` are as in `Renderer`.

    A model that brings no template is rendered by code, where there is some for its family. INVALID_REQUEST
    if there is none, INTERNAL `chat_template_broken` if its template is a bad one.
    """
    texts = find_templates(bundle, configured)
    return Renderer(
        texts,
        special_tokens,
        options=options,
        monotonic_s=monotonic_s,
        call_ids=call_ids,
        thinking_key=thinking_key,
        coded=coded_template(bundle),
    )


def _pictured(prompt: ChatPrompt, media: "MediaForms | None", model: str) -> "PicturedPrompt":
    from smg_node.prompts.media_forms import PicturedPrompt

    return PicturedPrompt(prompt, media, model)


def _choice(prompt: ChatPrompt) -> dict[str, str]:
    """Return the `tool_choice` variable, which few templates print; nothing for `auto`."""
    mode = prompt.choice.mode
    if not prompt.tools or mode == "auto":
        return {}
    return {"tool_choice": "none" if mode == "none" else "required"}


def _given(tools: list[Message] | None) -> frozenset[int]:
    if tools is None:
        return frozenset()
    functions = [tool["function"] for tool in tools]
    parameters = [function["parameters"] for function in functions]
    return frozenset(id(part) for part in (*tools, *functions, *parameters))


def _render(
    known: _Known,
    messages: list[Message],
    variables: dict[str, Any],
    given: frozenset[int],
    rest: Callable[[], None] | None,
    *,
    mended: bool,
) -> str:
    """Render the messages as they are; if the template refuses them, in the forms it may accept, if `mended`."""
    try:
        return known.template.render({**variables, "messages": messages}, given=given, rest=rest)
    except TemplateError as failure:
        if failure.kind != "raised":
            raise
        refusal = failure
    for form in other_forms(messages, known.facts) if mended else ():
        try:
            return known.template.render({**variables, "messages": form}, given=given, rest=rest)
        except TemplateError as failure:
            if failure.kind not in ("raised", "broken"):
                raise
    raise refusal


def _error(failure: TemplateError, prompt: ChatPrompt, known: _Known) -> SmgError:
    if failure.kind in ("raised", "broken"):
        return invalid(failure.message, prompt.where)
    if known.brought:
        return invalid(failure.message, "chat_template")
    if failure.kind == "time":
        return SmgError(ErrorKind.INTERNAL, failure.message, code="chat_template_timeout")
    return SmgError(ErrorKind.TOO_LARGE, failure.message, where=prompt.where)
