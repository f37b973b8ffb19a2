"""Failures as vendors tell them: OpenAI, Anthropic, Google, AWS; and what this node makes of them."""

import json
from typing import Any, Final

from smg_node.providers.vendor_errors import VendorFailure, vendor_failure

NOW: Final = 1_700_000_000.0
JSON: Final = {"content-type": "application/json"}


def failure(
    status: int,
    said: Any,
    headers: dict[str, str] | None = None,
    *,
    kind: str = "openai",
    client_key: bool = False,
    secrets: tuple[str, ...] = (),
) -> VendorFailure:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    headers = JSON if headers is None else headers
    return vendor_failure(
        status, headers, body, kind=kind, now=NOW, client_key=client_key, secrets=secrets
    )


def openai_error(message: str, code: str | None = None, kind: str = "invalid_request_error") -> Any:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic_error(kind: str, message: str) -> Any:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def google_error(code: int, status: str, message: str, *details: Any) -> Any:
    return {"error": {"code": code, "status": status, "message": message, "details": details}}


def quota_violation(quota_id: str) -> Any:
    violation = {"quotaMetric": "generate_requests", "quotaId": quota_id}
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}


def aws_error(kind: str, message: str) -> tuple[Any, dict[str, str]]:
    return {"message": message}, {
        "x-amzn-errortype": f"{kind}:http://internal.amazon.com/x",
        **JSON,
    }
