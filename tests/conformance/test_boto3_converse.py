"""boto3 against a stand-in for Bedrock: it signs as this node would, and reads the frames that this node writes."""

import base64
import calendar
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import boto3
import msgspec
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError

from smg_node.dialects.converse.aws_frames import event_frame
from smg_node.providers.sigv4 import RequestToSign, SigV4Signer
from support.providers.converse_answers import (
    ROLE,
    call,
    cost,
    ended,
    failure,
    text,
    thought,
    whole_answer,
)

pytestmark = pytest.mark.conformance
MODEL: Final = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-5:0"
PATH: Final = "/model/" + MODEL.replace(":", "%3A").replace("/", "%2F")
ASKED: Final[Any] = [{"role": "user", "content": [{"text": "Hello é"}]}]
EVENTS: Final = "application/vnd.amazon.eventstream"


class Keys(msgspec.Struct, frozen=True):
    access_key_id: str = "AKIDEXAMPLE"
    secret_access_key: str = "secret/+"
    session_token: str = "token=="


class StandIn:
    """Answers every request with one body, if its signature is what ours would be."""

    def __init__(self) -> None:
        self.kind, self.body = "", b""
        self.asked: list[tuple[str, Any]] = []
        self.signatures: list[tuple[str, str]] = []
        """Theirs and ours."""

    def take(self, asked: BaseHTTPRequestHandler) -> None:
        body = asked.rfile.read(int(asked.headers["content-length"]))
        self.asked.append((asked.path, json.loads(body)))
        self.signatures.append((asked.headers["authorization"], _signature(asked, body)))
        asked.send_response(200)
        asked.send_header("content-type", self.kind)
        asked.send_header("content-length", str(len(self.body)))
        asked.end_headers()
        asked.wfile.write(self.body)


def _signature(asked: BaseHTTPRequestHandler, body: bytes) -> str:
    theirs = asked.headers["authorization"]
    names = theirs.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    path, _, query = asked.path.partition("?")
    headers = {name: asked.headers[name] for name in names}
    at = calendar.timegm(time.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ"))
    request = RequestToSign("POST", asked.headers["host"], path, query, headers, body)
    return SigV4Signer("bedrock", "eu-west-1").headers(request, Keys(), now_s=at)["authorization"]


@pytest.fixture
def stand_in() -> Iterator[tuple[StandIn, Any]]:
    """A stand-in, and a client that it is Bedrock for."""
    told = StandIn()

    class Connection(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.take(self)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Connection) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        keys = Keys()
        client = boto3.client(
            "bedrock-runtime",
            region_name="eu-west-1",
            endpoint_url=f"http://127.0.0.1:{server.server_port}",
            aws_access_key_id=keys.access_key_id,
            aws_secret_access_key=keys.secret_access_key,
            aws_session_token=keys.session_token,
            config=Config(retries={"total_max_attempts": 1}, proxies={}),
        )
        try:
            yield told, client
        finally:
            client.close()
            server.shutdown()
            thread.join()


def test_boto3_reads_our_stream_and_signs_as_we_do(stand_in: tuple[StandIn, Any]) -> None:
    told, client = stand_in
    told.kind = EVENTS
    told.body = b"".join(
        (
            ROLE,
            thought(0, {"text": "Hm."}, {"signature": "s"}),
            text(1, "Good ", "dé"),
            call(2, "look_up", "tooluse_1", '{"a":', "1}"),
            ended("tool_use"),
            cost(9, 4, cacheReadInputTokens=0),
        )
    )
    events = list(client.converse_stream(modelId=MODEL, messages=ASKED)["stream"])
    assert told.asked == [(f"{PATH}/converse-stream", {"messages": ASKED})]
    [(theirs, ours)] = told.signatures
    assert theirs == ours
    assert [next(iter(one)) for one in events] == [
        "messageStart",
        *["contentBlockDelta"] * 2,
        "contentBlockStop",
        *["contentBlockDelta"] * 2,
        "contentBlockStop",
        "contentBlockStart",
        *["contentBlockDelta"] * 2,
        "contentBlockStop",
        "messageStop",
        "metadata",
    ]
    deltas = [one["contentBlockDelta"]["delta"] for one in events if "contentBlockDelta" in one]
    assert deltas == [
        {"reasoningContent": {"text": "Hm."}},
        {"reasoningContent": {"signature": "s"}},
        {"text": "Good "},
        {"text": "dé"},
        {"toolUse": {"input": '{"a":'}},
        {"toolUse": {"input": "1}"}},
    ]
    assert events[-1]["metadata"]["usage"]["totalTokens"] == 13


def test_boto3_reads_our_exceptions(stand_in: tuple[StandIn, Any]) -> None:
    told, client = stand_in
    told.kind = EVENTS
    told.body = ROLE + text(0, "x") + failure("throttlingException", {"message": "Slow down."})
    stream = client.converse_stream(modelId=MODEL, messages=ASKED)["stream"]
    with pytest.raises(EventStreamError, match="Slow down") as raised:
        list(stream)
    assert isinstance(raised.value, ClientError)
    assert raised.value.response["Error"]["Code"] == "throttlingException"


def test_boto3_reads_our_chunks(stand_in: tuple[StandIn, Any]) -> None:
    told, client = stand_in
    said = b'{"type":"message_start"}'
    told.kind = EVENTS
    told.body = event_frame("chunk", b'{"bytes":"%b"}' % base64.b64encode(said))
    answer = client.invoke_model_with_response_stream(modelId=MODEL, body=b'{"max_tokens":1}')
    assert list(answer["body"]) == [{"chunk": {"bytes": said}}]
    assert told.asked == [(f"{PATH}/invoke-with-response-stream", {"max_tokens": 1})]
    [(theirs, ours)] = told.signatures
    assert theirs == ours


def test_boto3_reads_our_whole_answer(stand_in: tuple[StandIn, Any]) -> None:
    told, client = stand_in
    told.kind = "application/json"
    told.body = whole_answer({"text": "Good day"}, reason="max_tokens")
    answer = client.converse(modelId=MODEL, messages=ASKED)
    assert answer["output"]["message"]["content"] == [{"text": "Good day"}]
    assert (answer["stopReason"], answer["usage"]["totalTokens"]) == ("max_tokens", 13)
    [(theirs, ours)] = told.signatures
    assert theirs == ours
