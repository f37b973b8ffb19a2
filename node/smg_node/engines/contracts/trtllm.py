"""TensorRT-LLM (trtllm) contract, `trtllm.TrtllmService`: encodes requests and decodes responses.
Pure.

`max_tokens` and a beam width of 1 are required; temperature is always sent, because an engine that is
told nothing decodes greedily. Stop ids leave the answer unless `include_stop_token_in_output`, which is
always sent: a choice's ids are complete here. A guide without text is ignored, so "any JSON"
gets one. Its `vocab_size` is the tokenizer's without added tokens: no bound for a prompt, but exactly
the width a bias must have. Its servers forbid pings on a silent stream oftener than every five minutes,
and have no standard health service. A request can be sent to work with a partner, but what its context phase
leaves has no field in an answer, so that no pair can be made over this contract.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

from smg_grpc_proto.generated import trtllm_service_pb2 as pb

from smg_node.core.errors import invalid, unsupported
from smg_node.core.generation.request import Constraint, Sampling
from smg_node.engines.chunk import IdLogprob
from smg_node.engines.contracts.common_fields import matched_stop
from smg_node.engines.contracts.engine_metadata import declared_fields, flattened, positive
from smg_node.engines.contracts.grammar_mapping import choices_pattern
from smg_node.engines.contracts.pairing_rules import assert_alone
from smg_node.engines.contracts.request_template import Splice
from smg_node.engines.contracts.sampling_rules import SEED_64_BITS, known_logprob
from smg_node.engines.contracts.wire import NOWHERE, Message, Places, no_loads, parsed
from smg_node.engines.engine import Abilities, Contract, EngineRequest, MediaCard, ModelCard
from smg_node.engines.load import Load
from smg_node.engines.transport.message_pieces import MessagePieces
from smg_node.media.engine_media import Tensor
from smg_node.native.stream_messages import ChunkReader, EndReader

_FILES: Final = MediaCard(ways=frozenset({"encoded"}))
"""Whether its model sees pictures has no field; its config.json tells."""


class TrtllmWire:
    """See `Wire`."""

    contract = Contract.TRTLLM
    service = "trtllm.TrtllmService"
    ping_interval_min_s = 330.0
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
        adapters=True,
        penalties=True,
        loads=False,
        kv_events=True,
    )

    def __init__(self) -> None:
        self.chunks = ChunkReader(part=2, choice=2, prompt=3, cached=5)
        self.ends = EndReader(part=3, choice=2, prompt=5, cached=7, reason=3, matched=13)
        self._splice = Splice(
            pb.GenerateRequest, self._message, ids="input_token_ids", params="", limit="max_tokens"
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
        from smg_node.engines.contracts.media.trtllm_fields import trtllm_fields

        assert request.media is not None
        text = self._splice.written(request, bias_width)
        return with_fields(text, trtllm_fields(request.media))

    def shareable(self, request: EngineRequest) -> Mapping[str, Tensor]:
        """See `MediaWire`."""
        return {}

    def _message(self, request: EngineRequest, bias_width: int | None) -> pb.GenerateRequest:
        """Return the request as protobuf has it."""
        sampling = request.sampling
        assert sampling.max_tokens is not None
        assert_alone(request)
        message = pb.GenerateRequest(
            request_id=request.request_id,
            streaming=request.stream,
            max_tokens=sampling.max_tokens,
            ignore_eos=sampling.ignore_eos,
            include_stop_token_in_output=True,
        )
        message.tokenized.input_token_ids.extend(request.ids)
        message.stop.extend(sampling.stop)
        message.stop_token_ids.extend(sampling.stop_token_ids)
        _draw(message.sampling_config, sampling)
        output = message.output_config
        output.exclude_input_from_output = True
        if sampling.logprobs is not None:
            output.logprobs = sampling.logprobs
        if sampling.prompt_logprobs is not None:
            output.prompt_logprobs = sampling.prompt_logprobs
        if sampling.constraint is not None:
            _constrain(message.guided_decoding, sampling.constraint)
        if sampling.logit_bias:
            path = sampling.path("logit_bias")
            message.embedding_bias.extend(bias_row(sampling.logit_bias, bias_width, path))
        if sampling.adapter is not None:
            message.lora_config.task_id = _task_id(sampling.adapter, sampling.path("adapter"))
        return message

    def read(self, data: bytes) -> Message | None:
        """See `Wire`."""
        response = parsed(pb.GenerateResponse, data)
        which = response.WhichOneof("response")
        if which == "chunk":
            part = response.chunk
            found = Message(part.sequence_index, tuple(part.token_ids))
        elif which == "complete":
            part = response.complete
            found = Message(
                part.sequence_index,
                tuple(part.output_token_ids),
                final=True,
                reason=part.finish_reason,
                matched=matched_stop(part),
            )
            found.prompt_logprobs = _logprobs(part.prompt_logprobs)
        else:
            return None
        if part.prompt_tokens:
            found.prompt_tokens = part.prompt_tokens
            found.cached_tokens = part.cached_tokens
        if part.logprobs:
            found.logprobs = _logprobs(part.logprobs)
        return found

    def abort(self, request_id: str) -> bytes:
        """See `Wire`."""
        data: bytes = pb.AbortRequest(request_id=request_id).SerializeToString()
        return data

    def healthy(self, data: bytes) -> bool:
        """See `Wire`."""
        return bool(parsed(pb.HealthCheckResponse, data).status == "OK")

    def card(self, model: bytes, server: bytes) -> ModelCard:
        """See `Wire`."""
        about = parsed(pb.GetModelInfoResponse, model)
        process = parsed(pb.GetServerInfoResponse, server)
        return ModelCard(
            contract=self.contract,
            model=about.model_id,
            model_path=about.model_id,
            context=positive(about.max_seq_len),
            prompt_max=positive(about.max_input_len),
            vocabulary=None,
            eos_ids=(),
            server_version=process.version,
            server=flattened(declared_fields(process)),
            running_max=positive(about.max_batch_size),
            media=_FILES,
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


def _draw(config: Any, sampling: Sampling) -> None:
    """Set how tokens are drawn."""
    config.beam_width = 1
    config.num_return_sequences = sampling.n
    config.temperature = 1.0 if sampling.temperature is None else sampling.temperature
    config.top_p = sampling.top_p or 1.0
    if sampling.top_k is not None:
        config.top_k = max(sampling.top_k, 0)
    if sampling.min_p:
        config.min_p = sampling.min_p
    if sampling.min_tokens:
        config.min_tokens = sampling.min_tokens
    config.repetition_penalty = sampling.repetition_penalty or 1.0
    if sampling.presence_penalty:
        config.presence_penalty = sampling.presence_penalty
    if sampling.frequency_penalty:
        config.frequency_penalty = sampling.frequency_penalty
    if sampling.seed is not None:
        config.seed = sampling.seed & SEED_64_BITS


def bias_row(bias: Mapping[int, float], width: int | None, where: str) -> list[float]:
    """Return a bias for each token of the vocabulary; a client's error where there is no such row."""
    if width is None:
        raise unsupported("this engine does not say how wide a logit bias must be", where)
    row = [0.0] * width
    for token_id, value in bias.items():
        if not 0 <= token_id < width:
            raise invalid(f"this engine can bias ids below {width} only, not {token_id}", where)
        row[token_id] = value
    return row


def _task_id(adapter: str, where: str) -> int:
    """Return the number TensorRT-LLM knows an adapter by."""
    if adapter.isascii() and adapter.isdecimal() and 0 < int(adapter[:19]) < 2**63:
        return int(adapter[:19])
    raise invalid("this engine knows adapters by number only", where)


def _constrain(guide: Any, constraint: Constraint) -> None:
    kinds = pb.GuidedDecodingParams
    match constraint.kind:
        case "json_object":
            guide.guide_type, guide.guide = kinds.GUIDE_TYPE_JSON, "json"
        case "json_schema":
            guide.guide_type, guide.guide = kinds.GUIDE_TYPE_JSON_SCHEMA, constraint.value
        case "regex":
            guide.guide_type, guide.guide = kinds.GUIDE_TYPE_REGEX, constraint.value
        case "ebnf":
            guide.guide_type, guide.guide = kinds.GUIDE_TYPE_EBNF_GRAMMAR, constraint.value
        case "structural_tag":
            guide.guide_type, guide.guide = kinds.GUIDE_TYPE_STRUCTURAL_TAG, constraint.value
        case "choice":
            guide.guide_type, guide.guide = kinds.GUIDE_TYPE_REGEX, choices_pattern(constraint)


def _logprobs(rows: Iterable[Any]) -> tuple[IdLogprob, ...]:
    return tuple(
        IdLogprob(
            row.token_id,
            known_logprob(row.logprob),
            tuple((one.token_id, known_logprob(one.logprob)) for one in row.top_logprobs),
        )
        for row in rows
    )
