"""Limit rule: for whom a limit is, how much it allows, and what happens when it is used up.

One rule has several amounts, each of one unit and one window, and perhaps a number of requests at a time. Every
one of them is a limit of its own, `SCOPE#UNIT/WINDOW_MS`, and all of a scope have one owner.

    record = msgpack {tenant, key, model, amounts, concurrency, …, provider, tool, older}

`older` says what was allowed before, and until when: a node that was cut off may still go by it,
and an owner that mints has to leave room for that. A rule that was taken away stays as a record
without amounts as long as it matters. A rule as it is written and its bytes are the same to every
version that knows its fields.
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from smg_mesh.escrow.limit_model import AMOUNT_MAX, Mode, Unit
from smg_mesh.state.limits.limit_scope import Scope
from smg_mesh.state.limits.limit_window import WINDOW_MS_MAX, format_window

Reserve: TypeAlias = Literal["worst_case", "estimate"]
"""How much is reserved of an answer: all it may have, or what such answers usually have."""
OnExhausted: TypeAlias = Literal["debt", "finish"]
"""What becomes of an answer that has used up all there is: it goes on, or it ends."""

AMOUNTS_MAX: Final = 16
NOTE_CHARS_MAX: Final = 256
CONCURRENCY_MAX: Final = 1_000_000
LASTING_MS: Final = 3_600_000
"""Windows from here on must outlive a restart of the whole cluster, or be said to be volatile."""
CONCURRENT: Final = "concurrent"
ORDER: Final[tuple[Unit, ...]] = (
    "requests",
    "concurrent",
    "input_tokens",
    "tokens",
    "output_tokens",
    "cost",
)
"""What is cheap to check comes first."""

_Window: TypeAlias = Annotated[int, Meta(ge=0, le=WINDOW_MS_MAX)]
_Standing: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
_Amount: TypeAlias = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]


class Amount(msgspec.Struct, frozen=True):
    """So many units in each window. Windows begin at multiples of their length since 1970, UTC.

    Cost is in millionths of the currency.
    """

    unit: Unit
    amount: _Amount
    window_ms: _Window

    @property
    def window(self) -> str:
        """The window as people write it; empty for what has none."""
        return format_window(self.window_ms)


class Older(msgspec.Struct, frozen=True, array_like=True):
    """Amount that was allowed until `until_ms` (wall clock of the node that changed it)."""

    unit: Unit
    window_ms: _Window
    amount: _Amount
    standing: _Standing
    until_ms: Annotated[int, Meta(ge=0)]

    @property
    def weight(self) -> float:
        """What stands with nodes is in proportion to this."""
        return self.amount * self.standing


class LimitRule(msgspec.Struct, frozen=True):
    """Rule of what is allowed to whom. `standing` is the part that
    stands with nodes, reachable or not.
    """

    tenant: str = ""
    key: str = ""
    model: str = ""
    amounts: Annotated[tuple[Amount, ...], Meta(max_length=AMOUNTS_MAX)] = ()
    concurrency: Annotated[int, Meta(ge=0, le=CONCURRENCY_MAX)] | None = None
    mode: Mode = "balanced"
    standing: _Standing = 0.5
    reserve: Reserve = "estimate"
    on_exhausted: OnExhausted = "debt"
    cached_weight: Annotated[float, Meta(ge=0, le=1)] = 1.0
    volatile: bool = False
    note: Annotated[str, Meta(max_length=NOTE_CHARS_MAX)] = ""
    provider: str = ""
    """Whose calls it limits, where it is no limit of requests. A release before it finds a record under another key
    than its names say, and passes it over.
    """
    tool: str = ""
    """Runs of which tool it limits, where it is no limit of requests. A release before it passes the record over, for the
    same reason.
    """

    @property
    def scope(self) -> str:
        """The text of its scope; empty for all together."""
        return Scope(self.tenant, self.key, self.model, self.provider, self.tool).text

    @property
    def limits(self) -> tuple[Amount, ...]:
        """All that is limited: the amounts, and what may be open at a time as one without a window."""
        at_a_time = () if self.concurrency is None else (Amount(CONCURRENT, self.concurrency, 0),)
        whole = (*self.amounts, *at_a_time)
        return tuple(sorted(whole, key=lambda amount: place(amount.unit, amount.window_ms)))

    def amount_of(self, unit: str, window_ms: int) -> Amount | None:
        """Return how much of that it allows; None if it does not limit it."""
        for amount in self.limits:
            if (amount.unit, amount.window_ms) == (unit, window_ms):
                return amount
        return None

    def as_older(self, until_ms: int) -> "list[Older]":
        """Return all that it allows as what was allowed until then."""
        return [
            Older(one.unit, one.window_ms, one.amount, self.standing, until_ms)
            for one in self.limits
        ]


class LimitRecord(LimitRule, frozen=True):
    """A rule with what it allowed before; one without amounts was taken away."""

    older: tuple[Older, ...] = ()

    @property
    def in_force(self) -> bool:
        """Whether it limits anything."""
        return bool(self.amounts) or self.concurrency is not None

    def rule(self) -> LimitRule:
        """Return the rule alone."""
        return LimitRule(*(getattr(self, name) for name in LimitRule.__struct_fields__))


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(LimitRecord)


def write_record(rule: LimitRule, older: Sequence[Older]) -> bytes:
    """Return the bytes of a rule and what was before it."""
    fields = {name: getattr(rule, name) for name in LimitRule.__struct_fields__}
    return _encoder.encode(LimitRecord(**fields, older=tuple(older)))


def read_record(data: bytes) -> LimitRecord:
    """Return what these bytes say; ValueError if this version cannot read them."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"no limit: {error}") from error


def limit_key(scope: str, unit: str, window_ms: int) -> str:
    """Return what rights to this go by."""
    return f"{scope}#{unit}/{window_ms}"


def parse_key(key: str) -> tuple[str, str, int] | None:
    """Return (scope, unit, window_ms) of a key; None if it is none."""
    scope, hash_sign, rest = key.partition("#")
    unit, slash, window = rest.partition("/")
    if not hash_sign or not slash or not (window.isascii() and window.isdecimal()):
        return None
    return scope, unit, int(window)


def place(unit: Unit, window_ms: int) -> tuple[int, int]:
    """Return what sorts limits: the cheap ones to check first, then the shorter windows."""
    return ORDER.index(unit), window_ms
