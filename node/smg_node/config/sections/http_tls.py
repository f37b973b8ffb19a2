"""HTTP TLS knobs: certificates of the listeners, and certificates that clients show."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from smg_node.config.schema.declaration import Section, choice, number, place

_PAIRS_MAX = 64
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)


def _pair_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name == "default":
        raise ValueError(
            f"{name[:64]!r} is not the name of a pair: small letters, digits and . _ -, and not `default`"
        )
    return name


class TlsPair(Section):
    """A further certificate, shown to clients that ask for a host it is for."""

    certificate: Path = place(..., "File of its PEM certificate chain.", metavar="FILE")
    key: Path = place(..., "File of its private key.", metavar="FILE")

    @field_validator("certificate", "key")
    @classmethod
    def _expand(cls, path: Path) -> Path:
        return path.expanduser()


class HttpTls(Section):
    """TLS of the public listener; its files are looked at once a second, and taken anew when they change."""

    certificate: Path | None = place(
        None,
        "File of the PEM certificate chain that clients are shown; with it the listener speaks TLS.",
        metavar="FILE",
        aliases=("--tls-cert-path",),
    )
    key: Path | None = place(
        None,
        "File of the certificate's private key.",
        metavar="FILE",
        aliases=("--tls-key-path",),
    )
    more: dict[Annotated[str, AfterValidator(_pair_name)], TlsPair] = Field(
        default_factory=dict, max_length=_PAIRS_MAX
    )
    client: Literal["off", "ask", "require"] = choice(
        "off",
        "Whether clients show a certificate: `ask` takes those of the authority and clients without any,"
        " `require` nobody without one.",
    )
    client_authority: Path | None = place(
        None,
        "File of the authorities whose client certificates are believed.",
        metavar="FILE",
    )
    client_revoked: Path | None = place(
        None,
        "File of the certificates these authorities have revoked (CRL); without a current list of an authority its"
        " clients are refused.",
        metavar="FILE",
    )
    handshake_s: float = number(
        10,
        "Seconds a client has for its handshake before it is disconnected.",
        low=0.1,
        high=600,
        why="below 0.1 s a far client cannot make it; above 10 minutes whoever sends nothing could hold every place",
    )
    handshakes_max: int = number(
        512,
        "Most handshakes under way at once, of each process; further clients are turned away.",
        low=1,
        high=100_000,
        why="each takes memory and a file descriptor before anybody knows who it is",
    )

    hsts_s: int = number(
        0,
        "Seconds for which browsers are told to come by https only (strict-transport-security); 0 tells them nothing.",
        low=0,
        high=63_072_000,
        why="two years is what lists of such hosts ask for at most",
    )

    @field_validator("certificate", "key", "client_authority", "client_revoked")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return path.expanduser() if path is not None else None

    @model_validator(mode="after")
    def _fits(self) -> "HttpTls":
        if (self.certificate is None) != (self.key is None):
            raise ValueError("http.tls.certificate and http.tls.key are needed together")
        if self.certificate is None and (self.more or self.client != "off"):
            raise ValueError("http.tls.more and http.tls.client need http.tls.certificate and .key")
        if self.client != "off" and self.client_authority is None:
            raise ValueError(f"http.tls.client {self.client} needs http.tls.client_authority")
        if self.client == "off" and (self.client_authority or self.client_revoked):
            raise ValueError(
                "http.tls.client_authority and client_revoked need http.tls.client ask or require"
            )
        return self
