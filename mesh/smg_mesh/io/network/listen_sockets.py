"""Listening sockets of a node: UDP and TCP on one port number, with the keys that guard both."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from smg_mesh.config import META_BYTES_MAX, NAME_PATTERN, MeshOptions
from smg_mesh.io.counters import Counters
from smg_mesh.io.errors import MeshError
from smg_mesh.io.network.datagrams import Datagrams
from smg_mesh.io.security.key_files import KeyFileError
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.streams import StreamClient, StreamServer, StreamService
from smg_mesh.io.tls import (
    Credentials,
    DerivedMaterial,
    FileMaterial,
    PlainCredentials,
    TlsCredentials,
)
from smg_mesh.io.views import pack_meta
from smg_mesh.swim.messages import Address

FREE_PORT_TRIES: Final = 32
"""A port that is free for UDP is taken for TCP with little luck once, 32 times never."""
STOP_S: Final = 0.2
"""For calls under way, and for telling peers in order that the connection ends."""
LABEL_PATTERN: Final = r"[A-Za-z0-9._-]{1,63}"


@dataclass(frozen=True, slots=True)
class Doors:
    """Open sockets of a node."""

    datagrams: Datagrams
    server: StreamServer
    client: StreamClient

    @property
    def port(self) -> int:
        """Of UDP and TCP."""
        return self.datagrams.port

    async def close(self) -> None:
        """Close everything; calls under way are cut after a moment."""
        self.datagrams.close()
        await self.client.close()
        await self.server.stop(STOP_S)


def check(options: MeshOptions) -> bytes:
    """Return the packed meta of options that can work; MeshError says what cannot."""
    if not re.fullmatch(NAME_PATTERN, options.name):
        raise MeshError(f"name {options.name!r} is not made of 1 to 63 of a-z 0-9 . _ -")
    if not re.fullmatch(LABEL_PATTERN, options.label):
        raise MeshError(
            f"mesh.label {options.label!r} is not made of 1 to 63 letters, digits . _ -"
        )
    if options.insecure and options.key_file is not None:
        raise MeshError("mesh-key and insecure-mesh contradict each other: name one")
    if is_closed(options) and options.join:
        raise MeshError(
            "joining needs a key: give every node the same --mesh-key FILE"
            " (smg-admin cluster keyring generate makes one), or --insecure-mesh for plain text"
        )
    try:
        return pack_meta(options.meta)
    except ValueError as error:
        raise MeshError(f"mesh meta ({META_BYTES_MAX} bytes): {error}") from error


def is_closed(options: MeshOptions) -> bool:
    """Return whether the node neither joins nor can be joined: no key, and not insecure on purpose."""
    return options.key_file is None and not options.insecure


def load_keys(options: MeshOptions) -> Keyring:
    """Return the ring that the options name. Blocks. MeshError if the key file cannot be used."""
    if options.key_file is None:
        return Keyring.insecure(options.label)
    try:
        return Keyring.load(options.key_file, options.data_dir, options.label)
    except KeyFileError as error:
        raise MeshError(f"mesh-key: {error}") from error


def stream_credentials(
    options: MeshOptions, keyring: Keyring, monotonic_s: Callable[[], float]
) -> Credentials:
    """Return this node's identity on streams: the operator's files, made from the ring, or none."""
    name, label = options.name, options.label
    if options.tls is not None:
        files = FileMaterial(options.tls, name=name, label=label, monotonic_s=monotonic_s)
        return TlsCredentials(files, name=name, label=label)
    if keyring.encrypted:
        return TlsCredentials(
            DerivedMaterial(keyring, name=name, label=label), name=name, label=label
        )
    return PlainCredentials(name=name, label=label)


async def open_doors(
    host: str,
    port: int,
    credentials: Credentials,
    service: StreamService,
    *,
    counters: Counters,
    monotonic_s: Callable[[], float],
) -> Doors:
    """Listen on the numeric `host`; port 0 finds one that is free for both. MeshError if none is."""
    tries = FREE_PORT_TRIES if port == 0 else 1
    for remaining in reversed(range(tries)):
        datagrams = _bind(host, port, counters)
        try:
            server = StreamServer(
                Address(host, datagrams.port), credentials, service, count=counters.add
            )
            await server.start()
        except BaseException as error:
            datagrams.close()
            if isinstance(error, MeshError) and remaining:
                continue
            raise
        client = StreamClient(credentials, count=counters.add, monotonic_s=monotonic_s)
        return Doors(datagrams, server, client)
    raise AssertionError("the last try returns or raises")


def _bind(host: str, port: int, counters: Counters) -> Datagrams:
    try:
        return Datagrams(host, port, counters=counters)
    except OSError as error:
        reason = error.strerror or str(error)
        raise MeshError(f"cannot listen on {Address(host, port)} (UDP): {reason}") from error
