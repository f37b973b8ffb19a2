"""Engines that share their work: one keeps the blocks of a prompt in memory, the other one takes them and answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.chunk import Chunk, IdLogprob
from smg_node.engines.disaggregation import Pairing, Role, Style
from smg_node.engines.engine import EngineRequest, Prefilled
from support.engines.fake_engine import FakeEngine, Script, card, says

CACHED = 3
"""What every first engine says that it had of a prompt."""


def dropped() -> SmgError:
    """Return how an engine ends a call whose partner it cannot reach."""
    return SmgError(ErrorKind.UPSTREAM_FAILED, "gave up", code="upstream_abort")


@dataclass
class Network:
    """Where first engines keep blocks and second ones take them, once each.

    Of the hand-overs, `losing` fail; a second engine that waits for `patience_s` gives up.
    """

    style: Style = "room"
    losing: int = 0
    patience_s: float = 0.3
    kept: dict[str, asyncio.Event] = field(default_factory=dict)
    taken: dict[str, asyncio.Event] = field(default_factory=dict)
    handed_over: int = 0
    ranks: int = 1
    last_ids: list[Sequence[int]] = field(default_factory=list)

    def prefill(self, group: str = "", **said: object) -> FakeEngine:
        """Return an engine that works prompts off."""
        engine = self._engine("prefill", group, **said)
        engine.prefill_script = self._keep
        return engine

    def decode(self, script: Script | None = None, group: str = "", **said: object) -> FakeEngine:
        """Return an engine that says what `script` says of prompts that others worked off."""
        engine = self._engine("decode", group, **said)
        inner = script or says("hello")

        async def answer(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
            await self._take(request)
            async for chunks in inner(request):
                yield chunks

        engine.script = answer
        return engine

    def _engine(self, role: Role, group: str, **said: object) -> FakeEngine:
        engine = FakeEngine()
        pairing = Pairing(self.style, group, 4711 if role == "prefill" else None, "the-engine")
        told: dict[str, object] = {"role": role, "pairing": pairing, "context": 1000}
        engine.model_card = card(**{**told, **said})  # type: ignore[arg-type]  # tests name fields freely
        return engine

    async def _keep(self, request: EngineRequest) -> Prefilled:
        self.last_ids.append(request.ids)
        key = self._key(request)
        if self.losing > 0:
            self.losing -= 1
            self.kept.pop(key, None)
        else:
            self.kept.setdefault(key, asyncio.Event()).set()
        told = ""
        if self.style == "room":
            await self.taken.setdefault(key, asyncio.Event()).wait()
        elif self.style == "nixl":
            assert json.loads(request.transfer)["do_remote_decode"] is True
            told = json.dumps({"remote_block_ids": [1, 2], "remote_request_id": key})
        logprobs: tuple[IdLogprob, ...] = ()
        if request.sampling.prompt_logprobs is not None:
            logprobs = tuple(IdLogprob(one, -0.5) for one in request.ids)
        return Prefilled(len(request.ids), CACHED, logprobs, told)

    async def _take(self, request: EngineRequest) -> None:
        key = self._key(request)
        if self.style == "room":
            waiting = self.kept.setdefault(key, asyncio.Event())
            try:
                async with asyncio.timeout(self.patience_s):
                    await waiting.wait()
            except TimeoutError:
                raise dropped() from None
            self.taken.setdefault(key, asyncio.Event()).set()
        elif key not in self.kept:
            raise dropped()
        del self.kept[key]
        self.handed_over += 1

    def _key(self, request: EngineRequest) -> str:
        match self.style:
            case "room":
                assert request.room is not None
                assert request.room.port == 4711
                return str(request.room.number)
            case "nixl":
                told = json.loads(request.transfer)
                return str(told.get("remote_request_id", request.request_id))
            case "minted":
                told = json.loads(request.transfer)
                if told["do_remote_prefill"]:
                    assert told["remote_engine_id"] == "the-engine"
                    assert told["remote_bootstrap_addr"].endswith(":4711")
                return str(told["transfer_id"])
            case "store":
                assert request.transfer == ""
                return request.request_id
