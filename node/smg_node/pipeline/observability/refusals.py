"""Refused requests and names of answers: what the journey log knows of requests beside their journeys.

A request that is refused before a generation begins (its body cannot be read, a model is unknown) has no
journey of its own, but an id and a reason. A stored answer has a name of its own, which leads to its request.
Both are bounded, and cost nothing but when there is one.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Final

from smg_node.core.errors import SmgError
from smg_node.core.journey import Journey

REFUSALS_MAX: Final = 1_000
"""About a kilobyte each at most."""
NAMES_MAX: Final = 10_000
"""As many as there are journeys."""
_CHARACTERS_MAX: Final = 256


class Refusals:
    """The latest refused requests of this process. `node` is this node's name."""

    def __init__(self, node: str, *, entries_max: int = REFUSALS_MAX) -> None:
        self._node = node
        self._kept: deque[Journey] = deque(maxlen=entries_max)

    def add(
        self,
        request_id: str,
        dialect: str,
        model: str,
        error: SmgError,
        *,
        began_ms: int,
        ended_ms: int,
    ) -> None:
        """Keep one, instead of the oldest where there are too many; wall-clock times."""
        self._kept.append(
            Journey(
                request_id,
                self._node,
                dialect,
                _text(model),
                began_ms,
                ended_ms=ended_ms,
                kind="refused",
                code=error.code,
                status=error.status,
                message=_text(error.message),
            )
        )

    def named(self, request_id: str) -> Iterator[Journey]:
        """Yield those of exactly that id, newest first."""
        return (one for one in reversed(self._kept) if one.request_id == request_id)


class AnswerNames:
    """The latest names under which answers are kept, each with the id of its request."""

    def __init__(self, *, entries_max: int = NAMES_MAX) -> None:
        self._entries_max = entries_max
        self._requests: OrderedDict[str, str] = OrderedDict()

    def add(self, name: str, request_id: str) -> None:
        """Keep one, instead of the oldest where there are too many."""
        self._requests[name] = request_id
        if len(self._requests) > self._entries_max:
            self._requests.popitem(last=False)

    def request_of(self, name: str) -> str:
        """Return the id of the request that led to this answer; `name` itself if none is known."""
        return self._requests.get(name, name)


def _text(text: str) -> str:
    return text[:_CHARACTERS_MAX].encode("utf-8", "replace").decode()
