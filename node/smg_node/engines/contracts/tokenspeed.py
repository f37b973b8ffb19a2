"""TokenSpeed contract, `tokenspeed.grpc.scheduler.TokenSpeedScheduler`: encodes requests and
decodes responses. Pure.

Scalars are optional, so a zero is a zero and what is unset is the engine's own default. A matched
stop id is trimmed from the answer unless `no_stop_trim`, which is always sent: a choice's ids are
complete here. The first chunk may be empty; an abort ends the call with an error.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from smg_grpc_proto.generated import tokenspeed_scheduler_pb2 as pb

from smg_node.engines.contracts.common_fields import matched_stop, stream_message
from smg_node.engines.contracts.engine_metadata import (
    declared_fields,
    default_sampling,
    drawn_instance,
    flattened,
    plain,
    positive,
    whole,
)
from smg_node.engines.contracts.grammar_mapping import constrain
from smg_node.engines.contracts.load_reports import scheduler_loads
from smg_node.engines.contracts.pairing_rules import (
    meet,
    scheduler_pairing,
    scheduler_ranks,
    scheduler_role,
)
from smg_node.engines.contracts.request_template import Splice
from smg_node.engines.contracts.sampling_rules import SEED_64_BITS
from smg_node.engines.contracts.wire import NOWHERE, Message, Places, parsed
from smg_node.engines.engine import Abilities, Contract, EngineRequest, MediaCard, ModelCard
from smg_node.engines.load import Load
from smg_node.engines.transport.message_pieces import MessagePieces
from smg_node.media.engine_media import Tensor
from smg_node.native.stream_messages import ChunkReader, EndReader

ROOM_BITS: Final = 63
"""Its field for the number of a room is a signed 64-bit number."""


class TokenspeedWire:
    """See `Wire`."""

    contract = Contract.TOKENSPEED
    service = "tokenspeed.grpc.scheduler.TokenSpeedScheduler"
    encoder_service = "tokenspeed.grpc.encoder.TokenSpeedEncoder"
    ping_interval_min_s = 10.0
    abilities = Abilities(
        stop_strings=True,
        native_n=True,
        seed=True,
        min_tokens=True,
        logit_bias=True,
        logprobs_max=20,
        prompt_logprobs=False,
        constraints=frozenset(
            {"json_object", "json_schema", "regex", "ebnf", "structural_tag", "choice"}
        ),
        adapters=False,
        penalties=True,
        loads=True,
        kv_events=True,
    )

    def __init__(self) -> None:
        self.chunks = ChunkReader(part=2, choice=6, prompt=2, cached=4)
        self.ends = EndReader(part=3, choice=9, prompt=3, cached=5, reason=2, matched=7)
        self._splice = Splice(
            pb.GenerateRequest,
            self._message,
            ids="input_ids",
            params="sampling_params",
            limit="max_new_tokens",
        )

    def generate(self, request: EngineRequest, *, bias_width: int | None) -> bytes:
        """See `Wire`."""
        return self._splice.written(request, bias_width)

    def generate_media(
        self, request: EngineRequest, *, bias_width: int | None, places: Places = NOWHERE
    ) -> MessagePieces:
        """See `MediaWire`."""
        # Here and below: a node that sees no picture loads none of it.
        from smg_node.engines.contracts.media.fields import with_fields
        from smg_node.engines.contracts.media.tokenspeed_fields import tokenspeed_fields

        text = self._splice.written(request, bias_width)
        return with_fields(text, tokenspeed_fields(request, places))

    def shareable(self, request: EngineRequest) -> Mapping[str, Tensor]:
        """See `MediaWire`."""
        from smg_node.engines.contracts.media.tokenspeed_fields import tokenspeed_shareable

        return tokenspeed_shareable(request.media) if request.pixels else {}

    def encode(self, request: EngineRequest, *, places: Places = NOWHERE) -> MessagePieces:
        """See `EncodeWire`."""
        from smg_node.engines.contracts.media.tokenspeed_fields import encode_request

        return encode_request(request, places)

    def accepted(self, data: bytes) -> bool:
        """See `EncodeWire`."""
        from smg_node.engines.contracts.media.tokenspeed_fields import encode_accepted

        return encode_accepted(data)

    def _message(self, request: EngineRequest, _bias_width: int | None) -> pb.GenerateRequest:
        """Return the request as protobuf has it."""
        sampling = request.sampling
        message = pb.GenerateRequest(request_id=request.request_id, stream=request.stream)
        message.tokenized.input_ids.extend(request.ids)
        params = message.sampling_params
        for name in ("temperature", "top_p", "min_p", "repetition_penalty"):
            value = getattr(sampling, name)
            if value is not None:
                setattr(params, name, value)
        if sampling.top_k is not None:
            params.top_k = sampling.top_k or -1
        params.frequency_penalty = sampling.frequency_penalty
        params.presence_penalty = sampling.presence_penalty
        assert sampling.max_tokens is not None
        params.max_new_tokens = sampling.max_tokens
        params.min_new_tokens = sampling.min_tokens
        params.stop.extend(sampling.stop)
        params.stop_token_ids.extend(sampling.stop_token_ids)
        params.no_stop_trim = True
        params.skip_special_tokens = sampling.skip_special_tokens
        params.spaces_between_special_tokens = sampling.spaces_between_special_tokens
        params.ignore_eos = sampling.ignore_eos
        params.n = sampling.n
        if sampling.seed is not None:
            params.sampling_seed = sampling.seed & SEED_64_BITS
        for token_id, bias in sampling.logit_bias.items():
            params.logit_bias[str(token_id)] = bias
        if sampling.logprobs is not None:
            message.return_logprob = True
            message.top_logprobs_num = sampling.logprobs
        if sampling.constraint is not None:
            constrain(params, sampling.constraint)
        assert not request.transfer, "partners meet in a room"
        if request.room is not None:
            meet(message.kv_bootstrap_info, request.room)
        if request.rank is not None:
            message.data_parallel_rank = request.rank
        return message

    def read(self, data: bytes) -> Message | None:
        """See `Wire`."""
        response = parsed(pb.GenerateResponse, data)
        found = stream_message(response, of_prompt=False)
        if found is not None and found.final:
            found.matched = matched_stop(response.complete)
        return found

    def abort(self, request_id: str) -> bytes:
        """See `Wire`."""
        message = pb.AbortRequest(request_id=request_id, reason="dropped by the gateway")
        data: bytes = message.SerializeToString()
        return data

    def healthy(self, data: bytes) -> bool:
        """See `Wire`."""
        return bool(parsed(pb.HealthCheckResponse, data).healthy)

    def card(self, model: bytes, server: bytes) -> ModelCard:
        """See `Wire`."""
        about = parsed(pb.GetModelInfoResponse, model)
        process = parsed(pb.GetServerInfoResponse, server)
        arguments = plain(process.server_args)
        return ModelCard(
            contract=self.contract,
            model=about.served_model_name or about.model_path,
            model_path=about.model_path,
            context=positive(about.max_context_length),
            prompt_max=positive(about.max_req_input_len),
            vocabulary=positive(about.vocab_size),
            eos_ids=tuple(about.eos_token_ids),
            sampling_defaults=default_sampling(about.default_sampling_params_json),
            server_version=process.tokenspeed_version,
            server=flattened(
                {
                    **arguments,
                    **declared_fields(
                        process, skip=("server_args", "scheduler_info", "start_time")
                    ),
                }
            ),
            block_size=whole(arguments.get("block_size") or arguments.get("page_size")),
            running_max=whole(
                arguments.get("max_num_seqs") or arguments.get("max_running_requests")
            ),
            role=scheduler_role(arguments, encodes=True),
            pairing=scheduler_pairing(arguments, room_bits=ROOM_BITS, encodes=True),
            instance=drawn_instance(
                process.start_time, arguments.get("random_seed", arguments.get("seed"))
            ),
            media=_media(about, process),
            ranks=scheduler_ranks(arguments),
        )

    def bias_width(self, model: bytes) -> int | None:
        """See `Wire`."""
        return positive(parsed(pb.GetModelInfoResponse, model).vocab_size)

    def loads_request(self) -> bytes:
        """See `Wire`."""
        data: bytes = pb.GetLoadsRequest(include=["core"]).SerializeToString()
        return data

    def loads(self, data: bytes) -> Sequence[Load]:
        """See `Wire`."""
        return scheduler_loads(parsed(pb.GetLoadsResponse, data).loads)


def _media(about: Any, process: Any) -> MediaCard | None:
    if not (about.supports_vision or about.supports_multimodal):
        return None
    from smg_node.engines.contracts.media.cards import tokenspeed_media

    return tokenspeed_media(about, plain(process.scheduler_info))
