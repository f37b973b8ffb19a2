"""Discovery knobs: pods, names and a file that say which engines there are."""

import re
import shlex
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from smg_node.config.address import split_host_port
from smg_node.config.schema.declaration import Section, choice, number, place, switch, text, words
from smg_node.config.sections.discovery_pods import (
    PodSelectors,
    checked_annotation,
    checked_from,
    checked_model_from,
    checked_namespace,
)
from smg_node.config.worker_url import parse_worker_url
from smg_node.core.errors import SmgError

Scheme = Literal["any", "grpc", "grpcs", "http", "https"]
Role = Literal["regular", "prefill", "decode", "encode"]

SOURCES_MAX: Final = 64
"""Of a kind: each Kubernetes source is a watch of its own."""
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?", re.ASCII)
_OBJECT: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
_PORT_NAME: Final = re.compile(r"(?=.*[a-z])[a-z0-9](?:[a-z0-9-]{0,13}[a-z0-9])?", re.ASCII)
_PORT_MAX: Final = 65_535
_SCHEME_SAYS: Final = "How its engines are spoken to; `any` finds out."
_SPEC_SAYS: Final = (
    "What else is true of its workers, as behind the ? of --worker: priority=60&label.pool=chat."
)

_KEEP_SAYS: Final = (
    "Whether its workers stay, as if added by hand, when it is taken out of the settings."
)


class KubernetesSource(Section):
    """Pods of one selection, whose engines become workers."""

    selector: str = text(
        "",
        "Label selector, in the syntax of Kubernetes: app=vllm,tier in (chat). There is none for everything.",
        most=1024,
        metavar="SELECTOR",
    )
    service: str = text(
        "",
        "Service whose endpoints are taken instead of a selection of pods.",
        most=253,
        metavar="NAME",
    )
    namespace: str = text(
        "",
        "Where they are; `*` is everywhere, and needs a ClusterRole.",
        most=63,
        metavar="NAMESPACE",
        shown="the pod's own",
    )
    port: str = text(
        "",
        "Port of the engine, as a number or as the name of a container port, of pods without the annotation"
        " smg.ai/worker-ports.",
        most=15,
        metavar="PORT",
        digits=True,
    )
    scheme: Scheme = choice("any", _SCHEME_SAYS)
    role: Role = choice("regular", "What its workers do.")
    role_from: str = text(
        "",
        "Label of a pod that says its role, `label:KEY`; `role` is that of pods without it.",
        most=330,
        metavar="label:KEY",
    )
    model_from: str = text(
        "",
        "What names the model of a pod: `namespace`, `label:KEY` or `annotation:KEY`; the name that the engine"
        " gives becomes another one. Empty: the engine is asked.",
        most=330,
        metavar="FROM",
    )
    connector_annotation: str = text(
        "smg.ai/kv-connector",
        "Annotation of a pod that says how it hands requests over.",
        most=317,
        metavar="KEY",
    )
    engine_id_annotation: str = text(
        "smg.ai/kv-engine-id",
        "Annotation of a pod that says what those call it that it hands requests to.",
        most=317,
        metavar="KEY",
    )
    spec: str = text("", _SPEC_SAYS, most=1024, metavar="SPEC")
    keep: bool = switch(False, _KEEP_SAYS)

    @field_validator("namespace")
    @classmethod
    def _namespace(cls, said: str) -> str:
        return checked_namespace(said)

    @field_validator("service")
    @classmethod
    def _service(cls, said: str) -> str:
        if said and not _OBJECT.fullmatch(said):
            raise ValueError(f"{said[:80]!r} is no name of a service")
        return said

    @field_validator("port")
    @classmethod
    def _port(cls, said: str) -> str:
        if said and not _is_port(said) and not _PORT_NAME.fullmatch(said):
            raise ValueError(f"{said[:40]!r} is neither a port nor the name of a container port")
        return said

    @field_validator("role_from")
    @classmethod
    def _role_from(cls, said: str) -> str:
        return checked_from(said, ("label",))

    @field_validator("model_from")
    @classmethod
    def _model_from(cls, said: str) -> str:
        return checked_model_from(said)

    @field_validator("connector_annotation", "engine_id_annotation")
    @classmethod
    def _annotation(cls, said: str) -> str:
        return checked_annotation(said)

    @field_validator("spec")
    @classmethod
    def _spec(cls, said: str) -> str:
        return _checked_spec(said)

    @model_validator(mode="after")
    def _selects(self) -> "KubernetesSource":
        if bool(self.selector.strip()) == bool(self.service):
            raise ValueError("it needs a selector, such as app=vllm, or a service, and not both")
        return self


class DnsSource(Section):
    """Name in the DNS, whose addresses become workers."""

    name: str = text(
        "",
        "Name to ask for; one that begins with _ is asked for SRV records, any other for addresses.",
        most=254,
        metavar="NAME",
    )
    port: str = text(
        "",
        "Port of the engines, where addresses are asked for; SRV records have their own.",
        most=5,
        metavar="PORT",
        digits=True,
    )
    servers: tuple[str, ...] = words(
        (),
        "Name servers to ask, as HOST:PORT; none: those of the machine.",
        most=8,
        metavar="HOST:PORT",
    )
    scheme: Scheme = choice("any", _SCHEME_SAYS)
    role: Role = choice("regular", "What its workers do.")
    spec: str = text("", _SPEC_SAYS, most=1024, metavar="SPEC")
    keep: bool = switch(False, _KEEP_SAYS)

    @field_validator("port")
    @classmethod
    def _port(cls, said: str) -> str:
        if said and not _is_port(said):
            raise ValueError(f"{said!r} is no port from 1 to {_PORT_MAX}")
        return said

    @field_validator("servers")
    @classmethod
    def _servers(cls, said: tuple[str, ...]) -> tuple[str, ...]:
        for server in said:
            host, port = split_host_port(server)
            if not host or not port:
                raise ValueError(f"{server[:80]!r} is no name server such as 10.0.0.1:53")
        return said

    @field_validator("spec")
    @classmethod
    def _spec(cls, said: str) -> str:
        return _checked_spec(said)

    @model_validator(mode="after")
    def _asks(self) -> "DnsSource":
        if not self.name.strip("."):
            raise ValueError("it needs a name, such as _grpc._tcp.vllm.example or vllm.example")
        if self.name.startswith("_") == bool(self.port):
            raise ValueError(
                "a name without _ at its beginning needs a port, and one with _ has its own"
            )
        return self


SOURCE_SECTIONS: Final[dict[str, type[KubernetesSource] | type[DnsSource]]] = {
    "kubernetes": KubernetesSource,
    "dns": DnsSource,
}
"""What is said of one source, by its kind."""


def checked_source_name(name: str) -> str:
    """Return the name of a source; ValueError if it can be none."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name[:80]!r} is no name of a source: lower-case letters, digits and -, at most 32"
        )
    return name


SourceName = Annotated[str, AfterValidator(checked_source_name)]


class Discovery(Section):
    """Where workers are found besides those that are listed by hand."""

    kubernetes: dict[SourceName, KubernetesSource] = Field(
        default_factory=dict, max_length=SOURCES_MAX
    )
    dns: dict[SourceName, DnsSource] = Field(default_factory=dict, max_length=SOURCES_MAX)
    pods: PodSelectors = Field(default_factory=PodSelectors)
    file: Path | None = place(
        None,
        "File that lists workers, as JSON or YAML: URLs, or a manifest; read again when it changes.",
        aliases=("--discovery-file",),
        metavar="FILE",
    )
    command: str = text(
        "",
        "Program with its arguments that prints such a list, instead of a file; run every 30 seconds.",
        most=4096,
        metavar="COMMAND",
    )
    check_interval_s: float = number(
        1,
        "Seconds between two looks at whether the file changed.",
        low=0.1,
        high=3600,
        why="below 0.1 s a look costs more than it tells; after an hour nobody waits for a change",
        aliases=("--discovery-check-interval-secs",),
    )
    kubeconfig: Path | None = place(
        None,
        "File that says how the API server of Kubernetes is reached from outside of it.",
        metavar="FILE",
        shown="the pod's own account",
    )
    empty_confirm_s: float = number(
        30,
        "Seconds that all workers of a source serve on after it shows none of them any more, while they answer.",
        low=0,
        high=3600,
        why="0 believes a mistyped selector at once; after an hour a removed pool would still be tried",
    )

    @field_validator("file", "kubeconfig")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return path.expanduser() if path is not None else None

    @field_validator("command")
    @classmethod
    def _command(cls, said: str) -> str:
        try:
            parts = shlex.split(said)
        except ValueError as error:
            raise ValueError(f"it is no command: {str(error).lower()}") from None
        if said and not parts:
            raise ValueError("it names no program")
        return said

    @model_validator(mode="after")
    def _one_door(self) -> "Discovery":
        if self.file is not None and self.command:
            raise ValueError("discovery.file and discovery.command cannot both be given")
        if self.pods.provider == "file" and self.pods.enabled and not (self.file or self.command):
            raise ValueError("the provider file needs discovery.file (--discovery-file)")
        for name in self.pods.names:
            if name in self.kubernetes:
                raise ValueError(
                    f"discovery.kubernetes.{name} is what --service-discovery calls its own source"
                )
        return self

    @property
    def lists_own(self) -> bool:
        """Whether this node lists workers of its own, by a file or a program."""
        return self.file is not None or bool(self.command)

    @property
    def configured(self) -> bool:
        """Whether there is any source at all."""
        return bool(self.kubernetes or self.dns or self.pods.names or self.lists_own)


def _is_port(said: str) -> bool:
    return said.isascii() and said.isdigit() and 0 < int(said) <= _PORT_MAX


def _checked_spec(said: str) -> str:
    try:
        parse_worker_url(f"worker:1?{said.lstrip('?&')}")
    except SmgError as error:
        raise ValueError(error.message) from None
    return said
