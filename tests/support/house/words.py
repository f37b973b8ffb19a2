"""House rules about size and words."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from support.house.tree import Finding, Function, Rule, Source, functions

FILE_LINES_MAX: Final = 400
FUNCTION_LINES_MAX: Final = 60


def modules_say_what_they_are_for(source: Source) -> Iterator[Finding]:
    """A module starts with one sentence."""
    if not source.is_python or (source.is_test and "/support/" not in source.path):
        return
    text = ast.get_docstring(source.tree)
    if not text:
        yield Finding(source.path, 1, "no module docstring: one sentence, what it is for")
    elif text.split("\n\n")[0].rstrip()[-1] not in ".:?!":
        yield Finding(source.path, 1, "the module docstring starts with no whole sentence")


def files_are_short(source: Source) -> Iterator[Finding]:
    """One file, one noun."""
    if source.is_python and len(source.lines) > FILE_LINES_MAX:
        why = f"{len(source.lines)} lines; {FILE_LINES_MAX} is the wall"
        yield Finding(source.path, FILE_LINES_MAX, why)


def functions_are_short(source: Source) -> Iterator[Finding]:
    """One function, one thought."""
    for function in functions(source):
        assert function.end_lineno is not None
        lines = function.end_lineno - function.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            why = f"{function.name} has {lines} lines; {FUNCTION_LINES_MAX} is the wall"
            yield Finding(source.path, function.lineno, why, function.name)


_EMPTY_WORDS: Final = frozenset(
    [
        "adapter",
        "adapters",
        "backend",
        "backends",
        "handler",
        "handlers",
        "helper",
        "helpers",
        "info",
        "infos",
        "manager",
        "managers",
        "strategy",
        "strategies",
        "util",
        "utils",
        "utility",
        "utilities",
    ]
)
_EMPTY_LAST_WORDS: Final = _EMPTY_WORDS | {"data"}
# Words of the engines' contracts, which we implement and cannot rename.
_PUBLISHED: Final = frozenset({"GetModelInfo", "GetServerInfo"})
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def names_mean_something(source: Source) -> Iterator[Finding]:
    """Files, classes and functions are called by the words of the design, not by empty ones.

    Names of tests are sentences, and free.
    """
    if not source.is_python:
        return
    stem = source.path.rpartition("/")[2].removesuffix(".py")
    names = [(1, stem)]
    names += [
        (node.lineno, node.name)
        for node in source.nodes
        if isinstance(node, ast.ClassDef | Function)
    ]
    for line, name in names:
        if (source.is_test and name.startswith("test_")) or name in _PUBLISHED:
            continue
        words = [word.lower() for word in _WORD.findall(name)]
        empty = {word for word in words if word in _EMPTY_WORDS}
        empty |= {word for word in words[-1:] if word in _EMPTY_LAST_WORDS}
        for word in sorted(empty):
            yield Finding(source.path, line, f"{name}: {word!r} says nothing; what is it?", name)


_NEEDS_UNIT: Final = re.compile(r"(^|_)(age|delay|deadline|duration|grace|interval|timeout|ttl)$")


def numbers_have_units(source: Source) -> Iterator[Finding]:
    """A parameter or field that holds a time says in which unit."""
    if not source.is_product:
        return
    for node in source.nodes:
        if isinstance(node, ast.arg):
            name, annotation = node.arg, node.annotation
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name, annotation = node.target.id, node.annotation
        else:
            continue
        if annotation is None or not _NEEDS_UNIT.search(name.lower()):
            continue
        if {"float", "int"} & set(re.findall(r"\w+", ast.unparse(annotation))):
            why = f"{name}: in what unit? {name}_s, {name}_ms"
            yield Finding(source.path, node.lineno, why, name)


def _is_truth_value(annotation: ast.expr) -> bool:
    # Every annotation of the product is asked, so what cannot be one is not spelled out.
    short = isinstance(annotation, ast.Name | ast.BinOp | ast.Constant)
    return short and ast.unparse(annotation) in ("bool", "bool | None")


def _makes_setter(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Attribute) and decorator.attr == "setter"


def booleans_are_named(source: Source) -> Iterator[Finding]:
    """A public function takes a truth value by keyword only: `f(x, True)` says nothing.

    A setter takes what is assigned. Where a library decides how we are called, `# noqa: FBT001` and the reason stand
    beside it.
    """
    if not source.is_product:
        return
    for function in functions(source):
        if function.name.startswith("_") or any(map(_makes_setter, function.decorator_list)):
            continue
        arguments = function.args
        for argument in [*arguments.posonlyargs, *arguments.args]:
            if argument.annotation is None or not _is_truth_value(argument.annotation):
                continue
            if "FBT" not in source.comments.get(argument.lineno, ""):
                why = f"{function.name}({argument.arg}: bool) can be given by position"
                yield Finding(source.path, argument.lineno, why, function.name)


RULES: Final[tuple[Rule, ...]] = (
    modules_say_what_they_are_for,
    files_are_short,
    functions_are_short,
    names_mean_something,
    numbers_have_units,
    booleans_are_named,
)
