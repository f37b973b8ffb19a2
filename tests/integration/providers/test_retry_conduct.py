"""Retry conduct towards vendors, judged by a stand-in that keeps a journal of every attempt and when it came."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from openai import AsyncOpenAI

from support.processes.mesh_trio import Trio, running_trio
from support.processes.node_api import call
from support.processes.process import running
from support.providers.stand_ins import KEY, running_stand_ins

pytestmark = pytest.mark.integration

LLMOCK = Path(sys.executable).with_name("llmock")
FAULTS = ("--rpm", "60", "--error-rate", "429=.15", "--error-rate", "503=.15")
"""The judge takes more than ten attempts of a call for a storm. Patient clients come again until they are answered: of
sixty calls one has ten such faults in a row by chance alone in 3,000 runs; at .2 each it was one in 150."""
SHORT = 60
LONG = 500
AT_ONCE = 6
PATIENCE = 40
"""So often a client comes again, each time when it was told to."""


@dataclass
class Judge:
    """A stand-in of several vendors, which judges how its callers go on after faults."""

    url: str

    def ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def verdict(self) -> dict[str, Any]:
        """Return what `llmock report --strict` says, and whether it is content as `ok`."""
        said = subprocess.run(
            [str(LLMOCK), "report", "--strict", "--json", "--url", self.url],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert said.returncode in (0, 1), said.stderr
        return {**json.loads(said.stdout), "ok": said.returncode == 0}


@contextmanager
def judging(folder: Path) -> Iterator[Judge]:
    folder.mkdir()
    serve = ["serve", "--host", "127.0.0.1", "--port", "0", "--log-level", "info"]
    with running([str(LLMOCK), *serve, *FAULTS], folder=folder) as process:
        judge = Judge(process.wait_for(r"running on (http://127\.0\.0\.1:[1-9]\d*)", 60)[1])
        process.wait_until(judge.ready, "ready", 60)
        yield judge


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    with judging(tmp_path / "judge") as judge:
        yield judge


@pytest.fixture
def trio(tmp_path: Path, judge: Judge) -> Iterator[Trio]:
    """Three nodes with the judge as the vendor of `judged`, and of `saved`, where another one has room."""
    for name in ("free", "nodes"):
        (tmp_path / name).mkdir()
    flags = ("--kind", "openai", "--model", "*")
    with (
        running_stand_ins(tmp_path / "free", *flags) as ((free,), _),
        running_trio(tmp_path / "nodes") as trio,
    ):
        for name, base in (("strict", f"{judge.url}/v1"), ("free", free.base)):
            put(trio, f"providers/{name}", {"kind": "openai", "base": base, "keys": [KEY]})
        also = {"to": "free/gpt-4.1-mini", "on": ["rate", "full", "broken"]}
        put(trio, "routes/judged", {"targets": ["strict/gpt-4.1-mini"]})
        put(trio, "routes/saved", {"targets": ["strict/gpt-4.1-mini", also]})
        for route in ("judged", "saved"):
            trio.on_all(lambda node, route=route: served(node, route), "served")  # type: ignore[misc]  # bound now
        yield trio


def put(trio: Trio, path: str, body: Any) -> None:
    made = call(trio["a"], "PUT", f"/v1/cluster/{path}", body, {"if-match": "*"})
    assert made.status == 200, made


def served(node: Any, route: str) -> bool:
    found = call(node, "GET", f"/v1/cluster/routes/{route}")
    return found.status == 200 and all(one["state"] == "ready" for one in found.body["targets"])


async def ask(trio: Trio, model: str, numbers: Sequence[int], *, retries: int) -> list[str]:
    """Ask for each number, some at once, at all nodes in turn; return the answers, or the errors' names."""
    clients = [
        AsyncOpenAI(
            base_url=f"{node.node.url}/v1", api_key="none", max_retries=retries, timeout=120
        )
        for node in trio.living
    ]
    waiting = list(numbers)
    said: list[str] = []

    async def go_on() -> None:
        while waiting:
            number = waiting.pop()
            text = f"This is request number {number}."
            try:
                answer = await clients[number % len(clients)].chat.completions.create(
                    model=model, messages=[{"role": "user", "content": text}], max_tokens=16
                )
                said.append("answered" if answer.choices[0].message.content else "empty")
            except Exception as error:  # what it is, is what the test is about
                said.append(repr(error))

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(go_on())
    for client in clients:
        await client.close()
    return said


COUNTS = [SHORT, pytest.param(LONG, marks=pytest.mark.long)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", COUNTS)
async def test_a_vendor_alone_finds_nothing_to_object_to(
    trio: Trio, judge: Judge, count: int
) -> None:
    # More is asked for than the vendor gives in a minute, so clients have to be patient.
    said = await ask(trio, "judged", range(count), retries=PATIENCE)
    assert Counter(said) == {"answered": count}
    verdict = judge.verdict()
    assert verdict["calls"] >= count
    assert verdict["faults_injected"] >= count // 10
    assert verdict["findings"] == [], verdict
    assert verdict["ok"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", COUNTS)
async def test_no_client_sees_an_error_while_another_target_is_free(
    trio: Trio, judge: Judge, count: int
) -> None:
    said = await ask(trio, "saved", range(count), retries=0)
    assert Counter(said) == {"answered": count}
    verdict = judge.verdict()
    assert verdict["errors"] == 0
    assert verdict["faults_injected"] > 0
    # That a call was not made again here is what it calls giving up: it was made elsewhere.
    assert {finding["code"] for finding in verdict["findings"]} <= {"gave_up"}
