"""Source reports: what each node says of the sources of workers that it is configured with.

    register d/KIND/NAME = msgpack [state, since, count, age, writes, room for texts …]

A report is good for 15 s and said anew when it changes, and every five seconds. Times are ages at the moment of
writing: clocks of nodes need not agree. Long texts are cut, so that a report always fits.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from smg_mesh.shared import probers

if TYPE_CHECKING:
    from smg_mesh.shared import Shared

TTL_MS: Final = 15_000
REPEAT_MS: Final = 5_000
REPORT_BYTES_MAX: Final = 440
"""A register holds 480."""
TEXT_CHARACTERS_MAX: Final = 96
"""Of each of the three texts: at three bytes a character all of them fit, with the numbers."""

_KIND: Final = "d"
_AGES: Final = ("since_ms", "age_ms")
_TEXTS: Final = ("trouble", "held", "unusable")


class Register(Protocol):
    """Port to what one node said, and when this one heard it."""

    @property
    def owner(self) -> str:
        """Who said it."""
        ...

    @property
    def key(self) -> str:
        """What about."""
        ...

    @property
    def content(self) -> bytes:
        """What was said."""
        ...

    @property
    def heard_ms(self) -> int:
        """When."""
        ...


class SourceReport(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One node's word on one source. `standing`: see `discovery.duty`, or `aside`: it takes no new work.

    `since_ms`: for how long it has stood so; `age_ms`: how old its view is, -1 without one; `writing`: whether this node
    writes what the source shows; `waiting`: what is still to be written; `refused`: what is shown and not registered.
    """

    standing: str = "waiting"
    since_ms: int = 0
    sightings: int = 0
    age_ms: int = -1
    writing: bool = False
    waiting: int = 0
    refused: int = 0
    trouble: str = ""
    """What the source answered last, if it fails."""
    held: str = ""
    """What is kept although the source does not show it, and why."""
    unusable: str = ""
    """The first of what it shows and nobody can use, and how many there are."""


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(SourceReport)


class SourceReports:
    """This node's reports and those of the others that live."""

    def __init__(self, shared: "Shared") -> None:
        self._registers: Final = shared.registers
        self._me: Final = shared.name
        self._living: Final = shared.living
        self._own: dict[str, tuple[SourceReport, int]] = {}
        """By key, with when it was last said."""
        self._watchers: list[Callable[[], None]] = []
        self._registers.watch(_KIND, self._hear)

    def publish(self, kind: str, name: str, fields: Mapping[str, object]) -> None:
        """Say this of a source for the next 15 s; what is the same but for its ages is written every five."""
        key, now_ms = f"{kind}/{name}", self._registers.now_ms()
        said: Any = fields
        report = _fitting(SourceReport(**said))
        before = self._own.get(key)
        if before is not None and _bare(before[0]) == _bare(report) and not _due(before[1], now_ms):
            return
        self._own[key] = report, now_ms
        self._registers.set(_KIND, key, _encoder.encode(report), ttl_ms=TTL_MS)

    def withdraw(self, kind: str, name: str) -> None:
        """Say nothing of a source any more."""
        if self._own.pop(f"{kind}/{name}", None) is not None:
            self._registers.clear(_KIND, f"{kind}/{name}")

    def of(self, kind: str, name: str) -> Mapping[str, SourceReport]:
        """Return what each living node says of a source, with ages as of now, by node; this one's own too."""
        living = self._living()
        key, now_ms = f"{kind}/{name}", self._registers.now_ms()
        found: dict[str, SourceReport] = {}
        for register in self._registers.get(_KIND, key):
            report = _read(register)
            if report is not None and register.owner in living:
                found[register.owner] = _aged(report, now_ms - register.heard_ms)
        own = self._own.get(key)
        if own is not None:
            found[self._me] = _aged(own[0], now_ms - own[1])
        return {node: found[node] for node in sorted(found)}

    def contested(self, kind: str, name: str) -> bool:
        """Return whether another source of that kind, as its writer says, shows something that it may not have now."""
        others = [other for one, other in self.named() if one == kind and other != name]
        return any(
            report.writing and report.refused
            for other in others
            for report in self.of(kind, other).values()
        )

    def ranked(self, kind: str, name: str, nodes: Sequence[str]) -> Sequence[str]:
        """Return these nodes in the order in which they see to a source: the same on every node."""
        candidates = [(node, "") for node in nodes]
        return probers(f"discovery/{kind}/{name}", candidates, all_up_to=len(candidates))

    def named(self) -> tuple[tuple[str, str], ...]:
        """Return the sources, as kind and name, that any node reports on, sorted."""
        keys = {register.key for register in self._registers.items(_KIND)} | set(self._own)
        split = [key.partition("/") for key in sorted(keys)]
        return tuple((kind, name) for kind, _, name in split)

    def watch(self, heard: Callable[[], None]) -> None:
        """Call `heard` whenever another node says something else. It may read and must not publish."""
        self._watchers.append(heard)

    def _hear(self, register: Register, gone: bool) -> None:
        if register.owner != self._me:
            for heard in self._watchers:
                heard()


def _due(said_ms: int, now_ms: int) -> bool:
    return now_ms - said_ms >= REPEAT_MS


def _bare(report: SourceReport) -> SourceReport:
    """Return the report without what changes with time alone."""
    return msgspec.structs.replace(report, **dict.fromkeys(_AGES, 0))


def _aged(report: SourceReport, by_ms: int) -> SourceReport:
    age_ms = report.age_ms if report.age_ms < 0 else report.age_ms + max(0, by_ms)
    return msgspec.structs.replace(report, since_ms=report.since_ms + max(0, by_ms), age_ms=age_ms)


def _fitting(report: SourceReport) -> SourceReport:
    """Return the report with its texts cut to what one register holds."""
    most = TEXT_CHARACTERS_MAX
    while True:
        texts = {name: _cut(getattr(report, name), most) for name in _TEXTS}
        cut = msgspec.structs.replace(report, **texts)
        if len(_encoder.encode(cut)) <= REPORT_BYTES_MAX:
            return cut
        most //= 2


def _cut(text: str, most: int) -> str:
    plain = text.encode("utf-8", "replace").decode()
    return plain if len(plain) <= most else f"{plain[: max(0, most - 1)]}…"


def _read(register: Register) -> SourceReport | None:
    """Return what a register says; None if it makes no sense."""
    try:
        return _decoder.decode(register.content)
    except (ValueError, RecursionError):
        return None
