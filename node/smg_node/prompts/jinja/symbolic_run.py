"""Symbolic run: environment in which a compiled template runs once with texts it cannot see.

The same compiled code runs as for any prompt. What it asks its environment for (attributes, items, calls, filters,
tests, joining) comes from here, and is the ordinary thing for ordinary values. Where an unseen text is among the
values, only what is listed here is done; everything else ends the run. See `symbolic_text`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from types import FunctionType, GeneratorType
from typing import Any, Final

from jinja2 import Environment
from jinja2.nodes import EvalContext
from jinja2.runtime import Context, Macro, Undefined
from jinja2.utils import Namespace

from smg_node.prompts.jinja.filters import FILTERS
from smg_node.prompts.jinja.metered_operations import METERING
from smg_node.prompts.jinja.predicates import TESTS
from smg_node.prompts.jinja.render_budget import Meter
from smg_node.prompts.jinja.render_context import ChatContext
from smg_node.prompts.jinja.safe_values import SCALARS, show
from smg_node.prompts.jinja.sandbox import ChatEnvironment, Today
from smg_node.prompts.jinja.symbolic_text import (
    OPERATIONS,
    Joined,
    Opaque,
    Question,
    SymbolicText,
    joined,
)
from smg_node.prompts.jinja.symbolic_text import UntraceableError as Untraceable

Root = Callable[[ChatContext], Iterator[Any]]

_DEPTH_MAX: Final = 32
_WITHOUT_TEXTS: Final = (Undefined, Context, EvalContext, Environment, range, Today)
# They go by the shape of a list or dict, and never look at what is in it but through tests and attributes.
_STRUCTURAL: Final = frozenset(
    {
        *("length", "count", "first", "last", "list", "reverse", "default", "d", "items"),
        *("selectattr", "rejectattr"),
    }
)
# What `is …` says of every text.
_OF_TEXTS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("string", "defined", "iterable", "sequence"), True),
    **dict.fromkeys(("undefined", "none", "mapping", "number", "integer", "float"), False),
    **dict.fromkeys(("boolean", "callable", "true", "false", "escaped"), False),
}
_EQUAL: Final = frozenset({"eq", "equalto", "=="})
_UNEQUAL: Final = frozenset({"ne", "!="})
_QUESTIONS: Final[Mapping[str, Question]] = {"startswith": "starts", "endswith": "ends"}


class Dates:
    """`strftime_now`, which remembers what it was asked for and what it said."""

    def __init__(self, today: Today) -> None:
        self._today = today
        self.said: dict[str, str] = {}

    def __call__(self, format: str) -> str:  # noqa: A002  # the reference's own name for it
        """Return the time in `format`."""
        said = self.said[format] = self._today(format)
        return said


class _Method:
    """A method of an unseen text, about to be called."""

    __slots__ = ("name", "unseen")

    def __init__(self, unseen: SymbolicText, name: str) -> None:
        self.unseen = unseen
        self.name = name

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if kwargs or len(args) > 1 or any(type(each) is not str for each in args):
            raise Untraceable(f"it calls {self.name} in a way that is not followed")
        if self.name in OPERATIONS:
            return self.unseen.operated(self.name, args[0] if args else None)
        question = _QUESTIONS.get(self.name)
        if question is None or not args:
            raise Untraceable(f"it calls {self.name} of a text")
        return self.unseen.notes.ask(self.unseen, question, args[0])


class TracingEnvironment(ChatEnvironment):
    """Environment of a run with symbolic texts; one for each run."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = {name: _filter(name, one) for name, one in {**FILTERS, **METERING}.items()}
        self.tests = {name: _test(name, one) for name, one in TESTS.items()}
        self.concat = joined  # type: ignore[assignment]  # what templates join may be unseen

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an attribute; of an unseen text only a method that is followed."""
        if isinstance(obj, Opaque):
            if type(obj) is SymbolicText and (attribute in OPERATIONS or attribute in _QUESTIONS):
                return _Method(obj, attribute)
            raise Untraceable(f"it takes {attribute} of a text")
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item; never one of, or named by, an unseen text."""
        if isinstance(obj, Opaque) or isinstance(argument, Opaque):
            raise Untraceable("it takes an item of a text")
        return super().getitem(obj, argument)

    # Mangled as in Jinja, so that a template may call a macro with an argument named `self`.
    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Call something; with unseen texts only macros, namespaces and their own methods."""
        if type(__obj) is _Method:
            kwargs.pop("_loop_vars", None)
            kwargs.pop("_block_vars", None)
            return __obj.call(args, kwargs)
        if type(__obj) is Dates:
            return __obj(*args)
        if type(__obj) is not Macro and (holds_symbolic(args) or holds_symbolic(kwargs)):
            if __obj is not Namespace:
                raise Untraceable(f"it calls a {type(__obj).__name__} with a text")
            kwargs.pop("_loop_vars", None)
            kwargs.pop("_block_vars", None)
            return Namespace(*args, **kwargs)
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Multiply, raise or format; never unseen texts."""
        if holds_symbolic((left, right)):
            raise Untraceable(f"it does {operator} with a text")
        return super().call_binop(context, operator, left, right)


def traced(root: Root, variables: dict[str, Any], meter: Meter) -> list[Any]:
    """Return what a compiled template prints for variables with unseen texts in them: strings, and these.

    Raises whatever the template does, and UntraceableError.
    """
    assert isinstance(root, FunctionType)
    environment = TracingEnvironment()
    # The very code of the template, told of another environment; and what it prints is not made a text.
    rebound = FunctionType(
        root.__code__,
        {**root.__globals__, "environment": environment, "str": _printed},
        root.__name__,
        tuple(
            environment if isinstance(each, Environment) else each
            for each in root.__defaults__ or ()
        ),
        root.__closure__,
    )
    everything = {**environment.globals, **variables}
    context = ChatContext(
        environment, everything, environment.eval_context, meter, environment.json_texts
    )
    return list(rebound(context))


def holds_symbolic(value: Any, depth: int = 0) -> bool:
    """Whether an unseen text is, or may be, in `value`."""
    kind = type(value)
    if kind in SCALARS or isinstance(value, _WITHOUT_TEXTS):
        return False
    if kind is dict:
        value = (*value.keys(), *value.values())
    elif kind is not list and kind is not tuple:
        return True
    if depth > _DEPTH_MAX:
        return True
    return any(holds_symbolic(each, depth + 1) for each in value)


def _printed(value: Any) -> Any:
    """Stand in for `str` around what is printed: that is text already, seen or not."""
    return value if isinstance(value, Opaque) else str(value)


def _filter(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    known = _FOLLOWED.get(name)

    @wraps(plain)  # also its mark of whether it wants the context
    def filtered(*args: Any, **kwargs: Any) -> Any:
        if not (holds_symbolic(args) or holds_symbolic(kwargs)):
            return plain(*args, **kwargs)
        if known is not None:
            return known(*args, **kwargs)
        if name not in _STRUCTURAL or any(isinstance(each, Opaque) for each in args[2:]):
            raise Untraceable(f"it puts a text through {name}")
        return plain(*args, **kwargs)

    return filtered


def _test(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(plain)
    def tested(*args: Any, **kwargs: Any) -> Any:
        if not (holds_symbolic(args) or holds_symbolic(kwargs)):
            return plain(*args, **kwargs)
        if kwargs:
            raise Untraceable(f"it asks whether a text is {name}")
        value, *others = [each for each in args if not isinstance(each, (Context, EvalContext))]
        if name in _OF_TEXTS and not others:
            return _OF_TEXTS[name] if isinstance(value, Opaque) else plain(*args)
        if type(value) is SymbolicText and len(others) == 1 and name in _EQUAL | _UNEQUAL:
            return (value == others[0]) is (name in _EQUAL)
        raise Untraceable(f"it asks whether a text is {name}")

    return tested


def _same(_context: Any, value: Any) -> Any:
    """Return what is only paid for."""
    return value


def _shown(_context: Any, value: Any) -> Any:
    if isinstance(value, (SymbolicText, Joined)):
        return joined(value.parts)
    raise Untraceable("it prints a list with a text in it")


def _glued(context: ChatContext, values: tuple[Any, ...]) -> Any:
    return joined(
        [
            value if isinstance(value, Opaque) or type(value) is str else _seen(context, value)
            for value in values
        ]
    )


def _seen(context: ChatContext, value: Any) -> str:
    if holds_symbolic(value):
        raise Untraceable("it prints a list with a text in it")
    return show(context.meter, value)


def _trimmed(*args: Any) -> Any:
    value, *characters = [each for each in args if not isinstance(each, (Context, EvalContext))]
    if type(value) is not SymbolicText or any(type(each) is not str for each in characters):
        raise Untraceable("it trims in a way that is not followed")
    return value.operated("strip", characters[0] if characters else None)


def _listed(_context: Any, value: Any) -> list[Any]:
    if isinstance(value, (list, tuple, GeneratorType)):
        return list(value)
    raise Untraceable("it makes a list of a text")


_FOLLOWED: Final[Mapping[str, Callable[..., Any]]] = {
    "_shown": _shown,
    "_made": _same,
    "_compared": _same,
    "_searched": _same,
    "_ticked": _same,
    "_glued": _glued,
    "_listed": _listed,
    "trim": _trimmed,
}
