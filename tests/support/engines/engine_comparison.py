"""One table of requests, sent to a real engine and to the simulated one that imitates it.

What comes back is reduced to what must be equal: kinds of messages, which fields are set, counts, ids,
reasons, statuses. Values that no two runs share (log probabilities, uptimes, wording) are reduced to
their kind. Run by hand against an engine that serves a scripted model, it learns the script, starts a
simulated engine that says the same, and prints every request that the two answer differently:

    python -m support.engines.engine_comparison sglang HOST:PORT MODEL_FOLDER --context 2048 --slots 16
"""

import base64
import hashlib
import io
import json
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from smg_grpc_proto.generated import common_pb2
from tokenizers import Tokenizer

from smg_chaos.engine.plans import Wanted
from support.engines.engine_client import Asker, Heard, asking, in_background, listen
from support.engines.simulated_engine import served

Reduced = Any

_LONG: Final[dict[str, Any]] = {"max_tokens": 1900, "ignore_eos": True, "temperature": 1.0}
# Measured or worded differently by every run.
# Set only while something runs, so whether they are there is a matter of milliseconds.
_BUSY: Final = frozenset({"running_requests", "token_usage", "gen_throughput"})
_VOLATILE: Final = frozenset({"uptime_seconds", "timestamp", "shm_namespace_id", "start_time"})


def reduced(value: Any, name: str = "") -> Reduced:
    """Return what must be equal of a message."""
    if name in _VOLATILE:
        return type(value).__name__
    if isinstance(value, dict):
        return {key: reduced(inner, key) for key, inner in sorted(value.items())}
    if isinstance(value, list):
        if value and isinstance(value[0], float):
            return f"{len(value)} numbers"
        return [reduced(inner, name) for inner in value]
    return value


def told(heard: Heard) -> Reduced:
    """Return all of what a call brought, and its status."""
    return {"messages": [reduced(one) for one in heard.messages], "code": heard.code}


def outline(heard: Heard) -> Reduced:
    """Return the shape of a call whose chunks depend on timing: merged, they say the same."""
    complete = [reduced(one) for one in heard.messages if "complete" in one]
    chunks = [one["chunk"] for one in heard.messages if "chunk" in one]
    return {
        "ids": heard.ids,
        "chunks": bool(chunks),
        "fields": sorted({key for chunk in chunks for key in chunk}),
        "complete": complete,
        "code": heard.code,
    }


# ── The table ───────────────────────────────────────────────────────────────


def logprobs(asker: Asker, **fields: Any) -> Reduced:
    """Ask for log probabilities; which other tokens come close is the model's own affair."""
    heard = asker.generate(logprobs=2, max_tokens=3, **fields)
    for message in heard.messages:
        for part in message.values():
            columns = part.get("output_logprobs", {}) if isinstance(part, dict) else {}
            for top in columns.get("top_logprobs", ()):
                top["token_ids"] = [top["token_ids"][0], "and another"]
    return told(heard)


def aborted(asker: Asker, *, stream: bool) -> Reduced:
    """Abort a request that runs; return how it ended, without what was printed before."""
    name = asker.fresh("abort")
    call = asker.open(asker.request(request_id=name, stream=stream or None, **_LONG), wait_s=3.0)
    heard = Heard()
    if stream:
        listen(call, heard=heard, stop_after=10)
        before = len(heard.messages)
        answer = asker.abort(name)
        listen(call, heard=heard)
        # Whatever was on its way may still come.
        after = [
            one for one in heard.messages[before:] if not one.get("chunk", {}).get("token_ids")
        ]
    else:
        answers: list[Heard] = []

        def abort() -> None:
            time.sleep(0.3)
            answers.append(asker.abort(name))

        with in_background(abort):
            listen(call, heard=heard)
        (answer,) = answers
        after = heard.messages
    for message in after:
        complete = message.get("complete", {})
        for key in ("output_ids", "completion_tokens", "output_token_ids"):
            if key in complete:
                complete[key] = "some"
    return {"answer": told(answer), "after": [reduced(one) for one in after], "code": heard.code}


def busy(asker: Asker) -> int:
    """Return how many requests the engine says it is working on."""
    if (
        "GetLoads"
        in asker.contract.messages.DESCRIPTOR.services_by_name[_service(asker)].methods_by_name
    ):
        loads = asker.call("GetLoads").messages[0]["loads"]
        return sum(int(load.get("num_running_reqs", 0)) for load in loads)
    return int(asker.call("GetServerInfo").messages[0].get("active_requests", 0))


def _service(asker: Asker) -> str:
    return asker.contract.service.rpartition(".")[2]


def cancelled(asker: Asker) -> Reduced:
    """Cancel a request that runs; return how many run half a second later."""
    call = asker.open(asker.request(request_id=asker.fresh("cancel"), **_LONG))
    heard = listen(call, stop_after=5)
    call.cancel()
    time.sleep(0.5)
    return {"chunks": heard.kinds, "running": busy(asker)}


def twins(asker: Asker) -> Reduced:
    """Run two requests under one id; return what both came to."""
    first = asker.open(asker.request(max_tokens=200, ignore_eos=True), wait_s=5.0)
    begun = listen(first, stop_after=1)
    second = asker.generate(max_tokens=3, wait_s=5.0)
    rest = listen(first, heard=begun)
    return {
        "first": [rest.code, "complete" in rest.kinds],
        "second": [second.code, "complete" in second.kinds],
        "own": len(second.ids) == 3,
    }


def tokenizer(asker: Asker) -> Reduced:
    """Fetch the tokenizer; return its files' sums, and whether the archive's own sum fits."""
    pieces = asker.call("GetTokenizer").messages
    archive = b"".join(base64.b64decode(piece["data"]) for piece in pieces)
    sums = [piece.get("sha256", "") for piece in pieces]
    files = zipfile.ZipFile(io.BytesIO(archive))
    return {
        "fits": sums[-1] == hashlib.sha256(archive).hexdigest() and not any(sums[:-1]),
        "files": {name: hashlib.sha256(files.read(name)).hexdigest() for name in files.namelist()},
    }


def health(asker: Asker) -> Reduced:
    """Ask both health services."""
    names = ("", asker.contract.service, "nope")
    return {
        "standard": [told(asker.health(name)) for name in names],
        "own": told(asker.call("HealthCheck")),
    }


def flush(asker: Asker) -> Reduced:
    """Flush the cache; return whether it went well, and what a prompt finds cached around it."""
    ids = asker.ids * 10

    def cached() -> Any:
        time.sleep(0.3)
        return asker.generate(ids=ids, max_tokens=2).complete.get("cached_tokens", 0)

    before = [cached(), cached()]
    time.sleep(0.5)
    done = asker.call("FlushCache")
    return {
        "cached": [before[1], cached()],
        "flushed": done.messages[0].get("success"),
        "code": done.code,
    }


def kv_sequence(asker: Asker) -> Reduced:
    """Subscribe, prompt, and return the shape of what was published."""
    asker.call("FlushCache")
    call = asker.subscribe()
    heard: list[bytes] = []
    thread = threading.Thread(target=lambda: _collect(call, heard))
    thread.start()
    time.sleep(1.0)
    ids = (asker.ids * 80)[:80]
    for _ in range(2):
        asker.generate(ids=ids, max_tokens=4)
        time.sleep(0.5)
    call.cancel()
    thread.join(10)
    batches = [common_pb2.KvEventBatch.FromString(raw) for raw in heard]
    own = [batch for batch in batches if not batch.load.load_only]
    numbers = [batch.sequence_number for batch in own]
    return {
        "steps": [after - before for before, after in pairwise(numbers)],
        "events": [
            [
                (event.WhichOneof("data"), len(event.stored.blocks), _fields(event.stored))
                for event in batch.events
            ]
            for batch in own
        ],
        "load": sorted({field.name for field, _ in own[0].load.ListFields()} - _BUSY),
        "rank": [batch.HasField("dp_rank") for batch in own],
    }


def _fields(stored: Any) -> list[str]:
    return sorted(field.name for field, _ in stored.ListFields())


def _collect(call: Any, heard: list[bytes]) -> None:
    try:
        heard.extend(call)
    except Exception as error:  # a call that was cancelled raises what it likes
        del error


def stop_id(asker: Asker, **fields: Any) -> Reduced:
    """Stop at the fifth id of the answer."""
    fifth = asker.generate(stream=None).ids[4]
    return outline(asker.generate(stop_ids=[fifth], **fields))


EVERYWHERE: Final[Mapping[str, Callable[[Asker], Reduced]]] = {
    "greedy": lambda asker: outline(asker.generate()),
    "greedy, whole": lambda asker: told(asker.generate(stream=None)),
    "length": lambda asker: outline(asker.generate(max_tokens=5)),
    "length, whole": lambda asker: told(asker.generate(max_tokens=5, stream=None)),
    "no limit": lambda asker: outline(asker.generate(max_tokens=None)),
    "one token": lambda asker: outline(asker.generate(max_tokens=1)),
    "no token": lambda asker: outline(asker.generate(max_tokens=0)),
    "stop id": stop_id,
    "stop id, whole": lambda asker: stop_id(asker, stream=None),
    "logprobs": logprobs,
    "logprobs, whole": lambda asker: logprobs(asker, stream=None),
    "top_p above one": lambda asker: outline(asker.generate(top_p=2.0, max_tokens=3)),
    "longer than the context": lambda asker: outline(asker.generate(max_tokens=100_000)),
    "abort": lambda asker: aborted(asker, stream=True),
    "abort, whole": lambda asker: aborted(asker, stream=False),
    "cancel": cancelled,
    "one id twice": twins,
    "abort of nobody": lambda asker: told(asker.abort("nobody")),
    "model": lambda asker: told(asker.call("GetModelInfo")),
    "server": lambda asker: sorted(asker.call("GetServerInfo").messages[0]),
    "health": health,
    "tokenizer": tokenizer,
    "no such method": lambda asker: told(asker.call("NoSuchMethod")),
}
_CHOICES: Final[Mapping[str, Callable[[Asker], Reduced]]] = {
    "stop string": lambda asker: outline(asker.generate(stop=["brown"])),
    "stop string, whole": lambda asker: told(asker.generate(stop=["brown"], stream=None)),
    "two choices": lambda asker: sorted(
        (one.get("index", 0), one["finish_reason"], one["completion_tokens"])
        for message in asker.generate(n=2, max_tokens=6, temperature=1.0).messages
        for one in [message.get("complete")]
        if one
    ),
    "two choices, whole": lambda asker: told(
        asker.generate(n=2, max_tokens=6, temperature=1.0, stream=None)
    ),
    "two greedy choices": lambda asker: told(asker.generate(n=2, max_tokens=6, stream=None)),
    "flush": flush,
    "kv events": kv_sequence,
}
_REFUSALS: Final[Mapping[str, Callable[[Asker], Reduced]]] = {
    "no ids": lambda asker: outline(asker.generate(ids=[])),
    "id beyond the vocabulary": lambda asker: outline(asker.generate(ids=[10**6])),
    "prompt beyond the context": lambda asker: outline(asker.generate(ids=asker.ids * 1000)),
    "temperature below zero": lambda asker: outline(asker.generate(temperature=-1.0)),
    "21 logprobs": lambda asker: outline(asker.generate(logprobs=21, max_tokens=1)),
    "text": lambda asker: outline(asker.generate(ids=[], text="x\n", max_tokens=3)),
}
TABLE: Final[Mapping[str, Mapping[str, Callable[[Asker], Reduced]]]] = {
    "mlx": {
        **EVERYWHERE,
        "text": _REFUSALS["text"],
        "kv events": lambda asker: told(asker.call("SubscribeKvEvents")),
    },
    "vllm": {**EVERYWHERE, **_CHOICES, **_REFUSALS},
    "sglang": {
        **EVERYWHERE,
        **_CHOICES,
        "prompt beyond the context": _REFUSALS["prompt beyond the context"],
    },
}


def main(arguments: list[str]) -> int:
    """Compare a real engine with its imitation; return how many requests they answer differently."""
    contract, address, folder, *flags = arguments
    settings: dict[str, Any] = {"contract": contract, "step_s": 0.002, "coalesce": 1}
    for flag, value in zip(flags[::2], flags[1::2], strict=True):
        name = flag.removeprefix("--").replace("-", "_")
        settings[name] = int(value) if value.isdigit() else value
    ids = Tokenizer.from_file(str(Path(folder) / "tokenizer.json")).encode("x\n").ids
    different = 0
    with asking(address, contract, ids) as real, TemporaryDirectory() as scratch:
        script = Path(scratch) / "script.ids"
        script.write_text(json.dumps(real.generate(stream=None).ids[:-1]), encoding="utf-8")
        wanted = Wanted(settings=settings, tokenizer=Path(folder), script=str(script))
        with served(wanted) as engines, asking(engines.address, contract, ids) as simulated:
            for name, ask in TABLE[contract].items():
                answers = ask(real), ask(simulated)
                if answers[0] != answers[1]:
                    different += 1
                lines = ["same" if answers[0] == answers[1] else "DIFFERENT", name]
                if answers[0] != answers[1]:
                    lines += [f"\n  real      {answers[0]}", f"\n  simulated {answers[1]}"]
                sys.stdout.write(" ".join(lines) + "\n")
                sys.stdout.flush()
    return different


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
