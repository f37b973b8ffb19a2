"""SGLang contract, `sglang.grpc.scheduler.SglangScheduler`: encodes requests and decodes responses.
Pure.

Zeros are taken literally, so every scalar is sent. There is no seed. Alternatives of prompt and answer
share one count. An aborted stream never ends by itself. What GetModelInfo says of vocabulary and
context are fixed fallbacks and the size of the KV pool: only `max_req_input_len` is true, and it is the
first length that is too long. Without `enable_lora` an adapter's name is ignored in silence.

In a pair the prefill engine draws the first token, hands it over with the blocks, and says nothing before they are
fetched; the decode engine gives no log probabilities of the prompt. Both go to the rank that the room's number
leaves when it is divided by the ranks of the prefill engine. The Python servicer drops `data_parallel_rank`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from smg_grpc_proto.generated import sglang_scheduler_pb2 as pb

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


class SglangWire:
    """See `Wire`."""

    contract = Contract.SGLANG
    service = "sglang.grpc.scheduler.SglangScheduler"
    ping_interval_min_s = 10.0
    abilities = Abilities(
        stop_strings=True,
        native_n=True,
        seed=False,
        min_tokens=True,
        logit_bias=True,
        logprobs_max=20,
        prompt_logprobs=True,
        constraints=frozenset(
            {"json_object", "json_schema", "regex", "ebnf", "structural_tag", "choice"}
        ),
        adapters=True,
        penalties=True,
        loads=True,
        kv_events=True,
        embeds=True,
    )

    def __init__(self) -> None:
        self.chunks = ChunkReader(part=2, choice=8, prompt=2, cached=4)
        self.ends = EndReader(part=3, choice=11, prompt=3, cached=5, reason=2, matched=8)
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
        from smg_node.engines.contracts.media.sglang_fields import sglang_fields

        assert request.media is not None
        text = self._splice.written(request, bias_width)
        return with_fields(text, sglang_fields(request.media))

    def shareable(self, request: EngineRequest) -> Mapping[str, Tensor]:
        """See `MediaWire`."""
        return {}

    def _message(self, request: EngineRequest, _bias_width: int | None) -> pb.GenerateRequest:
        """Return the request as protobuf has it."""
        sampling = request.sampling
        message = pb.GenerateRequest(
            request_id=request.request_id, stream=request.stream, log_metrics=True
        )
        message.tokenized.input_ids.extend(request.ids)
        params = message.sampling_params
        params.temperature = 1.0 if sampling.temperature is None else sampling.temperature
        params.top_p = sampling.top_p or 1.0
        params.top_k = sampling.top_k or -1
        params.min_p = sampling.min_p or 0.0
        params.frequency_penalty = sampling.frequency_penalty
        params.presence_penalty = sampling.presence_penalty
        params.repetition_penalty = sampling.repetition_penalty or 1.0
        assert sampling.max_tokens is not None
        params.max_new_tokens = sampling.max_tokens
        params.min_new_tokens = sampling.min_tokens
        params.stop.extend(sampling.stop)
        params.stop_token_ids.extend(sampling.stop_token_ids)
        params.no_stop_trim = sampling.keep_stop
        params.skip_special_tokens = sampling.skip_special_tokens
        params.spaces_between_special_tokens = sampling.spaces_between_special_tokens
        params.ignore_eos = sampling.ignore_eos
        params.n = sampling.n
        for token_id, bias in sampling.logit_bias.items():
            params.logit_bias[str(token_id)] = bias
        # Zero would mean "from the start of the prompt".
        message.logprob_start_len = -1 if sampling.prompt_logprobs is None else 0
        if sampling.logprobs is not None or sampling.prompt_logprobs is not None:
            message.return_logprob = True
            message.top_logprobs_num = max(sampling.logprobs or 0, sampling.prompt_logprobs or 0)
        if sampling.constraint is not None:
            constrain(params, sampling.constraint)
            message.require_reasoning = sampling.constraint.begins == "after_thought"
        if sampling.adapter is not None:
            message.lora_id = sampling.adapter
        assert not request.transfer, "partners meet in a room"
        if request.room is not None:
            meet(message.disaggregated_params, request.room)
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
            context=whole(arguments.get("context_length")),  # only if its operator set one
            prompt_max=positive(about.max_req_input_len - 1),
            vocabulary=None,
            eos_ids=tuple(about.eos_token_ids),
            sampling_defaults=default_sampling(about.default_sampling_params_json),
            server_version=process.sglang_version,
            server=flattened(
                {
                    **arguments,
                    **declared_fields(
                        process, skip=("server_args", "scheduler_info", "start_time")
                    ),
                }
            ),
            block_size=whole(arguments.get("page_size")),
            running_max=whole(arguments.get("max_running_requests")),
            abilities=(
                None if arguments.get("enable_lora") else replace(self.abilities, adapters=False)
            ),
            role=scheduler_role(arguments),
            pairing=scheduler_pairing(arguments),
            instance=drawn_instance(
                process.start_time, arguments.get("random_seed", arguments.get("seed"))
            ),
            media=_media(about, arguments),
            ranks=scheduler_ranks(arguments),
        )

    def bias_width(self, model: bytes) -> int | None:
        """See `Wire`."""
        return None

    def loads_request(self) -> bytes:
        """See `Wire`."""
        data: bytes = pb.GetLoadsRequest(include=["core"]).SerializeToString()
        return data

    def loads(self, data: bytes) -> Sequence[Load]:
        """See `Wire`."""
        return scheduler_loads(parsed(pb.GetLoadsResponse, data).loads)


def _media(about: Any, arguments: Mapping[str, object]) -> MediaCard | None:
    # One that was started for language only has its pictures encoded by others, which it asks itself, by URL.
    if not about.supports_vision or arguments.get("language_only") is True:
        return None
    from smg_node.engines.contracts.media.cards import sglang_media

    return sglang_media(arguments)
