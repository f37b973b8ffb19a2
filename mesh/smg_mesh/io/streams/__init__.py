"""Streams: pings, exchanges and questions between nodes over TCP, by
gRPC on the port of the gossip.

For bulk and for what must not be lost; a call costs a hundred times a datagram. A node at rest has no
stream open: connections are made when something is to be said and closed after a minute of silence.
"""

from smg_mesh.io.streams.channels import Channels
from smg_mesh.io.streams.client import StreamClient
from smg_mesh.io.streams.errors import AskError, StreamError
from smg_mesh.io.streams.loop_turns import Turns
from smg_mesh.io.streams.server import StreamServer
from smg_mesh.io.streams.service import StreamService

__all__ = [
    "AskError",
    "Channels",
    "StreamClient",
    "StreamError",
    "StreamServer",
    "StreamService",
    "Turns",
]
