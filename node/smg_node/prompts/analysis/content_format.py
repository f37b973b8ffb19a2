"""Content format: whether a template treats message content as a string or as parts, from its
syntax tree. Pure.

A template that loops over `message.content` wants a list of parts; one that concatenates it wants a
string. Content travels under other names, so names are followed: `{% set content = message.content
%}`, a loop variable, and a macro's parameter where the macro is called with content. Following is
by name and without regard to order, which errs towards finding a loop; `template_facts` then
renders the template itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from jinja2 import nodes

_ROUNDS: Final = 8


@dataclass(frozen=True, slots=True)
class Reading:
    """Findings of a syntax tree.

    `loops` is whether it goes through the parts of some content, `asks` whether it looks if content
    is a string first. `words` are all names and strings in it: keys it may look up, roles it knows.
    """

    loops: bool
    asks: bool
    words: frozenset[str]


def read_template(tree: nodes.Template) -> Reading:
    """Return how `tree` uses content."""
    aliases = _aliases(tree)
    return Reading(
        loops=any(_content(loop.iter, aliases) for loop in tree.find_all(nodes.For))
        or any(_indexed(item, aliases) for item in tree.find_all(nodes.Getitem)),
        asks=any(
            test.name in ("string", "iterable", "sequence", "mapping")
            and _content(test.node, aliases)
            for test in tree.find_all(nodes.Test)
        ),
        words=frozenset(_words(tree)),
    )


def _words(tree: nodes.Template) -> Iterator[str]:
    for attribute in tree.find_all(nodes.Getattr):
        yield attribute.attr
    for constant in tree.find_all(nodes.Const):
        if isinstance(constant.value, str):
            yield constant.value


def _aliases(tree: nodes.Template) -> frozenset[str]:
    """Return the names under which content is known, by following assignments until none is new."""
    macros = {macro.name: macro for macro in tree.find_all(nodes.Macro)}
    known: frozenset[str] = frozenset()
    for _ in range(_ROUNDS):
        found = known | frozenset(_assigned(tree, known)) | frozenset(_passed(tree, macros, known))
        if found == known:
            break
        known = found
    return known


def _assigned(tree: nodes.Template, known: frozenset[str]) -> Iterator[str]:
    for assignment in tree.find_all(nodes.Assign):
        if _content(assignment.node, known):
            if isinstance(assignment.target, nodes.Name):
                yield assignment.target.name
            elif isinstance(assignment.target, nodes.NSRef):
                yield f"{assignment.target.name}.{assignment.target.attr}"


def _passed(
    tree: nodes.Template, macros: dict[str, nodes.Macro], known: frozenset[str]
) -> Iterator[str]:
    for call in tree.find_all(nodes.Call):
        macro = macros.get(call.node.name) if isinstance(call.node, nodes.Name) else None
        if macro is None:
            continue
        for parameter, argument in zip(macro.args, call.args, strict=False):
            if _content(argument, known):
                yield parameter.name
        for keyword in call.kwargs:
            if _content(keyword.value, known):
                yield keyword.key


def _content(node: nodes.Node | None, known: frozenset[str]) -> bool:
    """Whether `node` is a message's content, under whatever name."""
    match node:
        case nodes.Getattr(attr=attr, node=owner):
            named = f"{owner.name}.{attr}" in known if isinstance(owner, nodes.Name) else False
            return attr == "content" or named
        case nodes.Getitem(arg=nodes.Const(value="content")):
            return True
        case nodes.Name(name=name):
            return name in known
        case nodes.Filter(node=inner, name=filter_name):
            return filter_name != "items" and _content(inner, known)
        case nodes.CondExpr(expr1=first, expr2=second):
            return _content(first, known) or _content(second, known)
        case nodes.Or(left=left, right=right):
            return _content(left, known) or _content(right, known)
        case nodes.Call(node=nodes.Getattr(attr="get"), args=[nodes.Const(value="content"), *_]):
            return True
        case _:
            return False


def _indexed(item: nodes.Getitem, known: frozenset[str]) -> bool:
    """Whether `item` is one part of content, as in `message.content[0]`."""
    return (
        isinstance(item.arg, nodes.Const)
        and isinstance(item.arg.value, int)
        and _content(item.node, known)
    )
