"""Cut links: members of a mesh in one process that do not reach each other, neither by packets nor by streams."""

from typing import Any

import pytest

from smg_mesh.io.network.datagrams import Datagrams
from smg_mesh.io.streams import channels
from smg_mesh.io.streams.channels import Channels
from smg_mesh.io.streams.errors import StreamError
from smg_mesh.mesh import Mesh
from smg_mesh.swim.messages import Address


class CutLinks:
    """Links of the members that are made from now on; `monkeypatch` mends them in the end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._away: set[int] = set()
        """Ports of those that are cut off."""
        self._streams: list[Channels] = []
        self._owners: dict[int, int] = {}
        """The port of whom streams belong to, by their identity."""
        self.lost = 0
        """Packets and calls that went nowhere."""
        links = self

        def made(self: Channels, *args: Any, **named: Any) -> None:
            init(self, *args, **named)
            links._streams.append(self)

        def send(self: Datagrams, datagram: bytes, to: Address) -> bool:
            if links._between(self.port, to.port):
                return True
            return sent(self, datagram, to)

        def found(self: Channels, key: tuple[Address, str | None]) -> channels.Channel:
            own = links._owners.get(id(self))
            if own is not None and links._between(own, key[0].port):
                raise StreamError("failed", "the link is cut")
            return find(self, key)

        init, sent, find = Channels.__init__, Datagrams.send, Channels._found
        monkeypatch.setattr(Channels, "__init__", made)
        monkeypatch.setattr(Datagrams, "send", send)
        monkeypatch.setattr(Channels, "_found", found)

    def own(self, mesh: Mesh) -> None:
        """Take the streams that were made last for this member's."""
        self._owners[id(self._streams[-1])] = mesh.address.port

    def cut(self, *meshes: Mesh) -> None:
        """Let nothing pass between these and the others."""
        self._away = {mesh.address.port for mesh in meshes}

    def heal(self) -> None:
        """Let everything pass."""
        self._away = set()

    def _between(self, one: int, other: int) -> bool:
        cut = (one in self._away) != (other in self._away)
        self.lost += cut
        return cut
