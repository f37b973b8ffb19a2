"""Channels to peers (gRPC): made when needed, few, and gone when nothing is said.

gRPC keeps a channel that cannot connect busy with trying, and answers calls meanwhile with the old
failure. Here a channel that failed is dropped with the last call on it, and the next call makes a new one,
which tries at once: a peer that returns is reached by the first call after its return, and a dead one costs
nothing between calls. The same is done after credentials have changed, channel by channel.

A silent connection is closed by gRPC after `IDLE_S`; what then remains of the channel goes when others
are made or used.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import grpc.aio

from smg_mesh.io.streams.errors import StreamError
from smg_mesh.io.streams.frames import MESSAGE_BYTES_MAX
from smg_mesh.io.tls import Credentials
from smg_mesh.swim.messages import Address

CHANNELS_MAX: Final = 64
"""Open at a time, in use or not; more calls than that at a time are refused."""
IDLE_S: Final = 10.0
_CONNECT_MS: Final = 5_000  # for one attempt; calls have shorter deadlines of their own
_KEEPALIVE_MS: Final = 10_000  # while a call is open: finds a host that vanished
_KEEPALIVE_ANSWER_MS: Final = 5_000


@dataclass(slots=True, eq=False)
class Channel:
    """One channel, and the calls that use it."""

    grpc: grpc.aio.Channel
    version: int
    calls: int = 0
    used_s: float = 0.0
    retired: bool = False

    def retire(self) -> None:
        """Let no further call use it."""
        self.retired = True


class Channels:
    """Channels by address and expected name (None: any member)."""

    def __init__(self, credentials: Credentials, *, monotonic_s: Callable[[], float]) -> None:
        self._credentials = credentials
        self._monotonic_s = monotonic_s
        self._open: dict[tuple[Address, str | None], Channel] = {}
        self._leaving: list[Channel] = []
        self._closed = False

    def __len__(self) -> int:
        """Channels that are open, or still have a call on them."""
        return len(self._open) + sum(channel.calls > 0 for channel in self._leaving)

    @asynccontextmanager
    async def lease(self, address: Address, name: str | None) -> AsyncIterator[Channel]:
        """Lend a channel for one call; StreamError if there are too many. A
        caller that sees it fail retires it.
        """
        channel = self._found((address, name))
        channel.calls += 1
        try:
            yield channel
        finally:
            channel.calls -= 1
            channel.used_s = self._monotonic_s()
            self._drop_unused()
            await self._close_left()

    async def close(self) -> None:
        """Close all, cutting the calls on them."""
        self._closed = True
        for key in list(self._open):
            self._drop(key)
        while self._leaving:
            await self._leaving.pop().grpc.close(None)

    def _found(self, key: tuple[Address, str | None]) -> Channel:
        if self._closed:
            raise StreamError("failed", "the streams are closed")
        version = self._credentials.version()
        channel = self._open.get(key)
        if channel is not None and (channel.retired or channel.version != version):
            self._drop(key)
            channel = None
        if channel is None:
            if len(self) >= CHANNELS_MAX and not self._drop_oldest():
                raise StreamError("busy", f"{CHANNELS_MAX} streams to peers are open")
            channel = Channel(self._made(*key), version)
        # Last in the dict is last used.
        self._open.pop(key, None)
        self._open[key] = channel
        return channel

    def _made(self, address: Address, name: str | None) -> grpc.aio.Channel:
        target = f"{'ipv6' if ':' in address.host else 'ipv4'}:{address}"
        credentials = self._credentials.channel()
        if credentials is None:
            return grpc.aio.insecure_channel(target, options=_OPTIONS)
        expected = ("grpc.ssl_target_name_override", self._credentials.expected(name))
        return grpc.aio.secure_channel(target, credentials, options=[*_OPTIONS, expected])

    def _drop_unused(self) -> None:
        """Give up what failed, and what was silent for a while."""
        oldest_s = self._monotonic_s() - IDLE_S
        for key, channel in list(self._open.items()):
            if channel.calls == 0 and (channel.retired or channel.used_s < oldest_s):
                self._drop(key)

    async def _close_left(self) -> None:
        """Close what was given up, after the last call on it."""
        for channel in [channel for channel in self._leaving if channel.calls == 0]:
            if channel in self._leaving:  # or somebody else closed it during our last wait
                self._leaving.remove(channel)
                await channel.grpc.close(None)

    def _drop(self, key: tuple[Address, str | None]) -> None:
        channel = self._open.pop(key)
        channel.retire()
        self._leaving.append(channel)

    def _drop_oldest(self) -> bool:
        for key, channel in self._open.items():
            if channel.calls == 0:
                self._drop(key)
                return True
        return False


_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.client_idle_timeout_ms", int(IDLE_S * 1000)),
    ("grpc.min_reconnect_backoff_ms", _CONNECT_MS),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", _KEEPALIVE_ANSWER_MS),
    ("grpc.keepalive_permit_without_calls", 0),
    # Channels share nothing: a new one is a new connection, with the credentials of now.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
)
