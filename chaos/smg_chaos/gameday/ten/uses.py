"""Uses of a cluster: parts about limits, conversations and affinity, which clients rely on at any
node.
"""

import asyncio
import json
import signal
from collections.abc import Mapping, Sequence
from typing import Any, Final

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import CHAT, MODEL, Operator, nodes_of, until
from smg_chaos.gameday.agents.engine_processes import EngineProcess
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.clients.stream_check import Hearing
from smg_chaos.gameday.clients.stream_client import at_place, listen
from smg_chaos.gameday.history.response_request import CONVERSATIONS, RESPONSES, ask
from smg_chaos.gameday.limits.definition import Rule
from smg_chaos.gameday.limits.scene import ENGINES
from smg_chaos.gameday.stage import Stage
from smg_chaos.statistics import Figure

_LIMIT_S: Final = 30.0
_CAPPED: Final = "capped"
_CAPPED_NUMBER: Final = 50
_AMOUNT: Final = 10
_BURST: Final = 40
_PATH: Final = f"/v1/cluster/limits/model={_CAPPED}"
_KEYS: Final = 30
_BY_KEY: Final = ("consistent_hashing", "manual")
_BY_PROMPT: Final = ("prefix_hash", "cache_aware")
_PREFIX_WORDS: Final = 60
_HEARD_OF_S: Final = 1.0
"""So soon others know where a beginning of prompts went."""


async def limited(stage: Stage) -> list[Figure]:
    """Allow ten calls an hour, send forty at two nodes at once."""
    nodes = nodes_of(stage.cluster)
    flags = ("--script", "fixed", "--itl-ms", "1", "--slots", "512")
    engine = EngineProcess(stage.cluster, _CAPPED_NUMBER, flags, place=ENGINES, model=_CAPPED)
    engine.start()
    await engine.listening()
    worker = await Operator(nodes[0]).add(engine.url)
    # Nothing of so little stands with the nodes: all of it is the owner's to give.
    body = Rule(_CAPPED, requests=f"{_AMOUNT}/hour", standing=0.0).body()
    status, said = await nodes[0].ask("PUT", _PATH, body, headers={"if-match": "*"})
    if status >= 300:
        raise ClusterError(f"the limit is not set: {status} {said[:300]!r}")

    async def known() -> bool:
        views = [await Operator(node).workers() for node in nodes]
        told = [await node.ask("GET", _PATH) for node in nodes]
        return all(view.get(worker) == "ready" for view in views) and all(
            status == 200 for status, _ in told
        )

    if await until(stage.cluster, known, _LIMIT_S) is None:
        raise ClusterError("not all nodes know the limited model")
    asked = json.dumps(
        {"model": _CAPPED, "messages": [{"role": "user", "content": "?"}], "max_tokens": 1}
    ).encode()
    answers = await asyncio.gather(
        *(
            nodes[number % 2].ask("POST", CHAT, asked, timeout_s=_LIMIT_S)
            for number in range(_BURST)
        )
    )
    statuses = [status for status, _ in answers]
    admitted, refused = statuses.count(200), statuses.count(429)
    says = f"{_BURST} asked at two nodes, {refused} refused"
    for status, answer in answers:
        if status != 200:
            stage.say(f"limited: {status} {answer[:300]!r}")
            break
    return [
        Figure("admitted beyond ten", max(admitted - _AMOUNT, 0), "", 0, says),
        Figure("of the ten not admitted", max(_AMOUNT - admitted, 0), "", 0),
        Figure("neither admitted nor refused", _BURST - admitted - refused, "", 0),
    ]


async def conversed(stage: Stage) -> list[Figure]:
    """Make a conversation and a turn at one node, read it at the others at once, and continue
    there.
    """
    first, *others = nodes_of(stage.cluster)
    lab = stage.cluster.lab
    made = await ask(lab, first, "POST", CONVERSATIONS, {})
    conversation = str(made.said.get("id"))
    turn: dict[str, Any] = {"model": MODEL, "max_output_tokens": 4, "conversation": conversation}
    wrong = [] if made.status == 200 else [f"{first.name}: {made.said}"]
    for number, node in enumerate([first, *others]):
        answer = await ask(lab, node, "POST", RESPONSES, {**turn, "input": f"number {number}"})
        if answer.status != 200:
            wrong.append(f"{node.name}: {answer.said}")
        for reader in nodes_of(stage.cluster):
            path = f"{CONVERSATIONS}/{conversation}/items?limit=100"
            listed = await ask(lab, reader, "GET", path)
            if listed.status != 200 or len(listed.said["data"]) != 2 * (number + 1):
                wrong.append(f"{reader.name}: {listed.status} {str(listed.said)[:200]}")
    return [
        Figure(
            "reads and turns of one conversation that fail",
            len(wrong),
            "",
            0,
            "; ".join(wrong)[:200],
        )
    ]


async def affine(stage: Stage) -> list[Figure]:
    """Send the same keys, and the same beginnings, to all nodes; and once more after one was
    killed.
    """
    nodes = nodes_of(stage.cluster)
    before: dict[str, dict[int, str]] = {}
    figures = []
    for when in ("", " after a node died"):
        for policy in (*_BY_KEY, *_BY_PROMPT, "round_robin, sticky"):
            await _choose_by(stage, nodes, policy)
            went = await _went(stage, nodes, policy)
            alike = sum(len(workers) == 1 for workers in went.values())
            says = (
                f"{alike} of {_KEYS} at one worker; {len(set().union(*went.values()))} workers used"
            )
            figures.append(
                Figure(f"{policy}: keys that went apart{when}", _KEYS - alike, "", 0, says)
            )
            one = {key: next(iter(workers)) for key, workers in went.items()}
            if when:
                moved = sum(before[policy][key] != worker for key, worker in one.items())
                figures.append(Figure(f"{policy}: keys that moved{when}", moved, "", 0))
            before[policy] = one
        if not when:
            victim = nodes.pop()
            victim.signal(signal.SIGKILL)
            since_ms = stage.cluster.now_ms()
            if not await stage.cluster.until_announced(
                nodes, "down", victim.name, since_ms, _LIMIT_S
            ):
                raise ClusterError(f"nobody misses {victim.name}")
    return figures


async def _choose_by(stage: Stage, nodes: Sequence[SmgAgent], policy: str) -> None:
    name, _, sticky = policy.partition(", ")
    wanted: Mapping[str, Any] = {"routing.policy": name, "routing.sticky_sessions": bool(sticky)}
    for key, value in wanted.items():
        await Operator(nodes[0]).set(key, value)

    async def so() -> bool:
        return all(
            [
                await Operator(node).setting(key) == value
                for node in nodes
                for key, value in wanted.items()
            ]
        )

    if await until(stage.cluster, so, _LIMIT_S) is None:
        raise ClusterError(f"not all nodes choose by {policy}")


async def _went(stage: Stage, nodes: Sequence[SmgAgent], policy: str) -> dict[int, set[str]]:
    """Return the workers each key, or beginning, went to; the first node asked is another each
    time.
    """
    by_prompt = policy in _BY_PROMPT
    went: dict[int, set[str]] = {number: set() for number in range(_KEYS)}
    for turn in range(len(nodes)):
        for number in range(_KEYS):
            node = nodes[(number + turn) % len(nodes)]
            went[number].add(await _worker(stage, node, policy, number, keyed=not by_prompt))
        if by_prompt:
            await asyncio.sleep(_HEARD_OF_S)
    return went


async def _worker(stage: Stage, node: SmgAgent, policy: str, number: int, *, keyed: bool) -> str:
    beginning = f"{policy} {number} " * _PREFIX_WORDS
    heard = Hearing(stage.now_s())
    await listen(
        at_place(stage.cluster.lab, node.name),
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": "Hello?" if keyed else beginning}],
            "max_tokens": 1,
            "stream": True,
        },
        now_s=stage.now_s,
        limit_s=_LIMIT_S,
        hearing=heard,
        key=f"{policy.partition(',')[0]}-{number}" if keyed else "",
    )
    if heard.broken or heard.errors or not heard.worker:
        raise ClusterError(f"{node.name} does not answer: {heard.broken} {heard.errors}")
    return heard.worker
