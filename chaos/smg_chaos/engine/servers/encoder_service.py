"""Encoder service: what TokenSpeed serves on an engine that only encodes pictures for others.

Its servicer has the encoder's service, and of the scheduler's only what is asked of an engine to get to know it:
Generate is refused, there is no load and there are no events.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from smg_grpc_proto.generated import tokenspeed_encoder_pb2 as pb
from smg_grpc_proto.generated import tokenspeed_scheduler_pb2 as scheduler_pb

from smg_chaos.engine.media.shared_tensors import open_shared
from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.rpc_call import Call, Code, refused, unary
from smg_chaos.engine.simulator.engine import Engine

Method: TypeAlias = Callable[[bytes, float], Call]

SERVICE: Final = "tokenspeed.grpc.encoder.TokenSpeedEncoder"
_SCHEDULER: Final = "tokenspeed.grpc.scheduler.TokenSpeedScheduler"


def encoder_methods(engine: Engine) -> Mapping[str, Method]:
    """Return the methods by full name that an engine has because it encodes for others; none for any other."""
    if engine.settings.role != "encode":
        return {}

    def encode(body: bytes, now_s: float) -> Call:
        request = _read(pb.EncodeRequest, body)
        if not request.HasField("mm_inputs"):
            return refused(Code.INVALID_ARGUMENT, "EncodeRequest.mm_inputs is required")
        if len(request.mm_inputs.items) != 1 or len(request.items) != 1:
            return refused(
                Code.INVALID_ARGUMENT,
                "EncodeRequest must contain exactly one mm item and one room assignment",
            )
        places = request.mm_inputs.items[0].placeholders
        if len(places) != 1 or not places[0].length:
            return refused(Code.INVALID_ARGUMENT, "encode MultimodalItem carried no placeholders")
        placeholder = engine.bundle.placeholder
        if placeholder is None:
            return refused(Code.INVALID_ARGUMENT, "this model takes no pictures")
        asked = Asked(
            request_id=request.request_id,
            ids=[0] * places[0].offset + [placeholder] * places[0].length,
            media={"mm_inputs": request.mm_inputs},
            room=request.items[0].bootstrap_room,
            open_shared=open_shared if engine.settings.shared_memory else None,
        )
        return engine.reception.encode(asked, now_s)

    def generate(body: bytes, now_s: float) -> Call:
        message = "Generate is unavailable on TokenSpeed encode workers"
        return refused(Code.FAILED_PRECONDITION, message)

    def loads(body: bytes, now_s: float) -> Call:
        return unary(scheduler_pb.GetLoadsResponse(version="tokenspeed").SerializeToString())

    def events(body: bytes, now_s: float) -> Call:
        return refused(Code.UNIMPLEMENTED, "KV cache events are not published")

    return {
        f"/{SERVICE}/Encode": encode,
        f"/{_SCHEDULER}/Generate": generate,
        f"/{_SCHEDULER}/GetLoads": loads,
        f"/{_SCHEDULER}/SubscribeKvEvents": events,
    }


def _read(kind: Any, body: bytes) -> Any:
    try:
        return kind.FromString(body)
    except Exception as error:  # protobuf's DecodeError has a different home in every runtime
        raise ValueError("not a message of this contract") from error
