"""What a model prints is found out once, shown, and changed by a word of its operator or of a worker."""

import asyncio
import json
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from smg_grpc_proto.generated import sglang_scheduler_pb2 as sglang_pb

from smg_node.config.schema.declared_live_knobs import live_knobs
from smg_node.config.schema.live_settings import LiveError, LiveTable
from smg_node.config.schema.problems import ConfigurationError
from smg_node.config.settings import Settings
from smg_node.core.errors import SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.engines.contracts.sglang import SglangWire
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.models.format_recognition import Recognition
from smg_node.fleet.models.model_assembly import Assembly, AssemblyOptions
from smg_node.fleet.models.model_options import Labels, ModelSettings, labels_of
from smg_node.fleet.models.model_registry import RendererRequest
from smg_node.fleet.models.model_settings import model_settings, parser_checks
from smg_node.fleet.models.served_model import ServedModel
from smg_node.parsers.selection.recognition import Clues
from smg_node.tokens.caches.exact_cache import ExactCache, ExactLimits
from support.engines.fake_engine import FakeEngine, card
from support.fleet.fleet_builder import declare, fleet_of, running
from support.models.tiny_tokenizer import trained_tokenizer
from support.tools.configuration import load

_HERMES = Clues(("tiny",), '<think> <tool_call> "arguments"')
_TEMPLATE = """{% for message in messages %}{{ message.content }}{% endfor %}
{# <think> <tool_call>{"name": 1, "arguments": 2} #}"""


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.005)


def _tiny(fleet: Fleet) -> ServedModel:
    found = fleet.models.find("tiny")
    assert found is not None
    return found


def _engine(**server: str) -> FakeEngine:
    engine = FakeEngine()
    engine.model_card = replace(card("tiny"), server=server)
    return engine


def _formats(model: ServedModel) -> tuple[str, str]:
    return model.printing.chosen.reasoning, model.printing.chosen.tools


async def test_a_model_is_recognised_by_its_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with running(fleet_of({"a": _engine()}, tmp_path, clues=_HERMES), ["a"]) as fleet:
        await _until(lambda: all(worker.routable for worker in fleet.workers()))
        assert _formats(_tiny(fleet)) == ("think", "hermes")
    assert "model tiny: thoughts are read as think (chat template: '<think>'" in caplog.text


async def test_what_the_operator_says_counts_from_the_start_and_while_it_runs(
    tmp_path: Path,
) -> None:
    settings = {"tiny": ModelSettings(tool_parser="glm")}
    fleet = fleet_of({"a": _engine()}, tmp_path, clues=_HERMES, settings=settings)
    async with running(fleet, ["a"]):
        await _until(lambda: all(worker.routable for worker in fleet.workers()))
        model = _tiny(fleet)
        assert _formats(model) == ("think", "glm")
        before = model.printing
        fleet.models.retune({}, reasoning_parsers={}, tool_parsers={"tiny": "glm"})
        assert model.printing is before
        fleet.models.retune({}, reasoning_parsers={"tiny": "plain"}, tool_parsers={"tiny": None})
        assert _formats(model) == ("plain", "hermes")
        assert model.printing.chosen.why_reasoning.source == "settings"


async def test_a_worker_that_names_its_parsers_is_believed_and_a_disagreement_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = {"reasoning_parser": "qwen3", "tool_call_parser": "glm47"}
    engines = {"a": _engine(), "b": _engine(**told), "c": _engine(**told)}
    async with running(fleet_of(engines, tmp_path, clues=_HERMES), ["a"]) as fleet:
        await _until(lambda: all(worker.routable for worker in fleet.workers()))
        model = _tiny(fleet)
        assert _formats(model) == ("think", "hermes")
        declare(fleet, "b", "c")
        await _until(lambda: all(worker.routable for worker in fleet.workers()))
        assert model is _tiny(fleet)
        assert _formats(model) == ("think", "glm")
        assert model.printing.chosen.why_tools.source == "worker"
    warnings = [record for record in caplog.records if "looks like hermes" in record.getMessage()]
    assert len(warnings) == 1


def test_labels_are_read_wherever_an_engine_has_them() -> None:
    assert labels_of(card()) == Labels("", "", "/models/tiny")
    sglang = card(server={"reasoning_parser": "glm45", "tool_call_parser": "glm47"})
    assert labels_of(sglang) == Labels("glm45", "glm47", "/models/tiny")
    assert labels_of(card(server={"tool_parser": "qwen3_coder"})).tools == "qwen3_coder"


def test_sglang_says_what_it_was_started_with() -> None:
    about = sglang_pb.GetModelInfoResponse(model_path="/models/m", served_model_name="m")
    process = sglang_pb.GetServerInfoResponse()
    process.server_args.update(
        {
            "reasoning_parser": "glm45",
            "tool_call_parser": "glm47",
            "tp_size": 8,
            "chat_template": None,
        }
    )
    found = SglangWire().card(about.SerializeToString(), process.SerializeToString())
    assert labels_of(found) == Labels("glm45", "glm47", "/models/m")


def test_where_a_worker_has_a_model_from_tells_more_than_a_name_that_says_nothing() -> None:
    recognition = Recognition(Clues(("prod",)))
    printing = recognition.printing(ModelSettings(), Labels(path="/models/Qwen/Qwen3-8B"))
    assert printing.chosen.tools == "hermes"
    with pytest.raises(SmgError, match="did you mean 'hermes'"):
        recognition.printing(ModelSettings(tool_parser="hermez"), Labels())


def _assembly() -> Assembly:
    options = AssemblyOptions(
        "auto", 1 << 20, 1 << 20, 1 << 20, 1 << 20, 2.0, allow_from_request=False
    )
    l0 = ExactCache(ExactLimits(10, 1 << 20), seed=1)
    return Assembly(options, l0=l0, rng=random.Random(1), monotonic_s=lambda: 0.0)


def _bundle(**files: object) -> TokenizerBundle:
    texts = {"tokenizer.json": trained_tokenizer().to_str().encode()}
    texts |= {name: json.dumps(content).encode() for name, content in files.items()}
    return TokenizerBundle(
        {name.replace("_json", ".json"): text for name, text in texts.items()}, "d", "test"
    )


def test_the_evidence_is_taken_out_of_a_models_files() -> None:
    assembly = _assembly()
    bundle = _bundle(
        tokenizer_config_json={"chat_template": _TEMPLATE},
        config_json={"model_type": "qwen3", "_name_or_path": "Qwen/Qwen3-8B"},
    )
    tokenizer = assembly.load(bundle)
    recognition = assembly.recognition("prod", bundle, tokenizer, None)
    assert recognition.clues.names == ("prod", "Qwen/Qwen3-8B")
    assert recognition.clues.config["model_type"] == "qwen3"
    added = set(recognition.clues.added_tokens)
    assert recognition.special_tokens <= added
    assert recognition.special_tokens
    chosen = recognition.printing(ModelSettings(), Labels()).chosen
    assert (chosen.reasoning, chosen.tools) == ("think", "hermes")
    assert chosen.options == {"implicit", "interleaved"}
    other = assembly.recognition("prod", bundle, tokenizer, "{{ '<TOOLCALL>' }}")
    assert other.printing(ModelSettings(), Labels()).chosen.tools == "nemotron_json"
    assembly.renderer(bundle, tokenizer, None, RendererRequest("hermes", "enable_thinking"))


def test_files_that_make_no_sense_are_no_evidence() -> None:
    assembly = _assembly()
    bundle = _bundle(tokenizer_config_json={"chat_template": 5}, config_json={"_name_or_path": 7})
    tokenizer = assembly.load(bundle)
    clues = assembly.recognition("prod", bundle, tokenizer, None).clues
    assert (clues.names, clues.template) == (("prod",), "")


def test_a_parser_that_there_is_not_stops_the_start_with_the_knobs_name_and_the_nearest_one() -> (
    None
):
    good = load(
        ["--models.m.tool-parser", "qwen3_coder", "--models.m.reasoning-parser", "think+trim"]
    )
    said = model_settings(good.settings)["m"]
    assert (said.reasoning_parser, said.tool_parser) == ("think+trim", "qwen3_coder")
    bad = load(["--models.m.tool-parser", "hermez", "--models.n.reasoning-parser", "thimk"])
    with pytest.raises(ConfigurationError) as caught:
        model_settings(bad.settings)
    told = str(caught.value)
    assert "models.m.tool_parser: no tool parser is called 'hermez'; did you mean 'hermes'?" in told
    assert (
        "models.n.reasoning_parser: no reasoning parser is called 'thimk'; did you mean 'think'?"
        in told
    )


def test_a_parser_may_be_set_for_the_whole_cluster_if_there_is_one_of_that_name() -> None:
    table = LiveTable(live_knobs(Settings), checks=parser_checks())
    assert table.read("models/org/m/tool_parser", "glm47") == "glm47"
    assert table.read("models/org/m/reasoning_parser", "") == ""
    with pytest.raises(LiveError, match="did you mean 'hermes'"):
        table.read("models/org/m/tool_parser", "hermez")
