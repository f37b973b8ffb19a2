"""Judges of Converse: botocore's model of the API, held to the letter, and its own readers of frames and answers."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import botocore.session
from botocore.eventstream import EventStream, EventStreamBuffer
from botocore.parsers import create_parser
from botocore.serialize import create_serializer
from botocore.validate import ParamValidator

from smg_node.dialects.converse.aws_frames import HeaderValue


@lru_cache(maxsize=1)
def _service() -> Any:
    return botocore.session.Session().get_service_model("bedrock-runtime")


def refusal(fields: Mapping[str, Any]) -> str:
    """Return why the API would refuse a body of ConverseStream, "" if it would not."""
    operation = _service().operation_model("ConverseStream")
    try:
        params = {"modelId": "m", **_with_bytes(dict(fields), operation.input_shape)}
    except ValueError as error:
        return str(error)
    report = ParamValidator().validate(params, operation.input_shape).generate_report()
    if report:
        return str(report)
    told = create_serializer("rest-json").serialize_to_request(params, operation)["body"]
    if json.loads(told) != fields:
        return f"would be written as {told!r}"
    return next(_broken(params, operation.input_shape, ""), "")


def frames_of(data: bytes) -> list[tuple[dict[str, HeaderValue], bytes]]:
    """Return the frames that botocore reads."""
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return [(message.headers, message.payload) for message in buffer]


def events_of(data: bytes, operation: str = "ConverseStream", member: str = "stream") -> list[Any]:
    """Return the events that botocore reads in a stream; its own error for an exception in it."""

    class Raw:
        def stream(self) -> Iterator[bytes]:
            yield data

        def close(self) -> None:
            pass

    shape = _service().operation_model(operation).output_shape.members[member]
    parser = create_parser("rest-json")._event_stream_parser
    return list(EventStream(Raw(), shape, parser, operation))


def answer_of(body: bytes) -> Any:
    """Return the answer that botocore reads in a whole body."""
    shape = _service().operation_model("Converse").output_shape
    return create_parser("rest-json").parse(
        {"body": body, "headers": {}, "status_code": 200}, shape
    )


def _with_bytes(value: Any, shape: Any) -> Any:
    """Return a body as it is handed to boto3: what goes out in base64 is bytes there."""
    if shape.type_name == "blob":
        return base64.b64decode(value, validate=True)
    if shape.type_name == "list" and isinstance(value, list):
        return [_with_bytes(each, shape.member) for each in value]
    if shape.type_name == "structure" and isinstance(value, dict) and not _is_document(shape):
        return {
            name: _with_bytes(each, shape.members[name]) if name in shape.members else each
            for name, each in value.items()
        }
    return value


def _is_document(shape: Any) -> bool:
    return bool(getattr(shape, "is_document_type", False))


def _broken(value: Any, shape: Any, path: str) -> Iterator[str]:
    """Yield what boto3 lets pass and the API does not: enumerations, patterns, upper limits, blank text."""
    meta, kind = shape.metadata, shape.type_name
    if kind == "structure" and not _is_document(shape):
        for name, each in value.items():
            yield from _broken(each, shape.members[name], f"{path}.{name}")
    elif kind == "list":
        for at, each in enumerate(value):
            yield from _broken(each, shape.member, f"{path}[{at}]")
    size = len(value) if kind in ("string", "list", "blob") else value
    if "max" in meta and size > meta["max"]:
        yield f"{path}: {size} is more than {meta['max']}"
    if kind == "string":
        if "enum" in meta and value not in meta["enum"]:
            yield f"{path}: {value!r} is none of {meta['enum']}"
        if "pattern" in meta and path != ".modelId" and not re.fullmatch(meta["pattern"], value):
            yield f"{path}: {value!r} does not match {meta['pattern']}"
        if path.endswith(".text") and "reasoningText" not in path and not value.strip():
            yield f"{path} is blank"
