"""Faults on purpose of the MCP server: their names, their grammar (SPEC), and the requests they hit.

    SPEC  = NAME [ ":" KEY "=" VALUE { "," KEY "=" VALUE } ]

Every fault also understands `request` (only the n-th request of its method, from 1), `every` (each n-th), `times` (at most
so often), `method` (`tools/call` if unsaid, `*` for all) and `tool`. Every hit is counted.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from smg_chaos.engine.nearest import unknown_name

Value = int | float | str


class Kind(NamedTuple):
    """One fault's declaration: its defaults fix each value's type."""

    says: str
    defaults: Mapping[str, Value] = MappingProxyType({})


FAULTS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "reset": Kind("run the tool, then close the connection without an answer"),
        "cut": Kind("run the tool, and close its stream of events before the result"),
        "slow": Kind("wait before the answer", {"seconds": 1.0}),
        "hang": Kind("never answer"),
        "status": Kind("answer with a status and a page of HTML", {"code": 503, "retry_after": 0}),
        "error": Kind("answer with a JSON-RPC error, at a status", {"code": -32000, "status": 200}),
        "401": Kind("refuse the credential"),
        "huge": Kind("answer with so many bytes of text", {"bytes": 17 << 20}),
        "forget": Kind("forget all sessions, this request's too"),
        "garbage": Kind("answer with bytes that are no message"),
        "accepted": Kind("answer a request with 202"),
        "redirect": Kind("send elsewhere", {"code": 307, "to": "/mcp"}),
        "noise": Kind("print so many lines that are no message first (stdio)", {"lines": 5}),
        "exit": Kind("run the tool, then end the process (stdio)", {"status": 3}),
    }
)
_SELECTORS: Final[Mapping[str, type]] = MappingProxyType(
    {"request": int, "every": int, "times": int, "method": str, "tool": str}
)


class Fault:
    """One fault with its values; knows how often it was looked at and hit."""

    def __init__(self, name: str, values: Mapping[str, Any], selectors: Mapping[str, Any]) -> None:
        self.name = name
        self.values = {**FAULTS[name].defaults, **values}
        self.hits = 0
        self._selectors = selectors
        self._seen = 0

    def hit(self, method: str, tool: str) -> bool:
        """Return whether it hits this request, and count it."""
        only = self._selectors
        if only.get("method", "tools/call") not in (method, "*") or only.get("tool", tool) != tool:
            return False
        self._seen += 1
        if self._seen != only.get("request", self._seen) or self._seen % only.get("every", 1):
            return False
        if self.hits >= only.get("times", self.hits + 1):
            return False
        self.hits += 1
        return True


def parse_fault(spec: str) -> Fault:
    """Return the fault of a SPEC; ValueError says what is wrong with it."""
    name, _, rest = spec.partition(":")
    if name not in FAULTS:
        raise ValueError(unknown_name("fault", name, FAULTS))
    defaults = FAULTS[name].defaults
    values: dict[str, Any] = {}
    selectors: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        types = {**{known: type(default) for known, default in defaults.items()}, **_SELECTORS}
        if key not in types or not equals:
            raise ValueError(f"{name}: {unknown_name('key', key, types)}")
        try:
            (values if key in defaults else selectors)[key] = types[key](value)
        except ValueError as error:
            raise ValueError(f"{name}: {key}={value!r} is no {types[key].__name__}") from error
    if selectors.get("every", 1) < 1:
        raise ValueError(f"{name}: every is 1 or more")
    return Fault(name, values, selectors)


def first_hit(faults: Iterable[Fault], method: str, tool: str) -> Fault | None:
    """Return the first fault that hits a request, None for none; further ones are not looked at."""
    return next((fault for fault in faults if fault.hit(method, tool)), None)


def fault_table() -> str:
    """Return the help text of all faults."""
    rows = []
    for name, kind in FAULTS.items():
        keys = ",".join(f"{key}={value}" for key, value in kind.defaults.items())
        rows.append(f"{name}{':' + keys if keys else ''}: {kind.says}")
    return "Faults: " + "; ".join(rows) + "."
