"""Faults on purpose: their names, their grammar (SPEC), and the requests they hit.

    SPEC  = NAME [ ":" KEY "=" VALUE { "," KEY "=" VALUE } ]

`status:reason=rate,retry_after=2,every=10` refuses every tenth request in the vendor's own words. Every fault also
understands `request` (only the n-th, from 1), `every` (each n-th), `chance` (0..1), `times` (at most so often),
`model` and `key`. Every hit is counted.
"""

import random
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from smg_chaos.engine.nearest import unknown_name
from smg_chaos.vendor.errors.vendor_error import Reason

Value = int | float | str


class Kind(NamedTuple):
    """One fault's declaration: its defaults fix each value's type."""

    says: str
    defaults: Mapping[str, Value] = MappingProxyType({})
    optional: Mapping[str, type] = MappingProxyType({})


FAULTS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "status": Kind(
            "refuse in the vendor's own envelope, by reason or with any status",
            {"reason": "unavailable"},
            {"code": int, "retry_after": float},
        ),
        "delay": Kind("wait before the answer", {"seconds": 1.0}),
        "hang": Kind("accept and never answer"),
        "cut": Kind("close the connection after some events", {"after": 1}),
        "stall": Kind("send some events and then nothing more", {"after": 1}),
        "pause": Kind("wait in the middle of a stream", {"after": 1, "seconds": 1.0}),
        "garbage": Kind("send bytes that are no event after some events, then close", {"after": 1}),
        "no-end": Kind("end a stream cleanly without its true end"),
        "error": Kind(
            "an error inside the stream, after some events", {"after": 1, "reason": "overloaded"}
        ),
        "html": Kind("status 200 and a page of HTML"),
        "length": Kind("a content-length that is wrong by so much", {"by": 5}),
        "drip": Kind("a few bytes at a time", {"bytes": 1, "seconds": 0.02}),
    }
)
_SELECTORS: Final[Mapping[str, type]] = {
    "request": int,
    "every": int,
    "chance": float,
    "times": int,
    "model": str,
    "key": str,
}
_REASONS: Final = {reason.value: reason for reason in Reason}


class Fault(NamedTuple):
    """One fault as asked for."""

    name: str
    values: Mapping[str, Value]

    def number(self, key: str) -> int:
        """Return a whole number of the fault."""
        return int(self.values[key])

    def seconds(self) -> float:
        """Return the duration of the fault."""
        return float(self.values["seconds"])

    def reason(self) -> Reason:
        """Return why it refuses."""
        return _REASONS[str(self.values["reason"])]


def parse_fault(spec: str) -> Fault:
    """Return the fault a SPEC asks for; ValueError says what is wrong and what is known."""
    name, _, rest = spec.strip().partition(":")
    kind = FAULTS.get(name)
    if kind is None:
        raise ValueError(unknown_name("fault", name, FAULTS))
    types: dict[str, type] = {**_SELECTORS, **kind.optional}
    types |= {key: type(value) for key, value in kind.defaults.items()}
    values: dict[str, Value] = dict(kind.defaults)
    for pair in filter(None, rest.split(",")):
        key, equals, text = pair.partition("=")
        if key not in types:
            raise ValueError(f"fault {name}: " + unknown_name("value", key, types))
        if not equals:
            raise ValueError(f"fault {name}: {key} needs a value, {key}=…")
        values[key] = _value(name, key, text, types[key])
    return Fault(name, MappingProxyType(values))


def _value(fault: str, key: str, text: str, wanted: type) -> Value:
    if key == "reason" and text not in _REASONS:
        raise ValueError(f"fault {fault}: " + unknown_name("reason", text, _REASONS))
    try:
        value: Value = wanted(text)
    except ValueError as error:
        raise ValueError(f"fault {fault}: {key}={text!r} is not a {wanted.__name__}") from error
    if not isinstance(value, str) and key != "by" and not 0 <= value < float("inf"):
        raise ValueError(f"fault {fault}: {key} must not be negative or infinite")
    if key in ("every", "request", "bytes") and value == 0:
        raise ValueError(f"fault {fault}: {key} counts from 1")
    return value


def fault_table() -> str:
    """Return the faults, their values and the reasons, for `--help`."""
    lines = []
    for name, kind in FAULTS.items():
        values = [f"{key}={value}" for key, value in kind.defaults.items()]
        values += [f"{key}=…" for key in kind.optional]
        lines.append(name + (":" + ",".join(values) if values else "") + f" — {kind.says}")
    return "\n\n".join(lines) + "\n\nReasons: " + ", ".join(_REASONS) + "."


class Faults:
    """The faults of one stand-in, which may be changed while it runs, and how often each of them hit."""

    def __init__(self, specs: Iterable[str], seed: int) -> None:
        self._rng = random.Random(seed)
        self._all: list[Fault] = []
        self._times: list[int] = []
        self.hits: dict[str, int] = {}
        self.set(specs)

    def set(self, specs: Iterable[str]) -> None:
        """Have these faults and no others from now on; ValueError changes nothing."""
        faults = [parse_fault(spec) for spec in specs]
        self._all = faults
        self._times = [0] * len(faults)

    def told(self) -> dict[str, Any]:
        """Return the faults and their hits."""
        rows = [{"name": one.name, **one.values} for one in self._all]
        return {"faults": rows, "hits": dict(sorted(self.hits.items()))}

    def pick(self, number: int, model: str, key: str) -> Fault | None:
        """Return the fault that hits the `number`-th request, counted from 1, or None; it is counted."""
        for at, fault in enumerate(self._all):
            if self._chosen(at, fault, number, model, key):
                self._times[at] += 1
                self.hits[fault.name] = self.hits.get(fault.name, 0) + 1
                return fault
        return None

    def _chosen(self, at: int, fault: Fault, number: int, model: str, key: str) -> bool:
        values = fault.values
        if values.get("model", model) != model or values.get("key", key) != key:
            return False
        if "request" in values and number != values["request"]:
            return False
        if "every" in values and number % fault.number("every"):
            return False
        if "times" in values and self._times[at] >= fault.number("times"):
            return False
        return "chance" not in values or self._rng.random() < float(values["chance"])
