"""Contracts as published: the module, the service, and the field of each request parameter.

The messages come from `smg_grpc_proto`; this module has only names, so a field that the package
renames fails at start and not in the middle of a stream.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any, Final

from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.prompt_ids import PACKED_FROM_BYTES, PackedIds, cut_out
from smg_chaos.engine.protocol.wire import Field


@dataclass(frozen=True)
class Contract:
    """Names of one contract. `asks` maps "section.field" of a GenerateRequest to a field of
    `Asked`.
    """

    name: str
    module_name: str
    service: str
    prompt_ids: str
    asks: Mapping[str, str]
    lists: frozenset[str]
    """Fields of `Asked` that are repeated on the wire."""
    logprobs_switched: bool = False
    """Log probabilities are a switch, a number and a start, not one optional number."""
    logprobs_from: int = -1
    """Where they start if that is unset: -1 is after the prompt, and a plain field's zero is zero."""

    @cached_property
    def messages(self) -> ModuleType:
        """The generated message module."""
        return import_module(f"smg_grpc_proto.generated.{self.module_name}")

    @cached_property
    def _top(self) -> Mapping[str, str]:
        return {path: ours for path, ours in self.asks.items() if "." not in path}

    @cached_property
    def _sections(self) -> Mapping[str, Mapping[str, str]]:
        sections: dict[str, dict[str, str]] = {}
        for path, ours in self.asks.items():
            section, dot, name = path.partition(".")
            if dot:
                sections.setdefault(section, {})[name] = ours
        return sections

    @cached_property
    def _ids_fields(self) -> tuple[int, int]:
        """The field numbers of the tokenized input and of the ids in it."""
        outer = self.messages.GenerateRequest.DESCRIPTOR.fields_by_name["tokenized"]
        return outer.number, outer.message_type.fields_by_name[self.prompt_ids].number

    def _unpack(self, raw: bytes) -> Sequence[int]:
        message = self.messages.TokenizedInput.FromString(Field(self._ids_fields[1]).holding(raw))
        ids: Sequence[int] = getattr(message, self.prompt_ids)[:]
        return ids

    def read(self, body: bytes) -> Asked:
        """Return the parameters of a serialised GenerateRequest; ValueError for bytes that are
        none.
        """
        asked = Asked()
        asked.logprobs_from = self.logprobs_from
        if len(body) >= PACKED_FROM_BYTES:
            cut = cut_out(body, *self._ids_fields)
            if cut is not None:
                body, raw = cut
                asked.ids = PackedIds(raw, self._unpack)
        request = _parsed(self.messages.GenerateRequest, body)
        top, sections = self._top, self._sections
        for descriptor, value in request.ListFields():
            name = descriptor.name
            if name == "tokenized":
                asked.ids = getattr(value, self.prompt_ids)[:]
            elif name in _MEDIA:
                asked.media = {**asked.media, name: value}
            elif name in top:
                self._set(asked, top[name], value)
            elif name in sections:
                section = sections[name]
                for inner, inner_value in value.ListFields():
                    if inner.name in section:
                        self._set(asked, section[inner.name], inner_value)
        self._settle(asked)
        return asked

    def _settle(self, asked: Asked) -> None:
        """Give what was left unset, or is spelled as a switch, its meaning."""
        if asked.n < 1:
            asked.n = 1
        if self.logprobs_switched and asked.logprobs_on:
            asked.logprobs = asked.logprobs_top
            if asked.logprobs_from >= 0:
                asked.prompt_logprobs = asked.logprobs_top

    def ask(self, ids: Sequence[int], **fields: Any) -> bytes:
        """Return a serialised GenerateRequest for these ids; `fields` are fields of `Asked`.

        KeyError for a field that the contract does not have.
        """
        request = self.messages.GenerateRequest()
        request.tokenized.SetInParent()
        getattr(request.tokenized, self.prompt_ids).extend(ids)
        paths = {ours: path for path, ours in self.asks.items()}
        if self.logprobs_switched and fields.get("logprobs") is not None:
            fields |= {"logprobs_on": True, "logprobs_top": fields.pop("logprobs")}
            fields.setdefault("logprobs_from", -1)
        for ours, value in fields.items():
            target = request
            *sections, name = paths[ours].split(".")
            for section in sections:
                target = getattr(target, section)
            if ours in self.lists:
                getattr(target, name).extend(value)
            else:
                setattr(target, name, value)
        body: bytes = request.SerializeToString()
        return body

    def _set(self, asked: Asked, ours: str, value: Any) -> None:
        setattr(asked, ours, tuple(value) if ours in self.lists else value)


def _parsed(message: Any, body: bytes) -> Any:
    try:
        return message.FromString(body)
    except Exception as error:  # protobuf's DecodeError has a different home in every runtime
        raise ValueError("not a message of this contract") from error


def _sampling(section: str, *, length: str, **more: str) -> dict[str, str]:
    names = {
        "temperature": "temperature",
        "top_p": "top_p",
        "repetition_penalty": "repetition_penalty",
        "stop_token_ids": "stop_ids",
        "ignore_eos": "ignore_eos",
        length: "max_tokens",
        **more,
    }
    return {f"{section}.{theirs}": ours for theirs, ours in names.items()}


_SCHEDULER: Final = {
    "request_id": "request_id",
    "stream": "stream",
    "return_logprob": "logprobs_on",
    "top_logprobs_num": "logprobs_top",
    "logprob_start_len": "logprobs_from",
    "data_parallel_rank": "rank",
}
_MEDIA: Final = frozenset(
    {"mm_inputs", "extra_mm_inputs", "media_refs", "multimodal_input", "encode_bootstrap_info"}
)
"""Fields of pictures; what is in them is read elsewhere."""
_LISTS: Final = frozenset({"stop", "stop_ids"})


def _meeting(section: str) -> dict[str, str]:
    names = {
        "bootstrap_host": "room_host",
        "bootstrap_port": "room_port",
        "bootstrap_room": "room",
    }
    return {f"{section}.{theirs}": ours for theirs, ours in names.items()}


CONTRACTS: Final[Mapping[str, Contract]] = MappingProxyType(
    {
        "mlx": Contract(
            name="mlx",
            module_name="mlx_engine_pb2",
            service="mlx.grpc.engine.MlxEngine",
            prompt_ids="input_ids",
            asks={
                "request_id": "request_id",
                "stream": "stream",
                "text": "text",
                **_sampling(
                    "sampling_params", length="max_tokens", logprobs="logprobs", seed="seed"
                ),
            },
            lists=_LISTS,
        ),
        "vllm": Contract(
            name="vllm",
            module_name="vllm_engine_pb2",
            service="vllm.grpc.engine.VllmEngine",
            prompt_ids="input_ids",
            asks={
                "request_id": "request_id",
                "stream": "stream",
                "text": "text",
                "kv_transfer_params_json": "transfer",
                "data_parallel_rank": "rank",
                **_sampling(
                    "sampling_params",
                    length="max_tokens",
                    min_tokens="min_tokens",
                    stop="stop",
                    n="n",
                    seed="seed",
                    logprobs="logprobs",
                    prompt_logprobs="prompt_logprobs",
                ),
            },
            lists=_LISTS,
        ),
        "sglang": Contract(
            name="sglang",
            module_name="sglang_scheduler_pb2",
            service="sglang.grpc.scheduler.SglangScheduler",
            prompt_ids="input_ids",
            asks={
                **_SCHEDULER,
                **_meeting("disaggregated_params"),
                **_sampling(
                    "sampling_params",
                    length="max_new_tokens",
                    min_new_tokens="min_tokens",
                    stop="stop",
                    n="n",
                ),
            },
            lists=_LISTS,
            logprobs_switched=True,
            logprobs_from=0,
        ),
        "tokenspeed": Contract(
            name="tokenspeed",
            module_name="tokenspeed_scheduler_pb2",
            service="tokenspeed.grpc.scheduler.TokenSpeedScheduler",
            prompt_ids="input_ids",
            asks={
                **_SCHEDULER,
                **_meeting("kv_bootstrap_info"),
                **_sampling(
                    "sampling_params",
                    length="max_new_tokens",
                    min_new_tokens="min_tokens",
                    stop="stop",
                    n="n",
                    sampling_seed="seed",
                    no_stop_trim="keep_stop",
                ),
            },
            lists=_LISTS,
            logprobs_switched=True,
        ),
        "trtllm": Contract(
            name="trtllm",
            module_name="trtllm_service_pb2",
            service="trtllm.TrtllmService",
            prompt_ids="input_token_ids",
            asks={
                "request_id": "request_id",
                "streaming": "stream",
                "max_tokens": "max_tokens",
                "stop": "stop",
                "stop_token_ids": "stop_ids",
                "ignore_eos": "ignore_eos",
                "include_stop_token_in_output": "keep_stop",
                "sampling_config.temperature": "temperature",
                "sampling_config.top_p": "top_p",
                "sampling_config.repetition_penalty": "repetition_penalty",
                "sampling_config.min_tokens": "min_tokens",
                "sampling_config.num_return_sequences": "n",
                "sampling_config.seed": "seed",
                "output_config.logprobs": "logprobs",
                "output_config.prompt_logprobs": "prompt_logprobs",
            },
            lists=_LISTS,
        ),
    }
)
