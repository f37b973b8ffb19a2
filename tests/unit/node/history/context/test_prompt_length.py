"""Who can count the tokens of a prompt: models whose tokenizer is here, and nobody else's."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import ChatPrompt, TextPrompt, Turn
from smg_node.fleet.models.model_options import ModelSettings
from smg_node.history.context.prompt_length import ModelMeasures
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import FakeEngine
from support.engines.relay_bench import relay_bench, told, worker

HI = ChatPrompt((Turn("user", "hi"),))


async def test_only_models_with_a_tokenizer_here_are_measured(tmp_path: Path) -> None:
    settings = {"theirs": ModelSettings(aliases=("alias",))}
    one = worker(lambda call: told({}), name="theirs")
    engines = {"e": FakeEngine(model="tiny")}
    async with relay_bench(tmp_path, settings=settings, w=one, engines=engines) as b:
        with ThreadPoolExecutor(1) as threads:
            measures = ModelMeasures(b.placer, Preparer(clock=SystemClock(), threads=threads))
            ours = await measures.of("tiny", deadline_s=1e12)
            ours.check("truncation")
            assert await ours.count(TextPrompt("hello", add_special_tokens=False)) > 0
            theirs = await measures.of("alias", deadline_s=1e12)
            assert (theirs.name, theirs.context) == ("theirs", None)
            with pytest.raises(SmgError, match="cannot be counted") as found:
                theirs.check("truncation")
            assert found.value.where == "truncation"
            with pytest.raises(SmgError) as found:
                await theirs.count(HI)
            assert (found.value.where, found.value.kind) == ("model", ErrorKind.INVALID_REQUEST)
