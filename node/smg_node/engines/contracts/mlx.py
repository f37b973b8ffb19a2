"""MLX contract, `mlx.grpc.engine.MlxEngine`: encodes requests and decodes responses; small, one
answer per call.

No stop strings, n, grammar, min_tokens, loads or KV events. Zero means "off"; `logprobs` of zero means
off too, so the token drawn alone costs one alternative. After an Abort a stream ends OK, without its
`complete`. A negative seed makes it fail.
"""

from collections.abc import Sequence
from typing import NoReturn

from smg_grpc_proto.generated import mlx_engine_pb2 as pb

from smg_node.engines.contracts.common_fields import stream_message
from smg_node.engines.contracts.engine_metadata import declared_fields, flattened, positive
from smg_node.engines.contracts.pairing_rules import assert_alone
from smg_node.engines.contracts.request_template import Splice
from smg_node.engines.contracts.sampling_rules import folded_seed
from smg_node.engines.contracts.wire import Message, no_loads, parsed
from smg_node.engines.engine import Abilities, Contract, EngineRequest, ModelCard
from smg_node.engines.load import Load
from smg_node.native.stream_messages import ChunkReader, EndReader


class MlxWire:
    """See `Wire`."""

    contract = Contract.MLX
    service = "mlx.grpc.engine.MlxEngine"
    ping_interval_min_s = 10.0
    abilities = Abilities(
        stop_strings=False,
        native_n=False,
        seed=True,
        min_tokens=False,
        logit_bias=True,
        logprobs_max=20,
        prompt_logprobs=False,
        constraints=frozenset(),
        adapters=False,
        penalties=True,
        loads=False,
        kv_events=False,
    )

    def __init__(self) -> None:
        self.chunks = ChunkReader(part=1, choice=6, prompt=2, cached=4)
        self.ends = EndReader(part=2, choice=7, prompt=3, cached=5, reason=2, matched=8)
        self._splice = Splice(
            pb.GenerateRequest,
            self._message,
            ids="input_ids",
            params="sampling_params",
            limit="max_tokens",
        )

    def generate(self, request: EngineRequest, *, bias_width: int | None) -> bytes:
        """See `Wire`."""
        return self._splice.written(request, bias_width)

    def _message(self, request: EngineRequest, _bias_width: int | None) -> pb.GenerateRequest:
        """Return the request as protobuf has it."""
        sampling = request.sampling
        assert sampling.n == 1, "the pipeline fans out what a contract cannot count"
        assert_alone(request)
        message = pb.GenerateRequest(request_id=request.request_id, stream=request.stream)
        message.tokenized.input_ids.extend(request.ids)
        params = message.sampling_params
        if sampling.temperature is not None:
            params.temperature = sampling.temperature
        params.top_p = sampling.top_p or 0.0
        params.top_k = max(sampling.top_k or 0, 0)
        params.min_p = sampling.min_p or 0.0
        params.frequency_penalty = sampling.frequency_penalty
        params.presence_penalty = sampling.presence_penalty
        params.repetition_penalty = sampling.repetition_penalty or 0.0
        assert sampling.max_tokens is not None
        params.max_tokens = sampling.max_tokens
        params.stop_token_ids.extend(sampling.stop_token_ids)
        params.ignore_eos = sampling.ignore_eos
        if sampling.logprobs is not None:
            params.logprobs = max(sampling.logprobs, 1)
        if sampling.seed is not None:
            params.seed = folded_seed(sampling.seed)
        params.logit_bias.update(sampling.logit_bias)
        return message

    def read(self, data: bytes) -> Message | None:
        """See `Wire`."""
        response = parsed(pb.GenerateResponse, data)
        found = stream_message(response, of_prompt=False)
        if (
            found is not None
            and found.final
            and response.complete.HasField("matched_stop_token_id")
        ):
            found.matched = response.complete.matched_stop_token_id
        return found

    def abort(self, request_id: str) -> bytes:
        """See `Wire`."""
        data: bytes = pb.AbortRequest(request_ids=[request_id]).SerializeToString()
        return data

    def healthy(self, data: bytes) -> bool:
        """See `Wire`."""
        return bool(parsed(pb.HealthCheckResponse, data).healthy)

    def card(self, model: bytes, server: bytes) -> ModelCard:
        """See `Wire`."""
        about = parsed(pb.GetModelInfoResponse, model)
        process = parsed(pb.GetServerInfoResponse, server)
        return ModelCard(
            contract=self.contract,
            model=about.served_model_name or about.model_path,
            model_path=about.model_path,
            context=positive(about.max_context_length),
            prompt_max=positive(about.max_req_input_len),
            vocabulary=positive(about.vocab_size),
            eos_ids=tuple(about.eos_token_ids),
            server=flattened(declared_fields(process)),
        )

    def bias_width(self, model: bytes) -> int | None:
        """See `Wire`."""
        return positive(parsed(pb.GetModelInfoResponse, model).vocab_size)

    def loads_request(self) -> NoReturn:
        """See `Wire`."""
        raise no_loads(self.contract)

    def loads(self, data: bytes) -> Sequence[Load]:
        """See `Wire`."""
        raise no_loads(self.contract)
