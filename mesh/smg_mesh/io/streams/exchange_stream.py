"""Exchange stream: one exchange over a stream of messages, for either
side, with its work in between.
"""

from collections.abc import Awaitable, Callable

from smg_mesh.io.streams.frames import decode_frame, encode_frame
from smg_mesh.io.streams.loop_turns import Turns
from smg_mesh.swim.messages import Claim
from smg_mesh.sync.exchange.exchange_machine import Exchange, ExchangeError, Opening, Step


class Conversation:
    """Conversation of a machine at a stream. `greeted` hears who is there, once,
    and may refuse by ExchangeError.

    `read` returns the next message, or what is no bytes if there is none; `write` returns when a message is
    on its way: no more than one waits on either side.
    """

    def __init__(
        self,
        machine: Exchange,
        *,
        read: Callable[[], Awaitable[bytes | object]],
        write: Callable[[bytes], Awaitable[None]],
        greeted: Callable[[Opening], None],
        learned: Callable[[tuple[Claim, ...], Opening], None],
        turns: Turns,
    ) -> None:
        self._machine = machine
        self._read = read
        self._write = write
        self._greeted = greeted
        self._learned = learned
        self._turns = turns

    async def run(self) -> Opening:
        """Converse until nothing is owed by either side; return who was there. ExchangeError.

        That some piece could not be taken is not raised here, but left for `machine.refused`.
        """
        for frame in self._machine.begin():
            await self._write(encode_frame(frame))
        while not self._machine.done:
            received = await self._read()
            if not isinstance(received, bytes):
                raise ExchangeError("hung_up", "hung up before the end")
            await self._take(received)
        assert self._machine.peer is not None
        return self._machine.peer

    async def _take(self, received: bytes) -> None:
        known = self._machine.peer is not None
        step = self._machine.receive(decode_frame(received))
        if step.peer is not None:
            if not known:
                self._greeted(step.peer)
            if step.learned:
                self._learned(step.learned, step.peer)
        await self._send(step)
        while step.more:
            step = await self._turns.take(self._machine.proceed)
            await self._send(step)

    async def _send(self, step: Step) -> None:
        for frame in step.send:
            await self._write(encode_frame(frame))
