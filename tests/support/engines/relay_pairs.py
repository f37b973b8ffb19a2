"""HTTP workers that share their work: one works prompts off, the other one answers once it has the blocks."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from smg_node.engines.http.transport import HttpCall
from support.engines.relay_bench import (
    JSON,
    SSE,
    FakeTransport,
    RelayBench,
    Told,
    listing,
    lost,
    told,
)

CACHED = 3
"""What every first worker says that it had of a prompt."""
EVENT = b'data: {"model":"m","choices":[{"delta":{"content":"a"}}]}\n\n'
FINISH = b'data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = FINISH + b"data: [DONE]\n\n"
ROWS = {"tokens": ["a"] * 13, "token_logprobs": [-1.0] * 13}
ANSWER = {
    "model": "m",
    "choices": [{"text": "hi", "logprobs": ROWS}],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 8},
    },
}
TRANSFER = '{"do_remote_prefill": true,"remote_block_ids":[1,2],"odd":1.50e1}'
"""What a first worker tells the second one; no writer of JSON would spell it like this."""
PORT = 4711
STYLES = ("sglang", "nixl", "mooncake", "store")
IN_TURN = STYLES[1:]


@dataclass
class Network:
    """Where blocks are kept and taken, by room or transfer.

    `losing` hand-overs fail; a second worker that waits for `patience_s` gives up.
    """

    style: str = "sglang"
    losing: int = 0
    patience_s: float = 0.2
    ranks: int = 1
    kept: dict[str, asyncio.Event] = field(default_factory=dict)
    taken: dict[str, asyncio.Event] = field(default_factory=dict)
    computed: int = 0
    """How many prompts a second worker worked off itself."""
    streams: bytes = EVENT + DONE
    """What a second worker streams."""

    def prefill(self, name: str = "m") -> FakeTransport:
        return self._worker("prefill", self._keeps, name)

    def decode(self, name: str = "m") -> FakeTransport:
        return self._worker("decode", self._answers, name)

    def query(self, role: str, more: str = "") -> str:
        """Return what an operator says of a worker of that role; nothing of one that says it itself."""
        if self.style == "sglang":
            return f"?{more.lstrip('&')}" if more else ""
        known = "&label.kv_engine_id=e7" if self.style == "mooncake" else ""
        return f"?role={role}&label.kv_connector={self.style}{known}&bootstrap_port={PORT}{more}"

    def _worker(self, role: str, says: Any, name: str) -> FakeTransport:
        made = FakeTransport(says=says, pages={"/health": Told(), "/v1/models": listing(name)})
        if self.style == "sglang":
            made.pages["/get_server_info"] = told(
                {
                    "disaggregation_mode": role,
                    "disaggregation_bootstrap_port": PORT,
                    "disaggregation_transfer_backend": "mooncake",
                    "dp_size": self.ranks,
                }
            )
        return made

    def _keeps(self, call: HttpCall) -> Told:
        body = json.loads(call.body)
        assert not body.get("stream")
        key = self._key(body)
        usage = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": CACHED}}
        if self.losing > 0:
            self.losing -= 1
        else:
            self.kept.setdefault(key, asyncio.Event()).set()
        if self.style == "sglang":
            taken = self.taken.setdefault(key, asyncio.Event())
            return Told((taken, json.dumps({"choices": [], "usage": usage}).encode()))
        params = TRANSFER if self.style == "nixl" else "null"
        text = f'{{"choices":[],"kv_transfer_params":{params},"usage":{json.dumps(usage)}}}'
        return Told((text.encode(),))

    def _answers(self, call: HttpCall) -> Told:
        body = json.loads(call.body)
        key = self._key(body)
        kept = self.kept.setdefault(key, asyncio.Event())
        whole = self.streams if body.get("stream") else json.dumps(ANSWER).encode()

        def takes() -> bytes:
            if not kept.is_set():
                if self.style == "sglang" or "kv_transfer_params" in body:
                    raise lost()
                self.computed += 1
            self.taken.setdefault(key, asyncio.Event()).set()
            return whole

        waits = (kept,) if self.style == "sglang" and not self.losing else (self.patience_s / 4,)
        return Told((*waits, takes), headers=SSE if body.get("stream") else JSON)

    def _key(self, body: dict[str, Any]) -> str:
        params = body.get("kv_transfer_params") or {}
        match self.style:
            case "sglang":
                assert (body["bootstrap_host"], body["bootstrap_port"]) == ("p", PORT)
                return str(body["bootstrap_room"])
            case "mooncake":
                return str(params.get("transfer_id"))
            case _:
                return "the one"


def said(net: Network, **more: str) -> dict[str, str]:
    """Return what operators say of `p…` and `d…`."""
    roles = {"p": "prefill", "d": "decode"}
    known = {name: net.query(roles[name[0]], more.get(name, "")) for name in more}
    return {"p": net.query("prefill"), "d": net.query("decode"), **known}


def bodies(one: FakeTransport) -> list[dict[str, Any]]:
    return [json.loads(call.body) for call in one.calls]


def named(b: RelayBench, name: str) -> str:
    """Return the id of a worker."""
    return next(one.id for one in b.fleet.workers() if one.url.host == name)


def steps(b: RelayBench, kind: type) -> list[Any]:
    return [step for one in b.journal.get("req_1") for step in one.steps if type(step) is kind]
