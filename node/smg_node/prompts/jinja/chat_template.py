"""Chat template: one Jinja template, compiled once, rendered within limits of work, memory and
time.

`ChatTemplate` takes any text. What comes out of `render` is the text the reference implementation
would print, or a `TemplateError`; never another exception, and never more work, memory or time than
`TemplateLimits` allow. Everything a template does is paid for while it does it (see
`meter_injection`), so a template that loops without printing stops as surely as one that prints too
much.
"""

import hashlib
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from traceback import clear_frames
from typing import Any, Literal, TypeAlias

from jinja2 import meta, nodes
from jinja2.exceptions import TemplateSyntaxError

from smg_node.prompts.jinja.meter_injection import rewrite
from smg_node.prompts.jinja.prompt_skeleton import Form
from smg_node.prompts.jinja.render_budget import LimitError, Meter
from smg_node.prompts.jinja.render_context import ChatContext
from smg_node.prompts.jinja.sandbox import ChatEnvironment, RefusedError
from smg_node.prompts.jinja.symbolic_run import Dates, traced
from smg_node.prompts.jinja.symbolic_text import Notes

FailureKind: TypeAlias = Literal["compile", "raised", "broken", "work", "time", "output", "depth"]

_MESSAGE_MAX = 500
# Pieces joined at a time: enough for most chats in one go.
_BATCH = 512


class TemplateError(Exception):
    """A template did not make a text.

    `kind` says why: it cannot be compiled; it refused the conversation (`raised`, the message is its
    own); it went wrong (`broken`); or it asked for too much work, time, output or depth.
    """

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message


@dataclass(frozen=True, slots=True)
class TemplateLimits:
    """Limits of one template and its renders; sizes in UTF-8 bytes.

    `nodes_max` bounds the syntax tree, and with it the time to compile: 1 s for about 25,000 nodes.
    Chat templates have one node for every 8 to 12 bytes.
    """

    source_max_bytes: int = 1 << 20
    nodes_max: int = 50_000
    output_max_bytes: int = 16 << 20
    render_max_s: float = 2.0


class ChatTemplate:
    """A compiled template. Safe to share between threads; holds no render's state."""

    def __init__(
        self, source: str, *, limits: TemplateLimits, monotonic_s: Callable[[], float]
    ) -> None:
        """Compile `source`; `TemplateError` of kind `compile` if that cannot be done."""
        raw = source.encode("utf-8", "surrogatepass")
        if len(raw) > limits.source_max_bytes:
            raise TemplateError(
                "compile",
                f"the chat template has {len(raw)} bytes, more than {limits.source_max_bytes}",
            )
        self.source = source
        self.digest = hashlib.sha256(raw).hexdigest()
        self._limits = limits
        self._monotonic_s = monotonic_s
        self._environment = ChatEnvironment()
        try:
            metered = self._environment.parse(source)
            rewrite(metered, nodes_max=limits.nodes_max)
            compiled = self._environment.from_string(metered)
            self.variables = frozenset(meta.find_undeclared_variables(self.tree()))
        except TemplateSyntaxError as error:
            raise TemplateError(
                "compile",
                _clip(f"the chat template is wrong in line {error.lineno}: {error.message}"),
            ) from error
        # A door: any text may stand in a template, and the compilers behind Jinja fail on odd ones in
        # many ways (nesting, integers of 5,000 digits, unassignable names).
        except Exception as error:
            raise TemplateError(
                "compile", _clip(f"the chat template cannot be compiled: {_said(error)}")
            ) from error
        self._root: Callable[[ChatContext], Iterator[str]] = compiled.root_render_func
        self._line_of = compiled.get_corresponding_lineno
        self._constants: dict[str, Any] = dict(self._environment.globals)

    def tree(self) -> nodes.Template:
        """Return the template's syntax tree, parsed anew."""
        return self._environment.parse(self.source)

    def render(
        self,
        variables: Mapping[str, Any],
        *,
        limits: TemplateLimits | None = None,
        given: Container[int] = (),
        rest: Callable[[], None] | None = None,
    ) -> str:
        """Return the text for `variables`; it can be encoded as UTF-8. Raises `TemplateError`.

        `limits` replaces the template's own for this once. `given` are the `id`s of variables' parts
        that came as JSON and may be remembered as text; they must outlive the call. `rest` is called after every
        millisecond of work or so.
        """
        limits = limits or self._limits
        meter = Meter(
            output_max=limits.output_max_bytes,
            render_max_s=limits.render_max_s,
            monotonic_s=self._monotonic_s,
            given=given,
            rest=rest,
        )
        environment = self._environment
        context = ChatContext(
            environment,
            {**self._constants, **variables},
            environment.eval_context,
            meter,
            environment.json_texts,
        )
        try:
            return _collect(self._root(context), limits.output_max_bytes)
        except RefusedError as error:
            raise TemplateError("raised", _clip(str(error))) from error
        except LimitError as error:
            # The error is kept until it is told; what the template had made by then is not.
            clear_frames(error.__traceback__)
            raise TemplateError(error.reason, f"the chat template was stopped: {error}") from error
        # A door: a template is untrusted code; whatever it raises is its failure.
        except Exception as error:
            where = self._line(error)
            clear_frames(error.__traceback__)
            raise TemplateError(
                "broken", _clip(f"the chat template failed{where}: {_said(error)}")
            ) from error
        finally:
            # Macros of the template know the context, and it them: with the conversation's texts.
            context.vars.clear()

    def trace(self, variables: Mapping[str, Any], notes: Notes, dates: Dates) -> Form | None:
        """Return the skeleton of what is printed for variables with symbolic texts in them, None if
        it has none.

        `notes` are of these texts. It ends sooner or later as `render` does.
        """
        limits = self._limits
        meter = Meter(
            output_max=limits.output_max_bytes,
            render_max_s=limits.render_max_s,
            monotonic_s=self._monotonic_s,
        )
        try:
            pieces = traced(self._root, {**variables, "strftime_now": dates}, meter)
        # A door: what cannot be followed, and whatever else a stranger's program does, is no form.
        except Exception as error:
            clear_frames(error.__traceback__)
            return None
        return Form(
            pieces,
            list(notes.asked),
            list(dates.said.items()),
            output_max_bytes=limits.output_max_bytes,
            work_left=meter.left,
            touched=notes.touched,
        )

    def _line(self, error: BaseException) -> str:
        """Return in which line of the template `error` happened, as words, if that is known."""
        line = None
        trace = error.__traceback__
        while trace is not None:
            if "__jinja_template__" in trace.tb_frame.f_globals:
                line = self._line_of(trace.tb_lineno)
            trace = trace.tb_next
        return "" if line is None else f" in line {line}"


def _collect(pieces: Iterator[str], most: int) -> str:
    """Join what is printed, a few pieces at a time, within the largest output in bytes."""
    done: list[str] = []
    total = 0
    while batch := list(islice(pieces, _BATCH)):
        text = "".join(batch)
        total += len(text) if text.isascii() else len(text.encode())
        if total > most:
            raise LimitError("output", f"it prints more than {most} bytes")
        done.append(text)
    return done[0] if len(done) == 1 else "".join(done)


def _said(error: Exception) -> str:
    """Return what `error` says; some say nothing, and a key's own text may not be printable."""
    return str(error) or type(error).__name__


def _clip(message: str) -> str:
    """Return `message` without half surrogates and no longer than an error should be."""
    short = message if len(message) <= _MESSAGE_MAX else message[:_MESSAGE_MAX] + "…"
    return short.encode("utf-8", "replace").decode()
