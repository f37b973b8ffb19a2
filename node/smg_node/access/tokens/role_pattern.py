"""Role pattern: a role's name in which each `*` stands for any characters; matching takes time in proportion to both. Pure."""


class RolePattern:
    """One pattern. The leftmost place is taken for each piece between stars, so nothing is tried twice."""

    def __init__(self, pattern: str) -> None:
        self._start, *rest = pattern.split("*")
        self._exact = not rest
        self._end = rest.pop() if rest else ""
        self._middle = tuple(piece for piece in rest if piece)

    def matches(self, name: str) -> bool:
        """Whether a role has such a name."""
        if self._exact:
            return name == self._start
        if not name.startswith(self._start):
            return False
        at, stop = len(self._start), len(name) - len(self._end)
        for piece in self._middle:
            found = name.find(piece, at, stop)
            if found < 0:
                return False
            at = found + len(piece)
        return at <= stop and name.endswith(self._end)
