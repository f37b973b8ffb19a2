"""Prompts with pictures that two engines share: who is handed the pictures, and what is told of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.core.generation.request import Sampling
from smg_node.engines.disaggregation import Style
from smg_node.engines.engine import EngineRequest, Prefilled
from smg_node.media.engine_media import TensorBatch
from support.engines.fake_engine import FakeEngine
from support.engines.paired_engines import Network
from support.media.pictured_bench import LEVELS, chat, picture, pictured, seeing

A = "https://x/a"
FILES = {A: "30x2:a"}
STYLES: tuple[Style, ...] = ("room", "nixl")


def pair(network: Network, *, shared: bool) -> dict[str, FakeEngine]:
    """Return two engines of a model that sees; of the first one tensors may go through shared memory."""
    first, second = network.prefill(media=LEVELS), network.decode(media=LEVELS)
    first.bundle = second.bundle = seeing().bundle
    keep = first.prefill_script
    assert keep is not None

    async def prefill(request: EngineRequest) -> Prefilled:
        return replace(await keep(request), shared=shared)

    first.prefill_script = prefill
    return {"p": first, "d": second}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("shared", [True, False])
async def test_explain_names_the_engine_that_was_handed_the_pictures_and_how(
    tmp_path: Path, style: Style, *, shared: bool
) -> None:
    engines = pair(Network(style), shared=shared)
    async with pictured(tmp_path, FILES, engines) as it:
        answer = await it.bench.answer(Sampling(max_tokens=10), prompts=chat("look", picture(A)))
        assert answer.choices[0].text() == "hello"
        assert isinstance(engines["p"].prefilled[0].media, TensorBatch)
        (journey,) = it.bench.journal.get("req_1")
        (seen,) = journey.pictures
        assert seen.worker == it.bench.fleet.get("grpc://p:1").id
        assert seen.transport == ("shared memory" if shared else "message")
        assert it.bench.idle()
