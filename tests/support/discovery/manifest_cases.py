"""Manifests as SMG reads them: texts, and what SMG 1.13.0 made of each, as `record_manifests.py` wrote it down.

SMG routes either to regular workers or to pairs, and takes what is of use to its way; a manifest counts here as taken by
SMG when one of the two ways takes it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

RECORDED: Final = Path(__file__).parent / "smg_manifests.json"
_A: Final = "grpc://127.0.0.1:45051"
_B: Final = "http://127.0.0.1:45055"


def _of(*workers: object, **more: object) -> str:
    return json.dumps({"version": 1, "workers": list(workers), **more})


def _one(url: object = _A, **fields: object) -> str:
    return _of({"id": "a", "url": url, **fields})


def _prefill(url: str = _A, **fields: object) -> str:
    return _one(url, worker_type="prefill", **fields)


CASES: Final[Mapping[str, str]] = {
    "one": _one(),
    "two": _of({"id": "a", "url": _A}, {"id": "b", "url": _B}),
    "none": _of(),
    "no id": _of({"url": _A}),
    "id null": _of({"id": None, "url": _A}),
    "id empty": _of({"id": "", "url": _A}),
    "id number": _of({"id": 5, "url": _A}),
    "id twice": _of({"id": "a", "url": _A}, {"id": "a", "url": _B}),
    "url twice": _of({"id": "a", "url": _A}, {"id": "b", "url": _A}),
    "url twice with a slash": _of({"id": "a", "url": _B}, {"id": "b", "url": f"{_B}/"}),
    "url twice in two schemes": _of(
        {"id": "a", "url": _A}, {"id": "b", "url": _A.replace("grpc", "http")}
    ),
    "url twice with and without scheme": _of(
        {"id": "a", "url": _A}, {"id": "b", "url": _A.removeprefix("grpc://")}
    ),
    "localhost twice": _of({"id": "a", "url": "localhost:45051"}, {"id": "b", "url": _A}),
    "url of two roles": _of(
        {"id": "a", "url": _B, "worker_type": "prefill"},
        {"id": "b", "url": _B, "worker_type": "decode"},
    ),
    "no version": json.dumps({"workers": [{"id": "a", "url": _A}]}),
    "version 2": json.dumps({"version": 2, "workers": []}),
    "version text": json.dumps({"version": "1", "workers": []}),
    "version 1.0": '{"version": 1.0, "workers": []}',
    "no workers": json.dumps({"version": 1}),
    "workers are texts": _of(_A),
    "field at the top": _of(x=1),
    "field of a worker": _one(x=1),
    "no scheme": _one("127.0.0.1:45051"),
    "https": _one("https://127.0.0.1:45056"),
    "https without a port": _one("https://h.example"),
    "http with /v1": _one("http://127.0.0.1:45056/v1"),
    "ftp": _one("ftp://127.0.0.1:45056"),
    "grpcs": _one("grpcs://127.0.0.1:45056"),
    "grpc without a port": _one("grpc://h.example"),
    "with a query": _one(f"{_A}?priority=3"),
    "with a password": _one("http://u:p@127.0.0.1:45051"),
    "in capitals": _one("GRPC://LocalHost:45051"),
    "IPv6": _one("grpc://[::1]:45051"),
    "empty url": _one(""),
    "url number": _one(5),
    "pair": _of(
        {"id": "p", "url": _A, "worker_type": "prefill", "bootstrap_port": 8998},
        {"id": "d", "url": _B, "worker_type": "decode"},
    ),
    "regular": _one(worker_type="regular"),
    "encode": _one(worker_type="encode"),
    "type null": _one(worker_type=None),
    "type in capitals": _one(worker_type="Prefill"),
    "type unknown": _one(worker_type="bogus"),
    "bootstrap of a regular worker": _one(bootstrap_port=8998),
    "bootstrap of a decode worker": _one(worker_type="decode", bootstrap_port=8998),
    "bootstrap null": _prefill(bootstrap_port=None),
    "bootstrap 0": _prefill(bootstrap_port=0),
    "bootstrap 70000": _prefill(bootstrap_port=70_000),
    "bootstrap text": _prefill(bootstrap_port="8998"),
    "bootstrap float": '{"version":1,"workers":[{"url":"a:1","worker_type":"prefill","bootstrap_port":8998.0}]}',
    "connector": _prefill(
        _B, kv_connector="NixlConnector", kv_role="kv_producer", kv_engine_id="e1", model_id="m"
    ),
    "connector empty": _prefill(_B, kv_connector="", kv_role="", kv_engine_id="", model_id=""),
    "key twice": f'{{"version":1,"workers":[{{"id":"a","url":"{_A}","url":"{_B}"}}]}}',
    "byte order mark": "\ufeff" + _of(),
    "empty file": "",
    "list": json.dumps([{"id": "a", "url": _A}]),
    "cut off": _one()[:-2],
    "more behind it": _of() + " x",
    "YAML": f"version: 1\nworkers:\n- id: a\n  url: {_A}\n",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What SMG made of a manifest: `URL role` of its workers, sorted, or why it refused it."""

    workers: tuple[str, ...] | None
    why: str


def judgements() -> Mapping[str, Judgement]:
    """Return what SMG made of each case."""
    recorded: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())["cases"]
    return {name: _judgement(ways) for name, ways in recorded.items()}


def _judgement(ways: Mapping[str, Any]) -> Judgement:
    taken = [one for one in ways.values() if isinstance(one, list)]
    if taken:
        return Judgement(tuple(sorted({worker for one in taken for worker in one})), "")
    return Judgement(None, "; ".join(sorted(set(ways.values()))))
