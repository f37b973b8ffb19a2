"""Vector index of tools: those whose meaning is nearest to a question's, by the cosine of their embeddings. Pure.

Vectors have length 1 here, so that a cosine is a sum of products. A thousand tools of a thousand numbers take some 40 ms,
a tool a step; a tool without a vector, or with one of another length, is found by no question.
"""

import heapq
from array import array
from collections.abc import Sequence
from math import isfinite, sqrt
from operator import mul

from smg_node.core.cooperative_steps import Steps
from smg_node.mcp.search.searched_tool import SearchedTool


def unit_vector(values: "array[float]") -> "array[float] | None":
    """Return a vector of length 1 in the same direction, None for one that has none: zero, empty, or not finite."""
    length = sqrt(sum(map(mul, values, values)))
    if not isfinite(length) or not length:
        return None
    return array("f", [value / length for value in values])


def nearest_tools(
    question: "array[float]",
    tools: Sequence[SearchedTool],
    vectors: "Sequence[array[float] | None]",
    limit: int,
) -> Steps[tuple[SearchedTool, ...]]:
    """Return the tools nearest to a question, best first, at most so many; equal ones in the order they come in.

    `vectors` are the tools', all of length 1.
    """
    assert len(tools) == len(vectors), "each tool has a vector, or none"
    scored: list[tuple[float, int]] = []
    for place, vector in enumerate(vectors):
        if vector is not None and len(vector) == len(question):
            scored.append((-sum(map(mul, question, vector)), place))
        yield len(question)
    return tuple(tools[place] for _, place in heapq.nsmallest(limit, scored))
