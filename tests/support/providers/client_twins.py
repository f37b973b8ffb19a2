"""Twins of vendors' official clients: what this node sends for the wish that a client sends to a capture server."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import anthropic
import openai
import pytest
from google.auth.credentials import Credentials
from google.genai import errors

from smg_node.providers.parsing.spec_parser import parse_provider
from smg_node.providers.provider_call import (
    ApiKey,
    BearerToken,
    Credential,
    ProviderCall,
    provider_call,
)
from support.providers.capture_server import Captured, CaptureServer

KEY: Final = ApiKey("k-1")
TOKEN: Final = BearerToken("t-1")
REFUSED: Final = (openai.APIStatusError, anthropic.APIStatusError, errors.APIError)
AUTH: Final = (
    "authorization",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
    "anthropic-version",
    "anthropic-workspace-id",
    "openai-organization",
    "openai-project",
)


class Token(Credentials):
    """Google's credentials that hold a token and never need another."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # it has no types
        self.token = "t-1"

    @property
    def valid(self) -> bool:
        return True

    def refresh(self, request: Any) -> None:
        raise AssertionError("it never ends")


def sent(server: CaptureServer, call: Callable[[], Any]) -> Captured:
    """Return what a client sends."""
    with pytest.raises(REFUSED):
        call()
    return server.taken()


def ours(
    kind: str,
    operation: str,
    model: str,
    body: Mapping[str, Any] | bytes,
    *,
    streamed: bool,
    credential: Credential,
    headers: Mapping[str, str] | None = None,
    **said: Any,
) -> ProviderCall:
    """Return what this node sends for a client's own body, whose name of the model is another one."""
    spec = parse_provider("a", {"kind": kind, "credentials": "none", **said}).spec
    raw = body if isinstance(body, bytes) else json.dumps({"model": "public", **body}).encode()
    return provider_call(
        spec,
        operation,
        model,
        raw,
        streamed=streamed,
        credential=credential,
        now=0.0,
        headers=headers,
    )


def assert_twins(made: ProviderCall, captured: Captured, *dropped: str) -> None:
    """Both go to the same place with the same credentials, versions and fields; `dropped` are fields of one of them."""
    assert Captured(made.url.target, {}, b"").place == captured.place
    said = {name: captured.headers[name] for name in AUTH if name in captured.headers}
    assert {name: value for name, value in made.headers.items() if name in AUTH} == said
    fields, twin = json.loads(made.body), captured.fields
    for name in dropped:
        fields.pop(name, None)
        twin.pop(name, None)
    assert fields == twin
