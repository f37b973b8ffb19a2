"""Kubernetes source: lists and watches pods or endpoints at an API server, and shows what they are as workers."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

from smg_node.core.ports import Rng
from smg_node.discovery.kubernetes.api_server import Api, ApiServer, AskFailedError
from smg_node.discovery.kubernetes.kube_config import Access, account_access, file_access
from smg_node.discovery.kubernetes.objects import read_status, shown
from smg_node.discovery.kubernetes.options import KubernetesOptions
from smg_node.discovery.kubernetes.selection import Selection, selection_of
from smg_node.discovery.kubernetes.watching import (
    ListPage,
    ListWatch,
    OpenWatch,
    Wait,
    WatchCounts,
    WatchTimes,
)
from smg_node.discovery.sighting import View
from smg_node.discovery.source import Show, SourceKind
from smg_node.engines.http.transport import HttpAnswer
from smg_node.engines.transport.transport import TransportError

Sleep: TypeAlias = Callable[[float], Awaitable[object]]
"""Sleeps for so many seconds."""

_REFUSAL_MAX_BYTES: Final = 65_536
_OK: Final = 200


class KubernetesSource:
    """One selection of pods, or the endpoints of a service. Its time and its chance come from outside; it asks nothing before it runs."""

    def __init__(
        self,
        name: str,
        options: KubernetesOptions,
        *,
        monotonic_s: Callable[[], float],
        rng: Rng,
        sleep: Sleep = asyncio.sleep,
        api: Callable[[], Api] | None = None,
        times: WatchTimes | None = None,
    ) -> None:
        """SmgError where the options hold a spec that is none. `api` opens the door to the server, by default to the one
        that the options name.
        """
        self._name = name
        self._options = options
        self._selection = selection_of(options)
        self._monotonic_s = monotonic_s
        self._rng = rng
        self._sleep = sleep
        self._open_api = api or (lambda: ApiServer(access_reader(options)))
        self._times = times or WatchTimes()
        self._counts = WatchCounts()

    @property
    def kind(self) -> SourceKind:
        """See `Source`."""
        return "kubernetes"

    @property
    def name(self) -> str:
        """See `Source`."""
        return self._name

    @property
    def counts(self) -> WatchCounts:
        """What happened since it was run last."""
        return self._counts

    async def run(self, show: Show) -> None:
        """See `Source`."""
        machine = ListWatch(self._selection.read, self._rng, times=self._times)
        self._counts = machine.counts
        api = self._open_api()
        talk = _Talk(
            self._selection, self._options.namespace, machine, api, self._monotonic_s, show
        )
        try:
            while True:
                step = machine.next_step(talk.now_ms())
                match step:
                    case ListPage():
                        await talk.list_page(step)
                    case OpenWatch():
                        await talk.watch(step)
                    case Wait():
                        await self._sleep((step.until_ms - talk.now_ms()) / 1000)
        finally:
            await api.close()


class _Talk:
    """What is said to one API server while the source runs, and what it answers, told to the machine."""

    def __init__(
        self,
        selection: Selection,
        namespace: str,
        machine: ListWatch,
        api: Api,
        monotonic_s: Callable[[], float],
        show: Show,
    ) -> None:
        self._selection = selection
        self._namespace = namespace
        self._machine = machine
        self._api = api
        self._monotonic_s = monotonic_s
        self._show = show
        self._shown: View | None = None

    def now_ms(self) -> int:
        """Return monotonic milliseconds."""
        return int(self._monotonic_s() * 1000)

    async def list_page(self, step: ListPage) -> None:
        """Ask for a page of the list."""
        try:
            async with self._deadline(step.deadline_ms):
                namespace = await self._in_namespace()
                answer = await self._api.get(self._selection.list_path(namespace, step.more))
                try:
                    if answer.status != _OK:
                        await self._refused("list", namespace, answer)
                        return
                    body = await _body(answer, step.room_bytes)
                finally:
                    answer.close()
        except TimeoutError:
            self._failed(f"the list of {self._selection.resource} did not come in time")
        except (AskFailedError, TransportError) as error:
            self._failed(_words(error))
        else:
            for _ in self._machine.take_page(body, self.now_ms()):
                await asyncio.sleep(0)
            self._tell()

    async def watch(self, step: OpenWatch) -> None:
        """Open a watch and read it until it ends."""
        try:
            async with self._deadline(step.deadline_ms):
                namespace = await self._in_namespace()
                path = self._selection.watch_path(namespace, step.version, step.timeout_s)
                answer = await self._api.get(path)
                if answer.status != _OK:
                    try:
                        await self._refused("watch", namespace, answer)
                    finally:
                        answer.close()
                    return
        except TimeoutError:
            self._failed(f"the watch of {self._selection.resource} was not answered in time")
        except (AskFailedError, TransportError) as error:
            self._failed(_words(error))
        else:
            try:
                await self._read(answer)
            finally:
                answer.close()

    async def _read(self, answer: HttpAnswer) -> None:
        machine = self._machine
        machine.watch_opened(self.now_ms())
        self._tell()
        while machine.is_watching:
            piece: bytes | None = None
            try:
                async with self._deadline(machine.watch_until_ms):
                    piece = await answer.read()
            except TimeoutError:
                machine.tick(self.now_ms())
            except TransportError:
                piece = b""
            if piece:
                machine.feed(piece, self.now_ms())
                # What is there already comes without a pause; others have their turn.
                await asyncio.sleep(0)
            elif piece is not None:
                machine.watch_ended(self.now_ms())
            self._tell()

    def _deadline(self, at_ms: int) -> asyncio.Timeout:
        return asyncio.timeout(max(at_ms - self.now_ms(), 1) / 1000)

    async def _in_namespace(self) -> str:
        return self._namespace or (await self._api.access()).namespace

    async def _refused(self, verb: str, namespace: str, answer: HttpAnswer) -> None:
        status = read_status(await _body(answer, _REFUSAL_MAX_BYTES))
        said = shown(status.message) or "no reason given"
        match answer.status:
            case 401:
                why = f"401: the API server does not know this node's token: {said}"
            case 403:
                why = f"403: no right to {verb} {self._selection.place(namespace)}: {said}"
            case code:
                why = f"{code}: {verb} of {self._selection.place(namespace)}: {said}"
        in_body_s = status.details.retry_after_seconds if status.details else 0
        self._failed(why, retry_after_s=max(in_body_s, _retry_after_s(answer)))

    def _failed(self, why: str, *, retry_after_s: int = 0) -> None:
        self._machine.failed(why, self.now_ms(), retry_after_s=retry_after_s)
        self._tell()

    def _tell(self) -> None:
        view = self._machine.view
        if view != self._shown:
            self._shown = view
            self._show(view)


def access_reader(options: KubernetesOptions) -> Callable[[], Access]:
    """Return what reads how the API server of the options is reached: their kubeconfig, or the pod's own account."""
    if options.kubeconfig:
        return lambda: file_access(Path(options.kubeconfig))
    return lambda: account_access(os.environ)


async def _body(answer: HttpAnswer, most_bytes: int) -> bytes:
    """Return the body; AskFailedError if it is larger than that, TransportError if it was cut short."""
    received = bytearray()
    while piece := await answer.read():
        received += piece
        if len(received) > most_bytes:
            raise AskFailedError(f"an answer of more than {most_bytes} bytes")
    return bytes(received)


def _retry_after_s(answer: HttpAnswer) -> int:
    for name, value in answer.headers:
        if name == "retry-after" and value.isascii() and value.isdigit() and len(value) <= 9:
            return int(value)
    return 0


def _words(error: AskFailedError | TransportError) -> str:
    return error.message if isinstance(error, TransportError) else str(error)
