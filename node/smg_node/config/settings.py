"""Settings tree: every knob of a node as one frozen value, read by the wiring and never changed."""

import re
import socket
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from smg_mesh.config import NAME_PATTERN
from smg_node.config.plugins import installed
from smg_node.config.schema.declaration import number, place, switch, text
from smg_node.config.schema.declared_live_knobs import live_knobs
from smg_node.config.schema.live_settings import LiveKnob
from smg_node.config.schema.model_name import check_model_name
from smg_node.config.sections.admission import Admission
from smg_node.config.sections.auth import Auth
from smg_node.config.sections.discovery import Discovery
from smg_node.config.sections.engine import EngineCalls
from smg_node.config.sections.history import History, Interactions, Responses, Retention
from smg_node.config.sections.http import Http
from smg_node.config.sections.kv import Kv
from smg_node.config.sections.lifecycle import Drain, Readiness
from smg_node.config.sections.limits import Limits
from smg_node.config.sections.mcp import Mcp
from smg_node.config.sections.media import Media
from smg_node.config.sections.mesh import MeshSection
from smg_node.config.sections.messages import Messages
from smg_node.config.sections.models import Model
from smg_node.config.sections.providers import Providers
from smg_node.config.sections.resilience import Breaker, Overload, Queue, Retry
from smg_node.config.sections.routing import Routing
from smg_node.config.sections.storage import Storage
from smg_node.config.sections.stream import Stream
from smg_node.config.sections.telemetry import Telemetry
from smg_node.config.sections.templates import Templates
from smg_node.config.sections.tokens import Tokens
from smg_node.config.sections.workers import Workers

_NODE_NAME = re.compile(NAME_PATTERN, re.ASCII)
_NAME_MAX_CHARACTERS = 63  # what the pattern allows; a name is also a DNS label of a certificate
_MODELS_MAX = 1024  # configured by hand; more is a generated file gone wrong

ModelName = Annotated[str, AfterValidator(check_model_name)]


def _host_name() -> str:
    """Return the machine's name in lower case, with what a node's name cannot hold replaced."""
    name = re.sub(r"[^a-z0-9_.-]", "-", socket.gethostname().lower()).lstrip(".-")
    return name[:_NAME_MAX_CHARACTERS] or "smg-node"


class Settings(BaseSettings):
    """Every knob of a node. Values given to the constructor are all there is: no environment is read.

    Files, environment and flags are read by `loader.py`, which knows where each value came from.
    """

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=True
    )

    name: str = text(
        None,
        "Name of this node, which no other member has.",
        most=_NAME_MAX_CHARACTERS,
        short="--name",
        shown="the host name",
    )
    data_dir: Path = place(
        Path("~/.local/share/smg-node"),
        "Directory of tokenizers and state.",
        short="--data-dir",
        metavar="DIR",
    )
    demo: bool = switch(
        False,
        "Start two simulated engines and serve them: something to call.",
        short="--demo",
    )
    processes: int = number(
        0,
        "Data processes beside the one that controls; 0: everything in one process.",
        low=0,
        high=256,
        why="0 is one process for everything; more than a machine's cores never helps, and none has more than 256",
    )
    http: Http = Field(default_factory=Http)
    auth: Auth = Field(default_factory=Auth)
    stream: Stream = Field(default_factory=Stream)
    workers: Workers = Field(default_factory=Workers)
    discovery: Discovery = Field(default_factory=Discovery)
    providers: Providers = Field(default_factory=Providers)
    mcp: Mcp = Field(default_factory=Mcp)
    media: Media = Field(default_factory=Media)
    engine: EngineCalls = Field(default_factory=EngineCalls)
    routing: Routing = Field(default_factory=Routing)
    breaker: Breaker = Field(default_factory=Breaker)
    retry: Retry = Field(default_factory=Retry)
    overload: Overload = Field(default_factory=Overload)
    queue: Queue = Field(default_factory=Queue)
    admission: Admission = Field(default_factory=Admission)
    kv: Kv = Field(default_factory=Kv)
    tokens: Tokens = Field(default_factory=Tokens)
    templates: Templates = Field(default_factory=Templates)
    models: dict[ModelName, Model] = Field(default_factory=dict, max_length=_MODELS_MAX)
    limits: Limits = Field(default_factory=Limits)
    messages: Messages = Field(default_factory=Messages)
    storage: Storage = Field(default_factory=Storage)
    retention: Retention = Field(default_factory=Retention)
    history: History = Field(default_factory=History)
    responses: Responses = Field(default_factory=Responses)
    interactions: Interactions = Field(default_factory=Interactions)
    mesh: MeshSection = Field(default_factory=MeshSection)
    drain: Drain = Field(default_factory=Drain)
    readiness: Readiness = Field(default_factory=Readiness)
    telemetry: Telemetry = Field(default_factory=Telemetry)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the one source there is: what `loader.py` merged, in the order it documents.

        The library's own readers stay out, because they forget where a value came from and pass over
        unknown names.
        """
        return (init_settings,)

    @property
    def live(self) -> tuple[LiveKnob, ...]:
        """What may be changed while the node runs, by its declarations; for readers that lack them."""
        return live_knobs(type(self))

    @property
    def policy_plugins(self) -> tuple[tuple[str, str], ...]:
        """Routing policies that installed packages bring; for the process that serves, which does not look."""
        return installed("smg.policy")

    @property
    def peer_pods(self) -> tuple[str, str]:
        """Selector and namespace of the pods of this cluster's nodes; no selector where they are not looked for."""
        if self.mesh.kubernetes_selector.strip():
            return self.mesh.kubernetes_selector, self.mesh.kubernetes_namespace
        return ",".join(self.discovery.pods.router_selector), self.discovery.pods.namespace

    @field_validator("name", mode="before")
    @classmethod
    def _name_or_host(cls, name: Any) -> Any:
        return _host_name() if name is None else name

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not _NODE_NAME.fullmatch(name):
            raise ValueError(
                f"{name[:80]!r} is not a node name (lower-case letters, digits and . _ - only)"
            )
        return name

    @field_validator("data_dir")
    @classmethod
    def _expand(cls, path: Path) -> Path:
        return path.expanduser()

    @model_validator(mode="after")
    def _clients_are_asked(self) -> "Settings":
        asked = self.http.tls.client != "off" or self.http.trusted_proxies
        if self.auth.certificates and not asked:
            raise ValueError(
                "auth.certificates needs http.tls.client ask or require, or http.trusted_proxies"
            )
        return self

    @model_validator(mode="after")
    def _peers_are_selected_once(self) -> "Settings":
        if not self.discovery.pods.router_selector:
            return self
        if self.mesh.kubernetes_selector.strip():
            raise ValueError(
                "mesh.kubernetes_selector and discovery.pods.router_selector (--router-selector) both say"
                " which pods are peers; give one of them"
            )
        if not self.mesh.enabled:
            raise ValueError(
                "discovery.pods.router_selector (--router-selector) needs mesh.key_file (--mesh-key FILE), or"
                " --insecure-mesh for plain text"
            )
        return self

    @model_validator(mode="after")
    def _a_port_each(self) -> "Settings":
        listening = {
            "http.listen": self.http.listen,
            "http.metrics_listen": self.http.metrics_listen,
        }
        if self.mesh.enabled:
            listening["mesh.listen"] = self.mesh.listen
        for (one, where), (other, also) in combinations(listening.items(), 2):
            if where == also and where.port != 0:
                raise ValueError(f"{one} and {other} are both {where}; they need two ports")
        return self
