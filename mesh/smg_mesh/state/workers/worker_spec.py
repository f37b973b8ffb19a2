"""Worker spec: how a worker is reached and used, as sources and operators say it, and its bytes.

A source's value is a map {spec, by, withheld}, a patch is {spec, by}, a drain {on, by}; `spec` has only the
fields that were said. A source that all nodes share adds {name, state, instance, keep, released}: which of its kind it is,
what it says of the endpoint, which engine is there now, and what becomes of the entry without that source. What a newer version added to any of these maps stays in it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from smg_mesh.state.unknown_versions import read_map


class WorkerSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One endpoint. `sealed_key` is its API key, sealed for the nodes of this cluster; empty: none."""

    url: Annotated[str, Meta(min_length=1, max_length=2048)]
    contract: str | None = None
    """Which engine's contract it speaks; None: to be found out."""
    role: str = "regular"
    model: str | None = None
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    priority: int = 50
    cost: float = 1.0
    sealed_key: bytes = b""


_FIELDS: Final = WorkerSpec.__struct_fields__
_KNOWN: Final = frozenset(_FIELDS)
_ENVELOPE: Final = frozenset(
    {"spec", "by", "withheld", "on", "name", "state", "instance", "keep", "released"}
)
READY, UNREADY, LEAVING = "ready", "unready", "leaving"
STATES: Final = (READY, UNREADY, LEAVING)
"""What a source may say of an endpoint; of any other word nothing is known but that it is not ready."""
INSTANCE_CHARACTERS_MAX: Final = 128
_encoder = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """Contents of one entry. `fields` are those of a spec that were said;
    `strange` those not known here.
    """

    fields: Mapping[str, object]
    by: str
    withheld: bool = False
    """A listing that an operator removed: it remembers what was listed, and does not count."""
    strange: tuple[str, ...] = ()
    spec: WorkerSpec | None = None
    """These fields and no others, as they were read."""
    name: str = ""
    """Which source of its kind says so; empty where there is one of a kind."""
    state: str = READY
    """Whether it takes new work: one of `STATES`."""
    instance: str = ""
    """What tells the engine there from another one at the same address; empty: it cannot be told."""
    keep: bool = False
    """Whether the worker stays, as if added by hand, when its source is in no settings any more."""
    released: bool = False
    """Whether the source that says so shows it no more, and another one that does may have it."""

    @property
    def sealed_key(self) -> bytes:
        """The sealed API key in it; empty if there is none."""
        key = self.fields.get("sealed_key", b"")
        assert isinstance(key, bytes)
        return key


def fields_of(spec: WorkerSpec) -> dict[str, object]:
    """Return the fields that differ from what is true anyway; ValueError for values of wrong types."""
    said = msgspec.structs.asdict(spec) | {"labels": dict(spec.labels)}
    _checked(said)
    bare = msgspec.structs.asdict(WorkerSpec(url=spec.url))
    return {name: said[name] for name in _FIELDS if name == "url" or said[name] != bare[name]}


def patch_of(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a change, checked; ValueError names what is wrong."""
    unknown = [name for name in sorted(fields) if name not in _FIELDS or name == "url"]
    if unknown:
        raise ValueError(f"{unknown[0]} of a worker cannot be changed")
    said = dict(fields)
    if isinstance(said.get("labels"), Mapping):
        said["labels"] = dict(said["labels"])  # type: ignore[call-overload]  # it is a mapping
    _checked({"url": "-"} | said)
    return said


def spec_of(fields: Mapping[str, object]) -> WorkerSpec:
    """Return the spec with these fields; they were checked when they were read."""
    return msgspec.convert(fields, WorkerSpec, builtin_types=(bytes,))


def encode_source(said: SourceEntry, *, onto: bytes = b"") -> bytes:
    """Return the bytes of what is said, with all that is unknown here in the older bytes `onto`."""
    value = _base(onto)
    old = value.get("spec")
    strange = {} if not isinstance(old, dict) else {n: old[n] for n in old if n not in _FIELDS}
    value |= {"spec": strange | dict(said.fields), "by": said.by}
    told = {"name": said.name, "state": said.state, "instance": said.instance}
    usual = {"name": "", "state": READY, "instance": ""}
    for name in ("withheld", "keep", "released", *told):
        value.pop(name, None)
    value |= {name: text for name, text in told.items() if text != usual[name]}
    if said.withheld:
        value["withheld"] = True
    if said.keep:
        value["keep"] = True
    if said.released:
        # By whom: an older release that takes it over passes this on without knowing what it means.
        value["released"] = said.name
    return _encoder.encode(value)


def encode_drain(*, on: bool, by: str, onto: bytes = b"") -> bytes:
    """Return the bytes that say whether a worker gets no new work."""
    return _encoder.encode(_base(onto) | {"on": on, "by": by})


def read_source(value: bytes) -> SourceEntry:
    """Return what a source says; ValueError if this version cannot read it."""
    said = _read(read_map(value))
    if "url" not in said.fields:
        raise ValueError("spec: no url")
    return said


def read_patch(value: bytes) -> SourceEntry:
    """Return what an operator changed; ValueError if this version cannot read it."""
    return _read(read_map(value))


def read_drain(value: bytes) -> tuple[bool, tuple[str, ...]]:
    """Return whether it is on, and the names not known here; ValueError."""
    decoded = read_map(value)
    on = decoded.get("on")
    if not isinstance(on, bool):
        raise ValueError("on: neither true nor false")
    return on, _strange(decoded, _ENVELOPE)


def _read(decoded: dict[str, object]) -> SourceEntry:
    fields, by, withheld = (
        decoded.get("spec"),
        decoded.get("by", ""),
        decoded.get("withheld", False),
    )
    if not isinstance(fields, dict) or not isinstance(by, str) or not isinstance(withheld, bool):
        raise ValueError("not what a source says")
    name, state, instance = (
        decoded.get("name", ""),
        decoded.get("state", READY),
        decoded.get("instance", ""),
    )
    if not (isinstance(name, str) and isinstance(state, str) and isinstance(instance, str)):
        raise ValueError("not what a source says of an endpoint")
    # A word of a newer version says at least that this is not an endpoint like any other.
    state = state if state in STATES else UNREADY
    strange = _strange(decoded, _ENVELOPE) + _strange(fields, _KNOWN)
    known = {name: value for name, value in fields.items() if name in _KNOWN}
    spec = _checked(known if "url" in known else {"url": "-"} | known)
    told = {
        "keep": decoded.get("keep") is True,
        "released": bool(name) and decoded.get("released") == name,
    }
    return SourceEntry(known, by, withheld, strange, spec, name, state, instance, **told)


def _strange(found: dict[str, object], known: frozenset[str]) -> tuple[str, ...]:
    if found.keys() <= known:
        return ()
    return tuple(sorted(str(name) for name in found if name not in known))


def _checked(fields: Mapping[str, object]) -> WorkerSpec:
    try:
        spec = msgspec.convert(fields, WorkerSpec, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    if not math.isfinite(spec.cost):
        raise ValueError("cost: not a number")
    return spec


def _base(onto: bytes) -> dict[str, object]:
    if not onto:
        return {}
    try:
        return read_map(onto)
    except ValueError:
        return {}
