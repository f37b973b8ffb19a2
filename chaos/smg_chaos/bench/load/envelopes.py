"""Envelopes of the load generator's requests: everything but their messages, prepared once a flow."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from smg_chaos.bench.load.job import Api, Flow, Job

SYSTEM: Final = b"You are a helpful assistant. Answer in one or two sentences."
TOOLS: Final = b'{"type":"mcp","server_label":"bench","require_approval":"never"}'
"""Those of the server that gateways know by this name."""
_PATHS: Final[Mapping[Api, str]] = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "interactions": "/v1/interactions",
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """Everything of a request except its messages; `instructed` where the system's words are not one of them.
    `question` is around the text of one that a user asks, where that is no message.
    """

    head: bytes
    before: bytes
    after: bytes
    instructed: bool = False
    question: tuple[bytes, bytes] = (b'{"role":"user","content":"', b'"}')

    def around(self, messages: bytes) -> bytes:
        """Return the whole request."""
        length = len(self.before) + len(messages) + len(self.after)
        return b"%b%d\r\n\r\n%b%b%b" % (self.head, length, self.before, messages, self.after)


def envelope_of(job: Job, flow: Flow) -> Envelope:
    """Return the envelope for a flow's requests."""
    key = f"authorization: Bearer {job.key}\r\n" if job.key else ""
    path = _PATHS[flow.api]
    key += "anthropic-version: 2023-06-01\r\n" if flow.api == "messages" else ""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: {job.host}:{job.port}\r\n"
        "accept: */*\r\nuser-agent: smg-chaos-bench\r\ncontent-type: application/json\r\n"
        f"{key}content-length: "
    )
    after = f'],"max_tokens":{flow.tokens}'
    model = msgspec.json.encode(flow.model or job.model)
    if flow.api in ("responses", "interactions"):
        return _stored_envelope(head.encode(), model, flow)
    if flow.api == "messages":
        after += ',"stream":true' if flow.stream else ""
        before = b'{"model":%b,"system":"%b","messages":[' % (model, SYSTEM)
        return Envelope(head.encode(), before, after.encode() + b"}", instructed=True)
    if flow.stream:
        after += ',"stream":true,"stream_options":{"include_usage":true}'
    return Envelope(head.encode(), b'{"model":%b,"messages":[' % model, after.encode() + b"}")


def _stored_envelope(head: bytes, model: bytes, flow: Flow) -> Envelope:
    """Return the envelope of an API that keeps its answers; the question is one text."""
    before = b'{"model":%b,"' % model
    after = b',"stream":true' if flow.stream else b""
    if flow.prompt.kind == "tool run":
        before += b'instructions":"%b","input":' % SYSTEM
        after += b',"tools":[%b]}' % TOOLS
        return Envelope(head, before, after, instructed=True, question=(b'"', b'"'))
    if flow.api == "responses":
        before += b'instructions":"%b","input":' % SYSTEM
        after += b',"max_output_tokens":%d}' % flow.tokens
    else:
        before += b'system_instruction":"%b","input":' % SYSTEM
        after += b',"generation_config":{"max_output_tokens":%d}}' % flow.tokens
    return Envelope(head, before, after, instructed=True, question=(b'"', b'"'))
