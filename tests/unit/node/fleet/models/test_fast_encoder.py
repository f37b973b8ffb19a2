"""A model that is served before its fast encoder is ready: it goes on with that, and is served either way."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from smg_node.core.generation.request import TokenIds, token_ids
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.fleet.fleet import Fleet
from smg_node.tokens.encoders import Encoder
from smg_node.tokens.loaded_tokenizer import Borders, LoadedTokenizer, LoadReport, Vocabulary
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import fleet_of, running
from support.http.raw_http import until
from support.models.bytewise_tokenizer import EOS, VOCABULARY, BytewiseTokenizer

TEXT = "good morning " * 400


class _Named(BytewiseTokenizer):
    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = 0

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        self.asked += 1
        return token_ids([*text.encode()])


class Building:
    """Tokenizers whose fast encoder is ready when a test says so, or never."""

    def __init__(self, *, torn: bool = False, none: bool = False) -> None:
        self.torn, self.none = torn, none
        self.free = threading.Event()
        self.slow, self.fast = _Named("tokenizers"), _Named("fastokens")

    def load(self, bundle: TokenizerBundle) -> LoadedTokenizer:
        loaded = LoadedTokenizer(
            digest=bundle.digest,
            vocabulary=Vocabulary(VOCABULARY, frozenset(), {}, frozenset({EOS}), Borders(())),
            encoder=self.slow,
            speller=self.slow,
            report=LoadReport("tokenizers", "", "table", ""),
        )
        loaded.faster = self._faster
        return loaded

    def _faster(self) -> tuple[Encoder | None, str]:
        assert self.free.wait(10)
        if self.torn:
            raise ValueError("torn")
        return (None, "it differs") if self.none else (self.fast, "")


@asynccontextmanager
async def served(folder: Path, building: Building, *, at_once: bool = True) -> AsyncIterator[Fleet]:
    fleet = fleet_of({"a": FakeEngine()}, folder, load=building.load, at_once=at_once)
    async with running(fleet, ["a"]):
        try:
            await until(lambda: all(worker.routable for worker in fleet.workers()))
            yield fleet
        finally:
            building.free.set()


def encode(fleet: Fleet, text: str) -> int:
    model = fleet.served("tiny")
    assert model is not None
    return len(model.encoder.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize("at_once", [True, False], ids=["with its worker", "when it is needed"])
async def test_it_is_served_at_once_and_soon_faster(
    at_once: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    building = Building()
    async with served(tmp_path, building, at_once=at_once) as fleet:
        model = fleet.served("tiny")
        assert model is not None
        await fleet.models.read(model)
        assert (encode(fleet, TEXT), building.slow.asked, building.fast.asked) == (5200, 1, 0)
        assert model.encoder.long(TEXT), "beside the loop, as the slow one takes 1 ms for 2 KB"
        building.free.set()
        await until(lambda: not model.encoder.long(TEXT))
        assert (encode(fleet, TEXT + "!"), building.slow.asked, building.fast.asked) == (5201, 1, 1)
        assert model.tokenizer.encoder == "fastokens"
        await until(lambda: "model tiny: encoder fastokens" in caplog.text)


@pytest.mark.parametrize("torn", [True, False], ids=["torn", "differs"])
async def test_where_the_fast_one_fails_it_is_served_as_before(
    torn: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    building = Building(torn=torn, none=not torn)
    async with served(tmp_path, building) as fleet:
        building.free.set()
        said = "its encoder stays slow" if torn else "model tiny: encoder tokenizers"
        await until(lambda: said in caplog.text)
        assert (encode(fleet, TEXT), building.slow.asked, building.fast.asked) == (5200, 1, 0)
