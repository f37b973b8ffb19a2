"""Plans of simulated engines: in words, as a command line gives them, and ready to start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from smg_chaos.engine.protocol.faults import Fault
from smg_chaos.engine.settings import EngineSettings

if TYPE_CHECKING:
    from smg_chaos.engine.scripts.bundle import Bundle
    from smg_chaos.engine.scripts.scripts import Script

ServerKind: TypeAlias = Literal["grpc", "h2", "openai"]
SERVERS: Final[tuple[ServerKind, ...]] = ("grpc", "h2")
"""Those to choose from; `openai` is what the contract of that name is served by."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A plan in words: names, paths and fault SPECs. `settings` are fields of `EngineSettings`."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    vocabulary: int | None = None
    tokenizer: Path | None = None
    script: str = "fixed"
    faults: Sequence[str] = ()
    server: ServerKind = "grpc"
    host: str = "127.0.0.1"
    port: int = 0
    workers: int = 1
    report: Path | None = None
    until_input_ends: bool = False
    api_key: str = ""
    tell_calls: bool = False
    account: Path | None = None
    kv_store: Path | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan ready to start. Worker k of `workers` (from 1) listens on `port` + k - 1, or anywhere
    for 0.
    """

    settings: EngineSettings
    bundle: "Bundle"
    script: "Script"
    faults: Sequence[Fault] = ()
    server: ServerKind = "grpc"
    host: str = "127.0.0.1"
    port: int = 0
    workers: int = 1
    report: Path | None = None
    until_input_ends: bool = False
    api_key: str = ""
    tell_calls: bool = False
    account: Path | None = None
    kv_store: Path | None = None

    def __post_init__(self) -> None:
        if self.server == "openai" and self.tell_calls:
            raise ValueError("--tell-calls needs gRPC")
        if self.server == "h2" and (self.api_key or self.tell_calls):
            raise ValueError("--api-key and --tell-calls need --server grpc")
        first = self.settings.bootstrap_port
        if first and first + self.workers - 1 > 65535:
            raise ValueError("there are not that many bootstrap ports")
        for fault in self.faults:
            if fault.kind.needs_h2 and self.server != "h2":
                raise ValueError(f"the fault {fault.name} needs --server h2: grpc.aio cannot do it")
            if fault.worker is not None and fault.worker > self.workers:
                raise ValueError(
                    f"the fault {fault.name} is for worker {fault.worker} of {self.workers}"
                )
