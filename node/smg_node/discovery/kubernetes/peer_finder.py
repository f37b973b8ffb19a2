"""Peer finder: asks an API server for the pods of this cluster's nodes, as seeds of the mesh.

It lists, and does not watch: peers are looked for in rounds, every ten seconds at most while none is found and every
thirty afterwards, and in between the mesh knows better than any pod who lives. A list comes from the server's memory
(`resourceVersion=0`): it costs its store nothing, and is answered while that is away.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from smg_mesh.mesh import Address, FindError
from smg_node.discovery.kubernetes.api_server import (
    OK,
    Api,
    AskFailedError,
    failure,
    read_body,
    refusal,
)
from smg_node.discovery.kubernetes.objects import NotUnderstoodError, read_page, shown
from smg_node.discovery.kubernetes.peer_pods import peer_pods
from smg_node.discovery.kubernetes.selection import Objects
from smg_node.engines.transport.transport import TransportError

ANSWER_MAX_BYTES: Final = 16 * 1024 * 1024
RETRY_AFTER_MAX_S: Final = 60
_TEXT_MAX_CHARACTERS: Final = 120
_TOLD_MAX: Final = 64

_log: Final = logging.getLogger("smg_node.discovery")


@dataclass(frozen=True, slots=True)
class PeerOptions:
    """What pods are asked for, and where their mesh listens.

    `namespace` is empty for the one that the node itself is in, or that its kubeconfig names, and `*` for all. `port` is
    that of pods without the annotation.
    """

    selector: str
    namespace: str
    port_annotation: str
    port: int


class PeerFinder:
    """Pods of one selection as seeds; fulfils `SeedFinder`."""

    def __init__(self, options: PeerOptions, api: Api, *, monotonic_s: Callable[[], float]) -> None:
        self._options: Final = options
        self._api: Final = api
        self._monotonic_s: Final = monotonic_s
        self._pods: Final = Objects("/api/v1", "pods", options.selector.strip())
        self._told: set[str] = set()
        self._refused = ""
        self._not_before_s = 0.0

    @property
    def text(self) -> str:
        """See `SeedFinder`."""
        return f"pods of {shown(self._options.selector)[:_TEXT_MAX_CHARACTERS]}"

    async def find(self) -> Sequence[Address]:
        """See `SeedFinder`. A server that wants to be left alone for a while is, for a minute at most."""
        if self._monotonic_s() < self._not_before_s:
            raise FindError(self._refused)
        try:
            body = await self._list()
            page = read_page(body)
        except (AskFailedError, NotUnderstoodError) as error:
            raise FindError(str(error)) from error
        except TransportError as error:
            raise FindError(failure(error)) from error
        found = peer_pods(
            page, port_annotation=self._options.port_annotation, port=self._options.port
        )
        self._tell(found.wrong)
        if not found.places:
            raise FindError("it selects no pod that has an address and does not end")
        return [Address(host, port) for host, port in found.places]

    async def close(self) -> None:
        """See `SeedFinder`."""
        await self._api.close()

    async def _list(self) -> bytes:
        namespace = self._options.namespace or (await self._api.access()).namespace
        path = f"{self._pods.list_path(namespace, '')}&resourceVersion=0"
        answer = await self._api.get(path)
        try:
            if answer.status == OK:
                return await read_body(answer, ANSWER_MAX_BYTES)
            refused = await refusal(answer, "list", self._pods.place(namespace))
        finally:
            answer.close()
        wait_s = min(refused.retry_after_s, RETRY_AFTER_MAX_S)
        self._refused, self._not_before_s = refused.why, self._monotonic_s() + wait_s
        raise FindError(refused.why)

    def _tell(self, wrong: Sequence[str]) -> None:
        """Log what could not be understood, once."""
        for text in wrong:
            if text not in self._told and len(self._told) < _TOLD_MAX:
                self._told.add(text)
                _log.warning("mesh: %s", text)
