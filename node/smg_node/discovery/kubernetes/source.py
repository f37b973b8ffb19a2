"""Kubernetes source: lists and watches pods or endpoints at an API server, and shows what they are as workers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from smg_node.core.ports import Rng
from smg_node.discovery.kubernetes.api_server import (
    OK,
    Api,
    ApiServer,
    AskFailedError,
    access_reader,
    failure,
    read_body,
    refusal,
)
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
        self._open_api = api or (lambda: ApiServer(access_reader(options.kubeconfig)))
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
                    if answer.status != OK:
                        await self._refused("list", namespace, answer)
                        return
                    body = await read_body(answer, step.room_bytes)
                finally:
                    answer.close()
        except TimeoutError:
            self._failed(f"the list of {self._selection.resource} did not come in time")
        except (AskFailedError, TransportError) as error:
            self._failed(failure(error))
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
                if answer.status != OK:
                    try:
                        await self._refused("watch", namespace, answer)
                    finally:
                        answer.close()
                    return
        except TimeoutError:
            self._failed(f"the watch of {self._selection.resource} was not answered in time")
        except (AskFailedError, TransportError) as error:
            self._failed(failure(error))
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
        refused = await refusal(answer, verb, self._selection.place(namespace))
        self._failed(refused.why, retry_after_s=refused.retry_after_s)

    def _failed(self, why: str, *, retry_after_s: int = 0) -> None:
        self._machine.failed(why, self.now_ms(), retry_after_s=retry_after_s)
        self._tell()

    def _tell(self) -> None:
        view = self._machine.view
        if view != self._shown:
            self._shown = view
            self._show(view)
