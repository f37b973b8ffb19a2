"""Meter injection: rewrites a parsed template so that loops, calls and output pay the meter.

After this pass a template pays for every turn of a loop, every call of a macro, everything it prints,
and every concatenation and slice; and nothing that could hold itself twice is compared or hashed
unseen. What the tree shows to be harmless is left alone, so an ordinary template pays about one call
per printed expression.

A turn costs what its body could make once: its literal text and a fixed sum for each node in it. That
bounds what a body of constants can pile up over many turns.
"""

from typing import Any, Final

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.visitor import NodeTransformer

# Terms added natively before the sum so far is looked at: each may double what is alive for a moment.
_CHAIN_MAX: Final = 8
# What evaluating one node costs in a loop: about what a small object takes in memory.
_NODE: Final = 8
_TURN: Final = 16
_REFUSED: Final = (
    nodes.Block,
    nodes.Extends,
    nodes.Include,
    nodes.Import,
    nodes.FromImport,
    nodes.EvalContextModifier,
    nodes.ScopedEvalContextModifier,
)


def rewrite(tree: nodes.Template, *, nodes_max: int) -> None:
    """Change `tree` in place.

    Raises `TemplateSyntaxError` if it has more nodes than that, and for what a chat template may not
    use.
    """
    for count, node in enumerate(_all(tree)):
        if count >= nodes_max:
            raise TemplateSyntaxError(f"it has more than {nodes_max} parts", 1)
        if isinstance(node, _REFUSED):
            name = type(node).__name__.lower()
            raise TemplateSyntaxError(f"{name} is not available in chat templates", node.lineno)
    _Metering().visit(tree)


def _all(tree: nodes.Node) -> Any:
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(node.iter_child_nodes())


def _wrap(node: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _price(body: list[nodes.Node]) -> int:
    """Return what one run of `body` costs, without the loops and macros in it: they pay themselves."""
    price = _TURN
    pending = list(body)
    while pending:
        node = pending.pop()
        price += _NODE
        if isinstance(node, nodes.TemplateData):
            price += len(node.data)
        elif isinstance(node, nodes.Const) and isinstance(node.value, str):
            price += len(node.value)
        if isinstance(node, (nodes.For, nodes.Macro, nodes.CallBlock)):
            pending.extend(child for child in node.iter_child_nodes(exclude=("body",)))
        else:
            pending.extend(node.iter_child_nodes())
    return price


def _tick(body: list[nodes.Node], lineno: int) -> nodes.ExprStmt:
    price = nodes.Const(_price(body), lineno=lineno)
    return nodes.ExprStmt(_wrap(price, "_tick"), lineno=lineno)


def _is_number(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Const) and isinstance(node.value, (int, float))


def _is_constant(node: nodes.Node) -> bool:
    if isinstance(node, (nodes.List, nodes.Tuple)):
        return all(map(_is_constant, node.items))
    return isinstance(node, (nodes.Const, nodes.TemplateData))


def _guarded(node: nodes.Expr, name: str) -> nodes.Expr:
    return node if _is_constant(node) else _wrap(node, name)


class _Metering(NodeTransformer):
    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802  # Jinja's visitor protocol
        tick = _tick(node.body, node.lineno)
        self.generic_visit(node)
        node.body.insert(0, tick)
        if node.test is not None:
            assert isinstance(node.test, nodes.Expr)
            node.test = _wrap(node.test, "_ticked")
        return node

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:  # noqa: N802
        tick = _tick(node.body, node.lineno)
        self.generic_visit(node)
        node.body.insert(0, tick)
        return node

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:  # noqa: N802
        tick = _tick(node.body, node.lineno)
        self.generic_visit(node)
        node.body.insert(0, tick)
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Node:  # noqa: N802
        node.nodes = [self._printed(child) for child in node.nodes]
        return node

    def _printed(self, node: nodes.Expr) -> nodes.Expr:
        if isinstance(node, (nodes.TemplateData, nodes.Const)):
            return node
        if isinstance(node, nodes.Add):
            return _wrap(self._sum(node), "_shown")
        if isinstance(node, nodes.Concat):
            return self.visit(node)  # type: ignore[no-any-return]  # it pays itself
        return _wrap(self.visit(node), "_shown")

    def visit_Add(self, node: nodes.Add) -> nodes.Node:  # noqa: N802
        if _is_number(node.left) or _is_number(node.right):
            return self.generic_visit(node)  # a number adds to numbers only
        return _wrap(self._sum(node), "_made")

    def _sum(self, node: nodes.Add) -> nodes.Expr:
        """Return a chain of additions, looked at after every few terms."""
        terms: list[nodes.Expr] = []
        rest: nodes.Expr = node
        while isinstance(rest, nodes.Add):
            terms.append(rest.right)
            rest = rest.left
        total: nodes.Expr = self.visit(rest)
        for count, term in enumerate(reversed(terms), 1):
            total = nodes.Add(total, self.visit(term), lineno=node.lineno)
            if count % _CHAIN_MAX == 0 and count < len(terms):
                total = _wrap(total, "_made")
        return total

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _wrap(nodes.Tuple(node.nodes, "load", lineno=node.lineno), "_glued")

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        if isinstance(node.node, nodes.Const):
            # Python warns while compiling when it sees a number that is sliced.
            node.node = _wrap(node.node, "_made")
        return _wrap(node, "_made")

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        sides = [node.expr, *(operand.expr for operand in node.ops)]
        both_vary = sum(not _is_constant(side) for side in sides) > 1
        searches = any(operand.op in ("in", "notin") for operand in node.ops)
        self.generic_visit(node)
        if both_vary:
            node.expr = _guarded(node.expr, "_compared")
            for operand in node.ops:
                operand.expr = _guarded(operand.expr, "_compared")
        elif searches:
            # A constant differs from any element at first sight, so only the number of them counts.
            for operand in node.ops:
                operand.expr = _guarded(operand.expr, "_searched")
        return node

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        for pair in node.items:
            pair.key = _guarded(pair.key, "_compared")
        return node

    def visit_Call(self, node: nodes.Call) -> nodes.Node:  # noqa: N802
        return self._unpacking(node)

    def visit_Filter(self, node: nodes.Filter) -> nodes.Node:  # noqa: N802
        return self._unpacking(node)

    def visit_Test(self, node: nodes.Test) -> nodes.Node:  # noqa: N802
        return self._unpacking(node)

    def _unpacking(self, node: nodes.Call | nodes.Filter | nodes.Test) -> nodes.Node:
        self.generic_visit(node)
        if node.dyn_args is not None:
            node.dyn_args = _wrap(node.dyn_args, "_listed")
        return node
