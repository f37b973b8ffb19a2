"""vLLM contract, `vllm.grpc.engine.VllmEngine`: encodes requests and decodes responses of both of
its servicers.

Unset and zero mean "off" for most fields, temperature 1.0 and the rest of the context. `complete`
repeats the last delta (Python servicer) or everything (Rust). `GetServerInfo.server_type` is
`vllm-grpc` from Rust and empty from Python. Asked for log probabilities of the prompt, Rust gives none
and swallows the first token of the answer, so it is never asked.

In a pair the decode engine draws the first token itself, and fetches nothing if log probabilities of the prompt are
wanted. What the prefill engine says to it comes in `complete`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from smg_grpc_proto.generated import vllm_engine_pb2 as pb

from smg_node.core.generation.request import Constraint
from smg_node.engines.contracts.common_fields import matched_stop, stream_message
from smg_node.engines.contracts.engine_metadata import (
    declared_fields,
    default_sampling,
    flattened,
    named_instance,
    positive,
)
from smg_node.engines.contracts.grammar_mapping import choices_of
from smg_node.engines.contracts.kv_transfer import is_fetched
from smg_node.engines.contracts.load_reports import scheduler_loads
from smg_node.engines.contracts.pairing_rules import (
    believable_ranks,
    connector_pairing,
    connector_role,
)
from smg_node.engines.contracts.request_template import Splice
from smg_node.engines.contracts.sampling_rules import folded_seed
from smg_node.engines.contracts.wire import NOWHERE, Message, Places, embedded, parsed
from smg_node.engines.engine import (
    Abilities,
    Contract,
    Embedded,
    EmbedRequest,
    EngineRequest,
    MediaCard,
    ModelCard,
)
from smg_node.engines.load import Load
from smg_node.engines.transport.message_pieces import MessagePieces
from smg_node.media.engine_media import Tensor
from smg_node.native.stream_messages import ChunkReader, EndReader

_RUST: Final = "vllm-grpc"


class VllmWire:
    """See `Wire`."""

    contract = Contract.VLLM
    service = "vllm.grpc.engine.VllmEngine"
    ping_interval_min_s = 10.0
    abilities = Abilities(
        stop_strings=True,
        native_n=True,
        seed=True,
        min_tokens=True,
        logit_bias=True,
        logprobs_max=20,
        prompt_logprobs=True,
        constraints=frozenset(
            {"json_object", "json_schema", "regex", "ebnf", "structural_tag", "choice"}
        ),
        adapters=False,
        penalties=True,
        loads=True,
        kv_events=True,
        embeds=True,
    )

    def __init__(self) -> None:
        self.chunks = ChunkReader(part=1, choice=7, prompt=2, cached=4)
        self.ends = EndReader(part=2, choice=8, prompt=3, cached=5, reason=2, matched=10)
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

    def generate_media(
        self, request: EngineRequest, *, bias_width: int | None, places: Places = NOWHERE
    ) -> MessagePieces:
        """See `MediaWire`."""
        # Here and below: a node that sees no picture loads none of it.
        from smg_node.engines.contracts.media.fields import with_fields
        from smg_node.engines.contracts.media.vllm_fields import vllm_fields

        assert request.media is not None
        text = self._splice.written(request, bias_width)
        bare = is_fetched(request.transfer)
        return with_fields(text, vllm_fields(request.media, places, bare=bare))

    def shareable(self, request: EngineRequest) -> Mapping[str, Tensor]:
        """See `MediaWire`."""
        from smg_node.engines.contracts.media.vllm_fields import vllm_shareable

        return {} if is_fetched(request.transfer) else vllm_shareable(request.media)

    def _message(self, request: EngineRequest, _bias_width: int | None) -> pb.GenerateRequest:
        """Return the request as protobuf has it."""
        message = pb.GenerateRequest(request_id=request.request_id, stream=request.stream)
        message.tokenized.input_ids.extend(request.ids)
        sampling, params = request.sampling, message.sampling_params
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
        params.min_tokens = sampling.min_tokens
        params.stop.extend(sampling.stop)
        params.stop_token_ids.extend(sampling.stop_token_ids)
        params.include_stop_str_in_output = sampling.keep_stop
        params.skip_special_tokens = sampling.skip_special_tokens
        params.spaces_between_special_tokens = sampling.spaces_between_special_tokens
        params.ignore_eos = sampling.ignore_eos
        params.n = sampling.n
        if sampling.logprobs is not None:
            params.logprobs = sampling.logprobs
        if sampling.prompt_logprobs is not None:
            params.prompt_logprobs = sampling.prompt_logprobs
        if sampling.seed is not None:
            params.seed = folded_seed(sampling.seed)
        params.logit_bias.update(sampling.logit_bias)
        if sampling.constraint is not None:
            _constrain(params, sampling.constraint)
            params.grammar_from_first_token = sampling.constraint.begins == "first_token"
        assert request.room is None, "partners are told of each other"
        if request.transfer:
            message.kv_transfer_params_json = request.transfer
        if request.rank is not None:
            message.data_parallel_rank = request.rank
        return message

    def embed(self, request: EmbedRequest) -> bytes:
        """See `EmbedWire`."""
        message = pb.EmbedRequest(request_id=request.request_id)
        message.tokenized.input_ids.extend(request.ids)
        data: bytes = message.SerializeToString()
        return data

    def embedded(self, data: bytes) -> Embedded:
        """See `EmbedWire`."""
        return embedded(parsed(pb.EmbedResponse, data))

    def read(self, data: bytes) -> Message | None:
        """See `Wire`."""
        response = parsed(pb.GenerateResponse, data)
        found = stream_message(response, of_prompt=True)
        if found is not None and found.final:
            found.matched = matched_stop(response.complete)
            found.transfer = response.complete.kv_transfer_params_json
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
        servicer = "rust" if process.server_type == _RUST else "python"
        return ModelCard(
            contract=self.contract,
            model=about.served_model_name or about.model_path,
            model_path=about.model_path,
            context=positive(about.max_context_length),
            prompt_max=positive(about.max_req_input_len),
            vocabulary=positive(about.vocab_size),
            eos_ids=tuple(about.eos_token_ids),
            sampling_defaults=default_sampling(about.default_sampling_params_json),
            server=flattened({**declared_fields(process), "servicer": servicer}),
            block_size=positive(process.block_size),
            running_max=positive(process.max_num_seqs),
            abilities=(
                replace(self.abilities, prompt_logprobs=False) if servicer == "rust" else None
            ),
            role=connector_role(process),
            pairing=connector_pairing(process),
            instance=named_instance(process.kv_engine_id),
            media=_media(about, process),
            ranks=believable_ranks(process.data_parallel_size),
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
    if not about.supports_vision:
        return None
    from smg_node.engines.contracts.media.cards import vllm_media

    return vllm_media(process)


def _constrain(params: Any, constraint: Constraint) -> None:
    match constraint.kind:
        case "json_object":
            params.json_object = True
        case "json_schema":
            params.json_schema = constraint.value
        case "regex":
            params.regex = constraint.value
        case "ebnf":
            params.grammar = constraint.value
        case "structural_tag":
            params.structural_tag = constraint.value
        case "choice":
            params.choice.choices.extend(choices_of(constraint))
