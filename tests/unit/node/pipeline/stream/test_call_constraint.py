"""Forced calls and forms on their way to engines, and what became of wishes that no engine could be held to."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    Prompt,
    Sampling,
    Tool,
    ToolChoice,
    Turn,
    token_ids,
)
from smg_node.engines.engine import Abilities, Contract, ModelCard
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.pipeline.generation.call_plan import Leg
from smg_node.pipeline.generation.leg_compatibility import can_take
from support.engines.fake_engine import FakeEngine, card, says
from support.engines.generation_bench import Bench, bench_of

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TOOLS = (Tool("find", None, SCHEMA), Tool("list"))
CALL = '<tool_call>\n{"name": "find", "arguments": {"a": 1}}\n</tool_call>'
REQUIRED = ToolChoice("required")
NAMED = ToolChoice("named", "find")
LOOSE = Constraint("json_schema", json.dumps(SCHEMA), "response_format", strict=False)


@dataclass(frozen=True)
class _Checked:
    card: ModelCard
    abilities: Abilities


@dataclass(frozen=True)
class _Template:
    digest: str = "0123456789abcdef"


class _Renderer:
    template = _Template()

    def __init__(self, text: str) -> None:
        self.text = text

    def known(self, prompt: ChatPrompt, **_more: Any) -> None:
        return None

    def render(self, prompt: ChatPrompt, **_more: Any) -> str:
        return self.text


@asynccontextmanager
async def printing_bench(
    folder: Path,
    engine: FakeEngine,
    contract: Contract = Contract.VLLM,
    *,
    tools: str = "hermes",
    text: str = "Hi\n<think>\n",
    server: Mapping[str, str] | None = None,
) -> AsyncIterator[Bench]:
    engine.model_card = card(context=4096, contract=contract, server=server or {})
    engine.abilities = replace(engine.abilities, constraints=WIRES[contract].abilities.constraints)
    async with bench_of(folder, {"a": engine}) as it:
        for worker in it.fleet.workers():
            model: Any = worker.model
            model.printing = Printing(Chosen("think", tools))
            model.renderer = _Renderer(text)
        yield it


def asks(choice: ToolChoice, *tools: Tool) -> tuple[Prompt, ...]:
    return (ChatPrompt((Turn("user", "Hi"),), tools=tools or TOOLS, choice=choice),)


async def told(
    it: Bench, sampling: Sampling | None = None, **more: Any
) -> tuple[Any, tuple[str, ...]]:
    """Return the blocks of the only answer, and what was ignored."""
    run = it.start(sampling, **more)
    collector = Collector(1)
    async for batch in run.events():
        collector.feed(batch)
    (choice,) = collector.answer().choices
    return [(block.kind, block.name, block.text) for block in choice.blocks], run.ignored


def grammar(engine: FakeEngine) -> Constraint:
    (request,) = engine.requests
    assert request.sampling.constraint is not None
    return request.sampling.constraint


async def test_a_required_call_is_asked_for_and_read(tmp_path: Path) -> None:
    engine = FakeEngine(says(f"Hm.</think>{CALL}"))
    async with printing_bench(tmp_path, engine) as it:
        blocks, ignored = await told(it, prompts=asks(REQUIRED))
    assert blocks == [("reasoning", "", "Hm."), ("call", "find", '{"a": 1}')]
    assert ignored == ()
    sent = grammar(engine)
    assert (sent.kind, sent.begins) == ("structural_tag", "first_token")
    thought, calls = json.loads(sent.value)["format"]["elements"]
    assert thought["end"] == "</think>"
    assert calls["at_least_one"] is True
    assert it.outcomes[0].oddities == {}


async def test_a_gated_engine_is_sent_the_calls_alone(tmp_path: Path) -> None:
    engine = FakeEngine(says(f"Hm.</think>{CALL}"))
    how = {"constrained_decoding_start": "after_reasoning"}
    async with printing_bench(tmp_path, engine, server=how) as it:
        blocks, _ = await told(it, prompts=asks(REQUIRED))
    assert [kind for kind, *_ in blocks] == ["reasoning", "call"]
    assert json.loads(grammar(engine).value)["format"]["type"] == "triggered_tags"


async def test_bare_arguments_are_a_call_of_the_named_function(tmp_path: Path) -> None:
    engine = FakeEngine(says('{"a": 7}'))
    how = {"grammar_backend": "outlines"}
    async with printing_bench(
        tmp_path, engine, Contract.SGLANG, tools="pythonic", server=how
    ) as it:
        blocks, _ = await told(it, prompts=asks(NAMED))
    # Nobody lets the open thought end first, so the answer begins at once.
    assert blocks == [("call", "find", '{"a": 7}')]
    assert json.loads(grammar(engine).value) == SCHEMA


async def test_an_engine_that_can_wait_is_asked_to(tmp_path: Path) -> None:
    engine = FakeEngine(says('Hm.</think>[{"name": "find", "parameters": {"a": 7}}]'))
    how = {"grammar_backend": "outlines", "reasoning_parser": "qwen3"}
    async with printing_bench(tmp_path, engine, Contract.SGLANG, server=how) as it:
        blocks, _ = await told(it, prompts=asks(REQUIRED))
    assert blocks == [("reasoning", "", "Hm."), ("call", "find", '{"a": 7}')]
    assert grammar(engine).begins == "after_thought"


@pytest.mark.parametrize("choice", [REQUIRED, NAMED])
@pytest.mark.parametrize(
    ("says_", "oddities"),
    [
        (f"Hm.</think>{CALL}", {}),
        ('Hm.</think>[{"name": "find", "parameters": {"a": 1}}]', {}),
        ("Hm.</think>No.", {"call_not_made": 1}),
    ],
)
async def test_an_engine_without_grammars_tries_and_the_client_is_told(
    tmp_path: Path, choice: ToolChoice, says_: str, oddities: dict[str, int]
) -> None:
    engine = FakeEngine(says(says_))
    async with printing_bench(tmp_path, engine, Contract.MLX) as it:
        blocks, ignored = await told(it, prompts=asks(choice))
        assert it.outcomes[0].oddities == oddities
    assert ignored == ("tool_choice",)
    assert engine.requests[0].sampling.constraint is None
    assert ("call" in [kind for kind, *_ in blocks]) is not bool(oddities)


@pytest.mark.parametrize(
    ("says_", "oddities"),
    [('</think>{"a": 1}', {}), ("</think>one", {"form_not_kept": 1}), ("", {"form_not_kept": 1})],
)
async def test_a_form_that_cannot_be_held_is_looked_at_in_the_end(
    tmp_path: Path, says_: str, oddities: dict[str, int]
) -> None:
    engine = FakeEngine(says(says_))
    async with printing_bench(tmp_path, engine, Contract.MLX) as it:
        _, ignored = await told(it, Sampling(constraint=LOOSE), prompts=asks(ToolChoice()))
        assert it.outcomes[0].oddities == oddities
        error = await it.error(
            Sampling(constraint=replace(LOOSE, strict=True)), prompts=asks(ToolChoice())
        )
    assert ignored == ("response_format",)
    assert (error.code, error.where) == ("unsupported_parameter", "response_format")


async def test_tools_and_a_form_are_one_grammar_or_refused(tmp_path: Path) -> None:
    engine = FakeEngine(says("</think>{}"))
    async with printing_bench(tmp_path, engine) as it:
        await told(it, Sampling(constraint=LOOSE), prompts=asks(ToolChoice()))
        answer, calls = json.loads(grammar(engine).value)["format"]["elements"][1]["elements"]
        assert answer["json_schema"] == SCHEMA
        assert len(calls["tags"]) == 2
    async with printing_bench(tmp_path, FakeEngine(), tools="pythonic") as it:
        error = await it.error(Sampling(constraint=LOOSE), prompts=asks(ToolChoice()))
        assert (error.code, error.where) == ("unsupported_parameter", "response_format")


async def test_a_schema_that_no_engine_should_be_sent_is_refused_at_its_place(
    tmp_path: Path,
) -> None:
    bad = Tool("bad", None, {"type": "strong"}, where="tools[0].function.parameters")
    engine = FakeEngine()
    async with printing_bench(tmp_path, engine) as it:
        error = await it.error(prompts=asks(REQUIRED, bad))
        assert (error.code, error.where) == (
            "invalid_json_schema",
            "tools[0].function.parameters.type",
        )
        assert engine.requests == []
        # Where no grammar is made of it, it is the model's business.
        await it.answer(prompts=asks(ToolChoice(), bad))


async def test_a_grammar_goes_only_to_engines_that_read_it_alike(tmp_path: Path) -> None:
    engine = FakeEngine()
    async with printing_bench(tmp_path, engine) as it:
        (worker,) = it.fleet.workers()
        assert worker.card is not None
        assert worker.model is not None
        sampling = Sampling(max_tokens=5, constraint=Constraint("structural_tag", "{}", "x"))
        leg = Leg(0, 1, token_ids([97] * 3), sampling)
        for server, taken in (
            ({}, True),
            ({"constrained_decoding_start": "after_reasoning"}, False),
        ):
            other = replace(worker.card, server=server)
            checked: Any = _Checked(other, engine.abilities)
            assert can_take(worker, leg, worker.model, checked) is taken
            free = structs.replace(leg, sampling=Sampling(max_tokens=5))
            assert can_take(worker, free, worker.model, checked)
