"""The simulated MLX is as odd as the real one: one table of requests, the same answers."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from smg_chaos.engine.plans import SERVERS, ServerKind, Wanted
from support.engines.engine_client import Asker, asking
from support.engines.engine_comparison import TABLE, outline
from support.engines.simulated_engine import served
from support.models.tiny_model import SCRIPTS
from support.processes.mlx_engine import MlxEngine, running_mlx
from support.processes.process import running

pytestmark = pytest.mark.integration


def prompt(model_dir: Path) -> list[int]:
    """Return a prompt that ends outside of the script, so that the script follows."""
    ids: list[int] = Tokenizer.from_file(str(model_dir / "tokenizer.json")).encode("Hi!\n").ids
    return ids


@pytest.fixture
def real(mlx: MlxEngine) -> Iterator[Asker]:
    with asking(mlx.address, "mlx", prompt(mlx.model_dir)) as asker:
        yield asker


@pytest.fixture(scope="module", params=SERVERS)
def simulated(
    request: pytest.FixtureRequest, mlx: MlxEngine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asker]:
    server: ServerKind = request.param
    script = tmp_path_factory.mktemp("script") / "script.ids"
    script.write_text(json.dumps(list(mlx.script.ids)), encoding="utf-8")
    context = json.loads((mlx.model_dir / "config.json").read_bytes())["max_position_embeddings"]
    settings = {"contract": "mlx", "context": context, "blocks": 4096, "step_s": 0.002}
    wanted = Wanted(settings=settings, tokenizer=mlx.model_dir, script=str(script), server=server)
    with served(wanted) as engines:
        with asking(engines.address, "mlx", prompt(mlx.model_dir)) as asker:
            yield asker
        engines.engines[0].check()


@pytest.mark.parametrize("name", TABLE["mlx"])
def test_the_simulated_engine_answers_as_the_real_one(
    name: str, real: Asker, simulated: Asker
) -> None:
    ask = TABLE["mlx"][name]
    assert ask(simulated) == ask(real)


def test_a_prompt_without_ids_holds_both_up_until_its_caller_gives_up(
    simulated: Asker, tmp_path: Path
) -> None:
    # An engine of its own: on a busy machine the real one may not get up again.
    with (
        running_mlx(tmp_path, SCRIPTS["plain"]) as engine,
        asking(engine.address, "mlx", prompt(engine.model_dir)) as real,
    ):
        held_up = [outline(asker.generate(ids=[], wait_s=1.0)) for asker in (simulated, real)]
    assert held_up[0] == held_up[1]
    assert simulated.generate(max_tokens=3).code == "OK"


def test_an_id_beyond_the_vocabulary_kills_both_in_the_same_way(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "smg_chaos.cli", "engine", "--contract", "mlx"]
    with running_mlx(tmp_path / "real", SCRIPTS["plain"]) as engine:
        ids = prompt(engine.model_dir)
        with asking(engine.address, "mlx", ids) as asker:
            assert asker.generate(ids=[10**6], max_tokens=2).code == "UNAVAILABLE"
        real_end = engine.process.wait(30)
    with running(command, folder=tmp_path / "simulated") as process:
        address = process.wait_for(r"listening on (\S+) ", 60)[1]
        with asking(address, "mlx", ids) as asker:
            assert asker.generate(ids=[10**6], max_tokens=2).code == "UNAVAILABLE"
        simulated_end = process.wait(30)
    # A segmentation fault is signal 11; a process that ends by itself reports what a shell would.
    assert (real_end, simulated_end) == (-11, 128 + 11)
