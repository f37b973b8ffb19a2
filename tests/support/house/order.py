"""House rules about state, tasks, and order that must not be chance."""

import ast
from collections.abc import Iterator
from typing import Final

from support.house.tree import Finding, Function, Rule, Source, contract, functions, last_name

_MUTABLE_DISPLAYS: Final = (
    ast.List,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.DictComp,
    ast.SetComp,
)
_MUTABLE_MAKERS: Final = frozenset(
    [
        "list",
        "dict",
        "set",
        "bytearray",
        "array",
        "defaultdict",
        "deque",
        "Counter",
        "OrderedDict",
        "WeakKeyDictionary",
        "WeakValueDictionary",
        "ContextVar",
        "Lock",
        "RLock",
    ]
)


def modules_hold_no_state(source: Source) -> Iterator[Finding]:
    """What a module holds is constant: Final, or at least in capitals."""
    if not source.is_python:
        return
    for node in _module_statements(source.tree.body):
        if isinstance(node, ast.Assign):
            targets, value, final = node.targets, node.value, False
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
            final = "Final" in ast.unparse(node.annotation)
        else:
            continue
        makes = isinstance(value, ast.Call) and last_name(value.func) in _MUTABLE_MAKERS
        if final or not (makes or isinstance(value, _MUTABLE_DISPLAYS)):
            continue
        for target in targets:
            name = ast.unparse(target)
            if name != name.upper() and name != "__all__":
                why = f"{name} can change: say Final, or give it an owner"
                yield Finding(source.path, node.lineno, why, name)


def _module_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _module_statements(node.body)
            yield from _module_statements(getattr(node, "orelse", []))


_SPAWN: Final = frozenset({"create_task", "ensure_future", "run_coroutine_threadsafe"})


def tasks_belong_to_a_group(source: Source) -> Iterator[Finding]:
    """No bare task, however it is spelled: `asyncio.…`, through an alias, a loop, or getattr."""
    if not source.is_python:
        return
    modules = {
        alias.asname or alias.name
        for node in source.nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "asyncio"
    }
    for node in source.nodes:
        if _spawns(node, modules):
            why = "a bare task can be collected mid-flight: use a TaskGroup"
            yield Finding(source.path, getattr(node, "lineno", 1), why)


def _spawns(node: ast.AST, modules: set[str]) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "asyncio" and any(alias.name in _SPAWN for alias in node.names)
    if isinstance(node, ast.Attribute) and node.attr in _SPAWN:
        owner = ast.unparse(node.value)
        return owner in modules or "loop" in owner.lower()
    if isinstance(node, ast.Call) and _is_named(node.func, "getattr"):
        return any(isinstance(a, ast.Constant) and a.value in _SPAWN for a in node.args)
    return False


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _pure(source: Source) -> bool:
    modules = contract("pure")["source_modules"]
    return source.is_product and any(f"{source.module}.".startswith(f"{m}.") for m in modules)


_ORDERED: Final = frozenset({"list", "tuple", "iter", "enumerate", "next", "map", "filter", "zip"})


def pure_code_never_iterates_a_set(source: Source) -> Iterator[Finding]:
    """One seed, one history, under any hash seed: what comes out of a set is sorted first."""
    if not _pure(source):
        return
    for scope in [source.tree, *functions(source)]:
        sets = _set_names(scope)
        for node in _inside(scope):
            for value in _iterated(node):
                if _is_set(value, sets):
                    why = f"the order of {ast.unparse(value)[:40]} is chance: sort it"
                    yield Finding(source.path, value.lineno, why)


def _iterated(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions whose order `node` makes visible."""
    if isinstance(node, ast.For | ast.AsyncFor):
        yield node.iter
    elif isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
        yield from (generator.iter for generator in node.generators)
    elif isinstance(node, ast.Starred):
        yield node.value
    elif isinstance(node, ast.Call) and last_name(node.func) in _ORDERED | {"join"}:
        yield from node.args


def _is_set(value: ast.expr, names: set[str]) -> bool:
    if isinstance(value, ast.Call):
        return last_name(value.func) in ("set", "frozenset")
    if isinstance(value, ast.BinOp):
        return _is_set(value.left, names) or _is_set(value.right, names)
    if isinstance(value, ast.Name):
        return value.id in names
    return isinstance(value, ast.Set | ast.SetComp)


def _set_names(scope: ast.Module | Function) -> set[str]:
    """Return the names that are sets for all this scope says."""
    names: set[str] = set()
    if not isinstance(scope, ast.Module):
        arguments = [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]
        names = {a.arg for a in arguments if _set_type(a.annotation)}
    for node in _inside(scope):
        if isinstance(node, ast.Assign) and _is_set(node.value, names):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and _set_type(node.annotation):
            names.add(ast.unparse(node.target))
    return names


def _set_type(annotation: ast.expr | None) -> bool:
    kinds = ("set", "frozenset", "Set", "AbstractSet", "MutableSet")
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return annotation is not None and last_name(annotation) in kinds


def _inside(scope: ast.Module | Function) -> Iterator[ast.AST]:
    """Yield what belongs to this scope, in order, but not to a function inside it."""
    todo: list[ast.AST] = list(reversed(scope.body))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, Function):
            todo += reversed(list(ast.iter_child_nodes(node)))


def pure_code_never_waits(source: Source) -> Iterator[Finding]:
    """A machine of `feed` and `finish` has nothing to await."""
    if _pure(source):
        for function in functions(source):
            if isinstance(function, ast.AsyncFunctionDef):
                why = f"{function.name} is async, and this room is pure"
                yield Finding(source.path, function.lineno, why, function.name)


RULES: Final[tuple[Rule, ...]] = (
    modules_hold_no_state,
    tasks_belong_to_a_group,
    pure_code_never_iterates_a_set,
    pure_code_never_waits,
)
