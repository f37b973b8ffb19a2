"""Engine knobs: transport, deadlines and TLS of calls to engines."""

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from smg_node.config.schema.declaration import Section, choice, number, place, words


class EngineTls(Section):
    """Whom to trust behind `grpcs://` and `https://`, and what to show to engines that ask who calls."""

    authority: Path | None = place(
        None,
        "File of the authorities whose word engines are believed on; without it those this machine trusts.",
        metavar="FILE",
    )
    authorities: tuple[str, ...] = words(
        (),
        "Further files of such authorities.",
        most=64,
        metavar="FILE",
        aliases=("--ca-cert-paths",),
    )
    certificate: Path | None = place(
        None,
        "File of the certificate that engines are shown.",
        metavar="FILE",
        aliases=("--client-cert-path",),
    )
    key: Path | None = place(
        None,
        "File of the certificate's private key.",
        metavar="FILE",
        aliases=("--client-key-path",),
    )

    @field_validator("authorities")
    @classmethod
    def _expand_all(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        if not all(paths):
            raise ValueError("a file of authorities has a name")
        return tuple(str(Path(path).expanduser()) for path in paths)

    @field_validator("authority", "certificate", "key")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return path.expanduser() if path is not None else None

    @model_validator(mode="after")
    def _both_or_none(self) -> "EngineTls":
        if (self.certificate is None) != (self.key is None):
            raise ValueError("engine.tls.certificate and engine.tls.key are needed together")
        return self


class EngineCalls(Section):
    """How engines are called, and how long each part of a call may take."""

    transport: Literal["h2", "grpcio"] = choice(
        "h2", "What speaks gRPC to the engines: our own HTTP/2, or the library grpcio."
    )
    connect_s: float = number(
        5,
        "Seconds to connect to a worker before another one is tried.",
        low=0.05,
        high=600,
        why="below 50 ms a far engine is unreachable; above 10 minutes no client still waits",
    )
    first_event_s: float = number(
        600,
        "Seconds to the first token of an answer.",
        low=0.1,
        high=86_400,
        why="below 0.1 s no engine answers; a call never outlives a day",
    )
    stall_s: float = number(
        300,
        "Seconds between two tokens of an answer.",
        low=0.1,
        high=86_400,
        why="below 0.1 s ordinary batching is a stall; a call never outlives a day",
        aliases=("--stream-body-stall-timeout-secs",),
    )
    request_s: float = number(
        1800,
        "Seconds for a whole answer.",
        low=0.1,
        high=86_400,
        why="below 0.1 s no engine answers; a call never outlives a day",
        aliases=("--request-timeout-secs",),
    )
    ping_interval_s: float = number(
        30,
        "Seconds between HTTP/2 pings on a connection with open streams.",
        low=1,
        high=3600,
        why="engines close connections that ping more than once a second; routers forget idle ones in an hour",
    )
    message_max_bytes: int = number(
        67_108_864,
        "Largest gRPC message in either direction.",
        low=65_536,
        high=2_147_483_647,
        why="a tokenizer chunk needs 64 KiB; gRPC counts message bytes in 31 bits",
    )
    tensor_transport: Literal["auto", "inline"] = choice(
        "auto",
        "How the tensors of pictures reach engines: `auto` through shared memory where an engine has the same /dev/shm"
        " and in the message otherwise, `inline` always in the message.",
    )
    media_message_max_bytes: int = number(
        268_435_456,
        "Largest request to an engine that has pictures in it.",
        low=65_536,
        high=2_147_483_647,
        why="a thumbnail's tensor needs 64 KiB; gRPC counts message bytes in 31 bits",
    )
    tls: EngineTls = Field(default_factory=EngineTls)
