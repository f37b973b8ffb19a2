"""Service of a simulated engine: maps a method's full name and a request's bytes to a call.

All servers of this package use it. A unary method is a call with one message.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from smg_grpc_proto.generated import common_pb2

from smg_chaos.engine.cache.loads import loads_answer
from smg_chaos.engine.media.shared_tensors import open_shared
from smg_chaos.engine.protocol.faults import Where
from smg_chaos.engine.protocol.rpc_call import FINE, GONE, Call, Code, End, refused, unary
from smg_chaos.engine.protocol.wire import Field, string_field
from smg_chaos.engine.scripts import bundle as bundles
from smg_chaos.engine.servers.encoder_service import encoder_methods
from smg_chaos.engine.servers.model_facts import MODEL_FACTS, SERVER_FACTS, VERSIONS, told
from smg_chaos.engine.simulator.engine import Engine

Method: TypeAlias = Callable[[bytes, float], Call]

HEALTH_SERVICE: Final = "grpc.health.v1.Health"
_SERVING, _NOT_SERVING, _SERVICE_UNKNOWN = 1, 2, 3
_PROBE_PATIENCE_S: Final = 20.0
_FLUSH_RETRY_S: Final = 0.05
_MIB: Final = 1 << 20
# Methods of the contracts that no simulation needs: they exist and are not implemented.
_UNIMPLEMENTED: Final = (
    "Embed",
    "StartProfile",
    "StopProfile",
    "LoadLoRAAdapter",
    "UnloadLoRAAdapter",
    "ListLoadedLoRAAdapters",
)


class Service:
    """All methods of one engine, by full name (`/package.Service/Method`)."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._messages: Any = engine.contract.messages
        declared = self._messages.DESCRIPTOR.services_by_name
        name = engine.contract.service.rpartition(".")[2]
        offered: dict[str, Method] = {
            "Generate": self._generate,
            "Abort": self._abort,
            "HealthCheck": self._health_check,
            "GetModelInfo": self._model,
            "GetServerInfo": self._server,
            "GetTokenizer": self._tokenizer,
            "GetLoads": self._loads,
            "FlushCache": self._flush,
            "SubscribeKvEvents": self._subscribe,
            **dict.fromkeys(_UNIMPLEMENTED, self._unimplemented),
        }
        self.methods: Mapping[str, Method] = {
            **{
                f"/{engine.contract.service}/{method}": self._living(offered[method])
                for method in declared[name].methods_by_name
            },
            **{name: self._living(method) for name, method in encoder_methods(engine).items()},
            f"/{HEALTH_SERVICE}/Check": self._living(self._check),
            f"/{HEALTH_SERVICE}/Watch": self._living(self._watch),
        }

    def start(self, method: str, body: bytes, now_s: float) -> Call:
        """Start the call of a method and return it; it may have ended already."""
        found = self.methods.get(method)
        if found is None:
            return refused(Code.UNIMPLEMENTED, f"unknown method {method}")
        return found(body, now_s)

    def _living(self, method: Method) -> Method:
        def guarded(body: bytes, now_s: float) -> Call:
            if self.engine.down or self.engine.died is not None:
                return Call((), GONE)
            try:
                return method(body, now_s)
            except ValueError as error:
                return refused(Code.INTERNAL, f"cannot read the request: {error}")

        return guarded

    def _read(self, kind: Any, body: bytes) -> Any:
        try:
            return kind.FromString(body)
        except Exception as error:  # protobuf's DecodeError has a different home in every runtime
            raise ValueError("not a message of this contract") from error

    # ── The contract's methods ──────────────────────────────────────────────

    def _generate(self, body: bytes, now_s: float) -> Call:
        asked = self.engine.contract.read(body)
        if asked.media and self.engine.settings.shared_memory:
            asked.open_shared = open_shared
        return self.engine.submit(asked, now_s)

    def _abort(self, body: bytes, now_s: float) -> Call:
        request = self._read(self._messages.AbortRequest, body)
        answer = self._messages.AbortResponse()
        unknown_ok = self.engine.manners.abort_answers
        if unknown_ok is None:
            for request_id in request.request_ids:
                self.engine.abort(request_id, now_s)
        else:
            known = self.engine.abort(request.request_id, now_s) or unknown_ok
            answer.success = known
            answer.message = f"Request {request.request_id} {'aborted' if known else 'not found'}"
        return unary(answer.SerializeToString())

    def _health_check(self, body: bytes, now_s: float) -> Call:
        manners = self.engine.manners
        if self.engine.dead:
            return unary(self._health(well=False, text="Engine is not alive"))
        if not manners.deep_health or self.engine.settings.role == "encode":
            return unary(self._health(well=True, text=manners.health_text))
        call = Call()

        def answer(*, well: bool, text: str) -> None:
            if call.end is None:
                call.say(self._health(well=well, text=text))
                call.end = FINE
                call.bell(call)

        late = f"Health check timeout after {_PROBE_PATIENCE_S:g}s"
        self.engine.probe([0], lambda _: answer(well=True, text=manners.health_text), now_s)
        self.engine.at(now_s + _PROBE_PATIENCE_S, lambda _: answer(well=False, text=late))
        return call

    def _health(self, *, well: bool, text: str) -> bytes:
        answer = self._messages.HealthCheckResponse()
        if hasattr(answer, "status"):
            answer.status = text
        else:
            answer.healthy, answer.message = well, text
        body: bytes = answer.SerializeToString()
        return body

    def _model(self, body: bytes, now_s: float) -> Call:
        table = MODEL_FACTS[self.engine.manners.flavour]
        return unary(told(self._messages.GetModelInfoResponse(), table, self.engine, now_s))

    def _server(self, body: bytes, now_s: float) -> Call:
        table = SERVER_FACTS[self.engine.manners.flavour]
        return unary(told(self._messages.GetServerInfoResponse(), table, self.engine, now_s))

    def _loads(self, body: bytes, now_s: float) -> Call:
        request = self._read(self._messages.GetLoadsRequest, body)
        moment = datetime.fromtimestamp(self.engine.wall_s(now_s), UTC)
        stamp = {
            "timestamp": moment.isoformat(),
            "version": VERSIONS[self.engine.manners.flavour],
        }
        loads = dict(enumerate(self.engine.gauge.loads(now_s)))
        if request.HasField("dp_rank"):
            loads = {number: load for number, load in loads.items() if number == request.dp_rank}
        manners, include = self.engine.manners, list(request.include)
        return unary(loads_answer(self._messages, loads, manners, stamp, include))

    def _flush(self, body: bytes, now_s: float) -> Call:
        timeout_s = self._read(common_pb2.FlushCacheRequest, body).timeout_s
        if not math.isfinite(timeout_s) or timeout_s < 0:
            return refused(Code.INVALID_ARGUMENT, "timeout_s must be finite and non-negative")
        until_s = now_s + max(timeout_s, self.engine.manners.flush_grace_s)
        call = Call()

        def attempt(at_s: float) -> None:
            if call.end is not None:
                return
            flushed = self.engine.flush(at_s)
            if not flushed and at_s < until_s:
                self.engine.at(min(at_s + _FLUSH_RETRY_S, until_s), attempt)
                return
            manners = self.engine.manners
            text = manners.flush_text if flushed else manners.flush_refusal
            answer = common_pb2.FlushCacheResponse(success=flushed, message=text)
            call.say(answer.SerializeToString())
            call.end = FINE
            call.bell(call)

        attempt(now_s)
        return call

    def _subscribe(self, body: bytes, now_s: float) -> Call:
        request = self._read(common_pb2.SubscribeKvEventsRequest, body)
        return self.engine.relay.subscribe(
            request.start_sequence_number,
            now_s,
            early_load=request.load_records_before_first_batch,
        )

    def _tokenizer(self, body: bytes, now_s: float) -> Call:
        pieces = bundles.pieces(self._archive())
        if self.engine.faults.named("truncated-bundle") is not None:
            whole = self._archive()
            digest = hashlib.sha256(whole).hexdigest()
            pieces = [(piece, digest) for piece, _ in bundles.pieces(whole[: len(whole) // 2])]
        elif self.engine.faults.named("wrong-sum") is not None:
            pieces = [(piece, "0" * 64 if digest else "") for piece, digest in pieces]
        data, sha256 = Field(1), Field(2)
        huge = self.engine.faults.named("huge-bundle")
        for fault in self.engine.faults.of(Where.BUNDLE):
            self.engine.faults.hit(fault)
        if huge is not None:
            return _Huge(huge.number("mib"))
        messages = [data.holding(piece) + sha256.text(digest) for piece, digest in pieces]
        return Call(messages, FINE)

    def _archive(self) -> bytes:
        missing = self.engine.faults.named("missing-file")
        if missing is None:
            return self.engine.bundle.archive
        left_out = str(missing.values["name"])
        files = self.engine.bundle.files
        return bundles.zipped({name: files[name] for name in files if name != left_out})

    def _unimplemented(self, body: bytes, now_s: float) -> Call:
        return refused(Code.UNIMPLEMENTED, "a simulated engine does not do this")

    # ── The standard health service ─────────────────────────────────────────

    def _status(self, name: str) -> int:
        if name not in ("", self.engine.contract.service):
            return _SERVICE_UNKNOWN
        return _SERVING if self.engine.serving and not self.engine.dead else _NOT_SERVING

    def _check(self, body: bytes, now_s: float) -> Call:
        name = string_field(body, 1)
        status = self._status(name)
        if status == _SERVICE_UNKNOWN:
            # Real servicers send an empty message before the error.
            return Call((b"",), End(Code.NOT_FOUND, f"Unknown service: {name}"))
        return unary(Field(1).of(status))

    def _watch(self, body: bytes, now_s: float) -> Call:
        return unary(Field(1).of(self._status(string_field(body, 1))))


class _Huge(Call):
    """A tokenizer archive of many MiB; never more than a piece of it is in memory."""

    __slots__ = ("_left", "_piece")

    def __init__(self, mib: int) -> None:
        super().__init__()
        self._left = mib * _MIB // bundles.PIECE_BYTES
        self._piece = Field(1).holding(bytes(bundles.PIECE_BYTES))

    def take(self, *, lagging: bool = False) -> list[bytes]:
        """Return the next piece."""
        if self._left <= 0:
            self.cut(End(Code.OK))
            return []
        self._left -= 1
        return [self._piece]
