"""Source definitions: sources of this node's own settings and those of the cluster as one, and the check of a new one.

    KIND/NAME = {"spec": the fields of discovery.KIND.NAME}

A definition of the cluster counts in place of a configured source of the same kind and name. One that this release
cannot read whole is not followed, and neither is what the node's own settings say of that name: two nodes must not
write by two selections.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias

import msgspec

from smg_node.cluster.definition_ports import SharedValue, StrangeValue
from smg_node.core.errors import SmgError, invalid
from smg_node.discovery.dns.options import DnsOptions
from smg_node.discovery.kubernetes.options import KubernetesOptions
from smg_node.discovery.kubernetes.selection import selection_of

Kind: TypeAlias = Literal["kubernetes", "dns"]
Key: TypeAlias = tuple[str, str]
"""Kind and name of a source."""
Options: TypeAlias = KubernetesOptions | DnsOptions

SOURCES_MAX: Final = 64
"""Of a kind, those of a node's own settings and of the cluster together: each is a watch of its own."""
CODE: Final = "invalid_source"
SPEC: Final = "spec"
_OPTIONS: Final[Mapping[str, type[Options]]] = {"kubernetes": KubernetesOptions, "dns": DnsOptions}
_NOT_SAID: Final = frozenset({"kubeconfig", "ports_annotation", "bootstrap_annotation"})
"""Options that are no settings of one source."""
FIELDS: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(one.name for one in fields(options)) - _NOT_SAID
    for kind, options in _OPTIONS.items()
}
"""What may be said of a source, by its kind."""
SCHEMES: Final = ("any", "grpc", "grpcs", "http", "https")
ROLES: Final = ("regular", "prefill", "decode", "encode")


@dataclass(frozen=True, slots=True)
class Defined:
    """One source that counts. `version` is 0 where the node's own settings define it."""

    options: Options
    version: int = 0


@dataclass(frozen=True, slots=True)
class Definitions:
    """The sources that count, by kind and name, and why definitions of the cluster do not, by their keys."""

    sources: Mapping[Key, Defined]
    unreadable: Mapping[str, str]


def merged(
    own: Mapping[Key, Options],
    shared: Sequence[SharedValue],
    strange: Sequence[StrangeValue] = (),
    *,
    kubeconfig: str = "",
) -> Definitions:
    """Return what counts on a node with these sources of its own, and these definitions of the cluster."""
    sources = {key: Defined(options) for key, options in own.items()}
    unreadable: dict[str, str] = {}
    for one in strange:
        sources.pop(_parts(one.key), None)
        unreadable[one.key] = "this release cannot read it"
    for one in shared:
        kind, name = _parts(one.key)
        try:
            options = read_definition(kind, one.value, kubeconfig=kubeconfig)
            sources[kind, name] = Defined(options, one.version)
        except ValueError as error:
            sources.pop((kind, name), None)
            unreadable[one.key] = str(error)
    return Definitions(sources, unreadable)


def read_definition(kind: str, value: object, *, kubeconfig: str = "") -> Options:
    """Return the options that a definition means; ValueError for one that is not understood whole."""
    said = value.get(SPEC) if isinstance(value, dict) else None
    if kind not in _OPTIONS:
        raise ValueError(f"this release knows no source of the kind {kind[:32]!r}")
    if not isinstance(said, dict):
        raise ValueError("it is no definition of a source")
    options = options_of(kind, said, kubeconfig=kubeconfig)
    if isinstance(options, DnsOptions):
        if not options.name.strip(".") or options.is_srv == bool(options.port):
            raise ValueError("name: it is none, or has no port where it needs one")
    elif bool(options.selector.strip()) == bool(options.service):
        raise ValueError("it selects nothing, or by two ways")
    try:
        # What follows from them is looked at as well: a spec of workers, for one.
        options.worker() if isinstance(options, DnsOptions) else selection_of(options)
    except SmgError as error:
        raise ValueError(error.message) from error
    return options


def options_of(kind: str, said: Mapping[str, Any], *, kubeconfig: str = "") -> Options:
    """Return the options that the fields of a source mean; ValueError for fields that this release does not have."""
    strange = sorted(str(name) for name in said if name not in FIELDS[kind])
    if strange:
        raise ValueError(f"{strange[0][:64]}: this release has no such field")
    scheme, role = said.get("scheme", SCHEMES[0]), said.get("role", ROLES[0])
    if scheme not in SCHEMES or role not in ROLES:
        field, word = ("scheme", scheme) if scheme not in SCHEMES else ("role", role)
        raise ValueError(f"{field}: this release does not know {str(word)[:32]!r}")
    told = {**said, "scheme": "" if scheme == SCHEMES[0] else scheme}
    try:
        if kind == "kubernetes":
            return msgspec.convert({**told, "kubeconfig": kubeconfig}, KubernetesOptions)
        return msgspec.convert({**told, "port": int(said.get("port") or "0")}, DnsOptions)
    except (msgspec.ValidationError, TypeError) as error:
        raise ValueError(str(error)) from error


def checked_definition(kind: str, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition as it is kept; INVALID_REQUEST names the field that is wrong.

    It is checked as the settings are, by their own declaration: that library is loaded with the first definition that an
    operator sends, and is slow to load. Call it in a thread.
    """
    if kind == "file":
        raise invalid("a file or a program is each node's own, and defined by its settings", "kind")
    if kind not in _OPTIONS:
        raise invalid(f"a source is of the kind kubernetes or dns, not {kind[:32]!r}", "kind")
    from smg_node.config.schema.problems import ConfigurationError
    from smg_node.config.sections.discovery import SOURCE_SECTIONS, checked_source_name
    from smg_node.config.sources.section_reader import read_section

    try:
        checked_source_name(name)
    except ValueError as error:
        raise invalid(str(error), "name", CODE) from None
    try:
        kept: dict[str, Any] = {SPEC: read_section(SOURCE_SECTIONS[kind], body)}
        read_definition(kind, kept)
    except ConfigurationError as error:
        where = error.problems[0].subject or None
        raise invalid("; ".join(error.lines()), where, CODE) from None
    except ValueError as error:
        raise invalid(str(error), None, CODE) from None
    return kept


def _parts(key: str) -> Key:
    kind, _, name = key.partition("/")
    return kind, name
