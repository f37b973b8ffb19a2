"""Faults on purpose: their names, their grammar (SPEC), and the requests and workers they hit.

    SPEC  = NAME [ ":" KEY "=" VALUE { "," KEY "=" VALUE } ]

`error:status=UNAVAILABLE,after=2,every=10` lets every tenth request end UNAVAILABLE after two
tokens. Every fault that hits requests also understands `request` (only the n-th, from 1), `every`
(each n-th), `chance` (0..1), `times` (at most so often) and, like all faults, `worker` (only that
worker, from 1). The engine counts every hit, so a checker can tell a fault's losses from the
gateway's.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from smg_chaos.engine.nearest import unknown_name
from smg_chaos.engine.protocol.rpc_call import Code

Value = int | float | str


class Where(Enum):
    """Subject of a fault."""

    REQUEST = auto()
    PROCESS = auto()
    BUNDLE = auto()
    EVENTS = auto()


@dataclass(frozen=True, slots=True)
class Kind:
    """One fault's declaration. `defaults` also fix each value's type; None means: not set."""

    where: Where
    says: str
    defaults: Mapping[str, Value] = field(default_factory=dict)
    optional: Mapping[str, type] = field(default_factory=dict)
    needs_h2: bool = False
    """Only the own HTTP/2 server can do it: grpc.aio offers no way."""


_SELECTORS: Final[Mapping[str, type]] = {
    "request": int,
    "every": int,
    "chance": float,
    "times": int,
}

FAULTS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "refuse": Kind(
            Where.REQUEST, "end with a status before anything else", {"status": "UNAVAILABLE"}
        ),
        "hang": Kind(Where.REQUEST, "accept and never answer; the slot stays taken"),
        "delay": Kind(Where.REQUEST, "wait before starting", {"seconds": 1.0}),
        "stall": Kind(Where.REQUEST, "print some tokens and then nothing more", {"after": 1}),
        "error": Kind(
            Where.REQUEST, "end with a status after some tokens", {"after": 1, "status": "INTERNAL"}
        ),
        "reset": Kind(Where.REQUEST, "reset the stream after some tokens", {"after": 1}, {}, True),
        "close": Kind(
            Where.REQUEST, "close the connection after some tokens", {"after": 0}, {}, True
        ),
        "no-complete": Kind(Where.REQUEST, "end OK without a complete message"),
        "double-complete": Kind(Where.REQUEST, "send the complete message twice"),
        "wrong-counts": Kind(Where.REQUEST, "count tokens wrongly", {"by": 7}),
        "transfer-fails": Kind(
            Where.REQUEST, "what a partner worked off does not arrive; decode engines only"
        ),
        "bad-ids": Kind(Where.REQUEST, "print ids beyond the vocabulary", {"after": 0}),
        "die": Kind(
            Where.PROCESS,
            "exit: after some tokens of a request, at the n-th request, at a time, or on an id",
            {"code": 1},
            {"after": int, "request": int, "at": float, "id": int, "every": int, "chance": float},
        ),
        "slow-start": Kind(Where.PROCESS, "be NOT_SERVING at first", {"seconds": 3.0}),
        "flap": Kind(Where.PROCESS, "SERVING, NOT_SERVING, SERVING", {"at": 1.0, "seconds": 2.0}),
        "restart": Kind(
            Where.PROCESS,
            "cut everything, forget everything, come back as another model or tokenizer",
            {"at": 1.0, "seconds": 1.0},
            {"model": str, "vocabulary": int},
        ),
        "wrong-sum": Kind(Where.BUNDLE, "send a tokenizer whose sum does not fit"),
        "truncated-bundle": Kind(Where.BUNDLE, "send half of the tokenizer"),
        "huge-bundle": Kind(Where.BUNDLE, "send more bytes than anyone should take", {"mib": 300}),
        "missing-file": Kind(
            Where.BUNDLE, "leave a file out of the tokenizer", {"name": "tokenizer.json"}
        ),
        "kv-gap": Kind(Where.EVENTS, "drop every n-th KV batch", {"every": 5}),
        "kv-restart": Kind(
            Where.EVENTS, "restart the KV publisher after some batches", {"after": 5}
        ),
        "kv-late": Kind(Where.EVENTS, "deliver KV batches late", {"seconds": 1.0}),
    }
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault as asked for."""

    name: str
    values: Mapping[str, Value]
    worker: int | None = None

    @property
    def kind(self) -> Kind:
        """Its declaration."""
        return FAULTS[self.name]

    def number(self, key: str, default: int = 0) -> int:
        """Return a whole number of the fault, `default` if it was not given."""
        return int(self.values.get(key, default))

    def seconds(self, key: str = "seconds") -> float:
        """Return a duration or time of the fault."""
        return float(self.values[key])

    def status(self) -> Code:
        """Return the status code of the fault."""
        return Code[str(self.values["status"])]


def parse_fault(spec: str) -> Fault:
    """Return the fault a SPEC asks for; ValueError says what is wrong and what is known."""
    name, _, rest = spec.strip().partition(":")
    kind = FAULTS.get(name)
    if kind is None:
        raise ValueError(unknown_name("fault", name, FAULTS))
    types: dict[str, type] = {"worker": int, **kind.optional}
    types |= {key: type(value) for key, value in kind.defaults.items()}
    if kind.where is Where.REQUEST:
        types |= _SELECTORS
    values: dict[str, Value] = dict(kind.defaults)
    for pair in filter(None, rest.split(",")):
        key, equals, text = pair.partition("=")
        if key not in types:
            raise ValueError(f"fault {name}: " + unknown_name("value", key, types))
        if not equals:
            raise ValueError(f"fault {name}: {key} needs a value, {key}=…")
        values[key] = _value(name, key, text, types[key])
    worker = values.pop("worker", None)
    return Fault(name, MappingProxyType(values), None if worker is None else int(worker))


def _value(fault: str, key: str, text: str, wanted: type) -> Value:
    if key == "status":
        if text not in Code.__members__:
            raise ValueError(f"fault {fault}: " + unknown_name("status", text, Code.__members__))
        return text
    try:
        value: Value = wanted(text)
    except ValueError as error:
        raise ValueError(f"fault {fault}: {key}={text!r} is not a {wanted.__name__}") from error
    if not isinstance(value, str) and not 0 <= value < float("inf"):
        raise ValueError(f"fault {fault}: {key} must not be negative or infinite")
    if key in ("every", "request", "worker") and value == 0:
        raise ValueError(f"fault {fault}: {key} counts from 1")
    return value


def fault_table() -> str:
    """Return the faults and their values, for `--help`."""
    lines = []
    for name, kind in FAULTS.items():
        values = [f"{key}={value}" for key, value in kind.defaults.items()]
        values += [f"{key}=…" for key in kind.optional]
        spec = name + (":" + ",".join(values) if values else "")
        lines.append(f"{spec} — {kind.says}" + (" (h2 server only)" if kind.needs_h2 else ""))
    return "\n\n".join(lines)


class Faults:
    """The faults of one engine, and how often each of them hit."""

    def __init__(self, faults: Iterable[Fault], rng: random.Random) -> None:
        self._all: Sequence[Fault] = tuple(faults)
        self._requests = [
            fault
            for fault in self._all
            if fault.kind.where is Where.REQUEST or _dies_by_request(fault)
        ]
        self._rng = rng
        self.hits: dict[str, int] = {}

    def of(self, where: Where) -> list[Fault]:
        """Return the faults that happen to `where`."""
        return [fault for fault in self._all if fault.kind.where is where]

    def named(self, name: str) -> Fault | None:
        """Return the first fault of that name, or None."""
        return next((fault for fault in self._all if fault.name == name), None)

    def hit(self, fault: Fault) -> None:
        """Count a hit."""
        self.hits[fault.name] = self.hits.get(fault.name, 0) + 1

    def on_request(self, number: int, ids: Sequence[int]) -> Fault | None:
        """Return the fault that hits the `number`-th request, counted from 1, or None."""
        for fault in self._requests:
            if self._chosen(fault, number, ids):
                return fault
        return None

    def _chosen(self, fault: Fault, number: int, ids: Sequence[int]) -> bool:
        values = fault.values
        if "request" in values and number != values["request"]:
            return False
        if "every" in values and number % fault.number("every"):
            return False
        if "id" in values and fault.number("id") not in ids:
            return False
        if "times" in values and self.hits.get(fault.name, 0) >= fault.number("times"):
            return False
        return "chance" not in values or self._rng.random() < float(values["chance"])


def _dies_by_request(fault: Fault) -> bool:
    return fault.name == "die" and any(key in fault.values for key in ("after", "request", "id"))
