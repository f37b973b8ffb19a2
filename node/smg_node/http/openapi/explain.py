"""Explain schemas for `/openapi.json`: the answer of `/v1/cluster/explain/{id}`, with an example."""

from collections.abc import Mapping
from typing import Any, Final

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
_AMOUNT: Final[Mapping[str, Any]] = {"type": ["number", "null"]}
_TEXTS: Final[Mapping[str, Any]] = {"type": "object", "additionalProperties": _TEXT}


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _list(name: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}


_DROPPED: Final = {"type": "array", "items": _object(worker=_TEXT, reason=_TEXT)}

EXPLAIN_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Explained": _object(
        request_id=_TEXT,
        node=_TEXT,
        journeys=_list("Journey"),
        workers=_TEXTS,
        members=_TEXTS,
    ),
    "Journey": _object(
        request_id=_TEXT,
        answer=_TEXT,
        node=_TEXT,
        dialect=_TEXT,
        model=_TEXT,
        under_way={"type": "boolean"},
        began_ms=_COUNT,
        ended_ms={"type": ["integer", "null"]},
        kind={"enum": ["", "ok", "client_gone", "refused", "failed"]},
        code=_TEXT,
        status=_COUNT,
        prompt_tokens=_COUNT,
        cached_tokens=_COUNT,
        completion_tokens=_COUNT,
        ttft_ms={"type": ["integer", "null"]},
        attempts=_COUNT,
        continuations=_COUNT,
        steps={
            "type": "array",
            "items": {
                "oneOf": [
                    {"$ref": "#/components/schemas/WorkerChosen"},
                    {"$ref": "#/components/schemas/CallBroke"},
                ]
            },
        },
        more=_COUNT,
        unplaced=_DROPPED,
        message=_TEXT,
        bills=_list("VendorBill"),
        runs=_list("ToolRun"),
        pictures=_list("ViewedPicture"),
        processor=_list("ProcessorValue"),
    ),
    "ProcessorValue": _object(name=_TEXT, value={}, origin=_TEXT),
    "ViewedPicture": _object(
        family=_TEXT,
        width=_COUNT,
        height=_COUNT,
        tokens=_COUNT,
        digest=_TEXT,
        way={"enum": ["tensors", "references", "encoded"]},
        worker=_TEXT,
        maker={"enum": ["node", "kept", "shared", "engine", ""]},
        transport={"enum": ["message", "shared memory", ""]},
    ),
    "ToolRun": _object(
        at_ms=_COUNT,
        server=_TEXT,
        tool=_TEXT,
        verdict={"enum": ["allow", "ask", "deny"]},
        rule=_TEXT,
        outcome=_TEXT,
        ms=_COUNT,
    ),
    "VendorBill": _object(
        provider=_TEXT,
        model=_TEXT,
        prompt_tokens=_COUNT,
        cached_tokens=_COUNT,
        cache_write_tokens=_COUNT,
        completion_tokens=_COUNT,
        service_tier=_TEXT,
        cost_micro={"type": ["number", "null"], "minimum": 0},
        estimated={"type": "boolean"},
    ),
    "WorkerChosen": _object(
        step={"const": "chosen"},
        at_ms=_COUNT,
        choice=_COUNT,
        why={"enum": ["first", "another", "retry", "continue", "target"]},
        worker=_TEXT,
        policy=_TEXT,
        of=_COUNT,
        rated=_list("RatedWorker"),
        dropped=_DROPPED,
        waited_ms=_COUNT,
        key={"type": "boolean"},
        prompt_tokens=_COUNT,
        role={"enum": ["", "prefill", "decode", "encode"]},
        rank={"type": ["integer", "null"], "minimum": 0},
        note=_TEXT,
    ),
    "RatedWorker": _object(
        worker=_TEXT, cost_s=_AMOUNT, wait_s=_AMOUNT, overlap=_AMOUNT, dollars=_AMOUNT
    ),
    "CallBroke": _object(
        step={"const": "broke"},
        at_ms=_COUNT,
        choice=_COUNT,
        worker=_TEXT,
        code=_TEXT,
        message=_TEXT,
        emitted=_COUNT,
        then=_TEXT,
    ),
}

_BEGAN_MS: Final = 1_754_000_000_000
_FIRST: Final = "w-7f3a91c0d2e4"
_SECOND: Final = "w-19ab40e7c655"
_REQUEST: Final = "req_019863000000a1b2000000000000c3d4"

EXPLAIN_EXAMPLE: Final[Mapping[str, Any]] = {
    "request_id": _REQUEST,
    "node": "a",
    "journeys": [
        {
            "request_id": _REQUEST,
            "answer": "019863000000a1b3000000000000e5f6",
            "node": "b",
            "dialect": "chat",
            "model": "llama-3.1-8b",
            "under_way": False,
            "began_ms": _BEGAN_MS,
            "ended_ms": _BEGAN_MS + 2_410,
            "kind": "ok",
            "code": "",
            "status": 200,
            "prompt_tokens": 4600,
            "cached_tokens": 4096,
            "completion_tokens": 96,
            "ttft_ms": 118,
            "attempts": 2,
            "continuations": 1,
            "steps": [
                {
                    "step": "chosen",
                    "at_ms": _BEGAN_MS + 4,
                    "choice": 0,
                    "why": "first",
                    "worker": _FIRST,
                    "policy": "cache_aware",
                    "of": 2,
                    "rated": [
                        {
                            "worker": _FIRST,
                            "cost_s": 0.081,
                            "wait_s": 0.018,
                            "overlap": 4096.0,
                            "dollars": None,
                        },
                        {
                            "worker": _SECOND,
                            "cost_s": 0.575,
                            "wait_s": 0.0,
                            "overlap": 0.0,
                            "dollars": None,
                        },
                    ],
                    "dropped": [{"worker": "w-55d0c1aa90ef", "reason": "breaker open"}],
                    "waited_ms": 0,
                    "key": False,
                    "prompt_tokens": 4600,
                    "role": "",
                    "rank": None,
                    "note": "",
                },
                {
                    "step": "broke",
                    "at_ms": _BEGAN_MS + 1_210,
                    "choice": 0,
                    "worker": _FIRST,
                    "code": "engine_unreachable",
                    "message": "the engine's connection was lost",
                    "emitted": 41,
                    "then": "continued elsewhere",
                },
                {
                    "step": "chosen",
                    "at_ms": _BEGAN_MS + 1_214,
                    "choice": 0,
                    "why": "continue",
                    "worker": _SECOND,
                    "policy": "cache_aware",
                    "of": 1,
                    "rated": [
                        {
                            "worker": _SECOND,
                            "cost_s": 0.580,
                            "wait_s": 0.0,
                            "overlap": 0.0,
                            "dollars": None,
                        },
                    ],
                    "dropped": [{"worker": _FIRST, "reason": "failed on it already"}],
                    "waited_ms": 0,
                    "key": False,
                    "prompt_tokens": 4641,
                    "role": "",
                    "rank": None,
                    "note": "",
                },
            ],
            "more": 0,
            "unplaced": [],
            "message": "",
            "bills": [],
            "runs": [],
            "pictures": [],
            "processor": [],
        }
    ],
    "workers": {_FIRST: "grpc://10.0.0.7:30100", _SECOND: "grpc://10.0.0.8:30100"},
    "members": {"c": "no answer in 2.0 s"},
}
