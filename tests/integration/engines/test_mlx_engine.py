"""The real engine of the tests serves our models as they are."""

import grpc
import pytest
from smg_grpc_proto import mlx_engine_pb2 as words
from smg_grpc_proto import mlx_engine_pb2_grpc as rpc
from tokenizers import Tokenizer

from support.models.tiny_model import SCRIPTS
from support.models.tiny_tokenizer import PROMPT_END, TURN_END, token_id
from support.processes.mlx_engine import MlxEngine, MlxEngines

pytestmark = pytest.mark.integration


def generated(engine: MlxEngine, prompt: str, *, temperature: float, max_tokens: int) -> list[int]:
    tokenizer = Tokenizer.from_file(str(engine.model_dir / "tokenizer.json"))
    request = words.GenerateRequest(
        request_id=f"test-{temperature}-{max_tokens}-{hash(prompt)}",
        tokenized=words.TokenizedInput(input_ids=tokenizer.encode(prompt).ids),
        sampling_params=words.SamplingParams(temperature=temperature, max_tokens=max_tokens),
        stream=True,
    )
    with grpc.insecure_channel(engine.address) as channel:
        answers = rpc.MlxEngineStub(channel).Generate(request, timeout=120)
        return [i for answer in answers if answer.HasField("chunk") for i in answer.chunk.token_ids]


@pytest.mark.parametrize("temperature", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("prompt", ["x", "Say something\n", f"<|im_start|>user\nHi{PROMPT_END}"])
def test_the_engine_says_the_script_token_by_token(
    mlx: MlxEngine, prompt: str, temperature: float
) -> None:
    end = token_id(Tokenizer.from_file(str(mlx.model_dir / "tokenizer.json")), TURN_END)
    said = generated(mlx, prompt, temperature=temperature, max_tokens=500)
    assert said == [*mlx.script.ids, end]


def test_a_prompt_that_ends_inside_the_script_goes_on_from_there(mlx: MlxEngine) -> None:
    tokenizer = Tokenizer.from_file(str(mlx.model_dir / "tokenizer.json"))
    start = "Good morning! A tiny"
    assert SCRIPTS["plain"].startswith(start)
    said = generated(mlx, start, temperature=0, max_tokens=500)
    assert start + tokenizer.decode(said, skip_special_tokens=True) == SCRIPTS["plain"]


def test_the_endless_engine_does_not_end(mlx_engines: MlxEngines) -> None:
    engine = mlx_engines.saying("endless")
    ids = list(engine.script.ids)
    said = generated(engine, "x", temperature=1, max_tokens=5 * len(ids))
    assert said == ids * 5
