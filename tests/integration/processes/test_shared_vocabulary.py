"""Data processes that share a vocabulary: forked from a template that has read it, at a start and when a model comes late."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest

from smg_chaos.engine.scripts.bundle import tiny_bundle
from smg_node.fleet.vocabularies.noted_vocabularies import NOTED_MAX
from smg_node.tokens.files.huggingface import SLOW_BYTES
from support.http.chat_client import JSON, becomes, chat, content_of, port_of, say
from support.http.raw_http import ask
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS, Simulated, running_simulated

pytestmark = pytest.mark.integration

WAIT_S = 60.0
TWO = ("--processes", "2")


@contextmanager
def engine_with(folder: Path, model: str, seed: int) -> Iterator[Simulated]:
    """Run an engine whose vocabulary is small, and whose tokenizer.json is as long as a large one's."""
    files = folder / "tokenizer"
    files.mkdir(parents=True)
    for name, content in tiny_bundle(model, vocabulary=600, context=4096).files.items():
        # Not all the same: what grows more than 200-fold is no archive of a tokenizer.
        blanks = bytes(Random(seed).choices(b" \t\n\r", k=SLOW_BYTES))
        blanks = blanks if name == "tokenizer.json" else b""
        (files / name).write_bytes(content + blanks)
    flags = ("--script", "endless", "--model", model, "--tokenizer", str(files))
    with running_simulated(folder, *flags) as running:
        yield running


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """An engine that all tests of this module may use."""
    with engine_with(tmp_path_factory.mktemp("engine"), "sim", 1) as running:
        yield running


def children(node: RunningNode) -> list[int]:
    pid = node.process.pid
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def linked(node: RunningNode) -> list[int]:
    """Return the data processes that ever were, in the order of their coming."""
    words = node.process.said().split("data process ")[1:]
    found = [one.split()[0] for one in words if " is linked" in one[:40]]
    return list(dict.fromkeys(int(name.partition("-")[2]) for name in found))


async def shares(node: RunningNode, *, ever: int) -> None:
    """Wait until two data processes beside control and template are all there are, and both answer."""

    def settled() -> bool:
        return len(linked(node)) == ever and len(children(node)) == 4

    await becomes(settled, WAIT_S, "two data processes, the control process and the template")
    assert set(linked(node)[-2:]) < set(children(node))
    await becomes(
        lambda: node.metric("smg_node_processes_linked") == 2, WAIT_S, "linked, and no others"
    )
    for _ in range(12):
        answer = await say(port_of(node.url), {**chat("sim"), "max_tokens": 8})
        assert answer.status == 200, answer.body
        assert SAYS[:4] in content_of(answer)
    assert node.metric("smg_node_processes_lost_total") == 0


async def test_a_first_start_replaces_those_that_need_a_vocabulary_and_a_second_one_begins_with_it(
    engine: Simulated, tmp_path: Path
) -> None:
    workers = [f"grpc://{engine.address}"]
    with running_node(tmp_path, workers=workers, flags=TWO) as node:
        await shares(node, ever=4)
        dead = linked(node)[-1]
        os.kill(dead, signal.SIGKILL)
        await becomes(lambda: len(linked(node)) == 5, WAIT_S, "another one in its place")
        node.process.signal(signal.SIGTERM)
        assert node.process.wait(WAIT_S) == 0
        assert "Traceback" not in node.process.said()
    with running_node(tmp_path, workers=workers, flags=TWO) as node:
        await shares(node, ever=2)
        assert "Traceback" not in node.process.said()


async def test_a_model_that_comes_late_is_shared_as_well(engine: Simulated, tmp_path: Path) -> None:
    with running_node(tmp_path, flags=TWO) as node:
        await becomes(lambda: len(linked(node)) == 2, WAIT_S, "both processes")
        worker = {"url": f"grpc://{engine.address}"}
        told = await ask(port_of(node.url), "POST", "/workers", worker, JSON)
        assert told.status in (200, 201, 202), told.body
        await becomes(lambda: len(linked(node)) == 4, WAIT_S, "replaced by forks that share it")
        await becomes(lambda: node.status("/readiness") == 200, WAIT_S, "ready")
        await shares(node, ever=4)
        assert "Traceback" not in node.process.said()


async def test_a_node_without_its_template_goes_on(engine: Simulated, tmp_path: Path) -> None:
    workers = [f"grpc://{engine.address}"]
    with running_node(tmp_path, workers=workers, flags=TWO) as node:
        await shares(node, ever=4)
        data = linked(node)[-2:]
        # The template has neither link nor listener: it is the one that is not among those that are linked.
        [template] = [
            pid
            for pid in children(node)
            if pid not in data and len(os.listdir(f"/proc/{pid}/task")) == 1
        ]
        os.kill(template, signal.SIGKILL)
        os.kill(data[0], signal.SIGKILL)
        await becomes(lambda: len(linked(node)) == 5, WAIT_S, "another one, which reads for itself")
        await becomes(lambda: len(children(node)) == 3, WAIT_S, "and no other template")
        for _ in range(12):
            assert (await say(port_of(node.url), {**chat("sim"), "max_tokens": 8})).status == 200


async def test_more_vocabularies_than_are_noted_do_not_have_processes_replaced_for_ever(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        engines = [
            stack.enter_context(engine_with(tmp_path / f"m{seed}", f"m{seed}", seed))
            for seed in range(NOTED_MAX + 1)
        ]
        workers = [f"grpc://{one.address}" for one in engines]
        with running_node(tmp_path, workers=workers, flags=TWO) as node:
            await becomes(
                lambda: node.metric("smg_node_processes_linked") == 2 and len(children(node)) == 4,
                WAIT_S,
                "two data processes, the control process and the template",
            )
            ever = linked(node)
            assert len(ever) <= 2 * (1 + NOTED_MAX)
            for seed in range(NOTED_MAX + 1):
                answer = await say(port_of(node.url), {**chat(f"m{seed}"), "max_tokens": 8})
                assert answer.status == 200, answer.body
            assert linked(node) == ever
            assert "Traceback" not in node.process.said()
