"""Model facts: fields of model and server info messages, per contract, wrong ones of real servicers
included.

One table a contract and answer: field name to a function of the engine. A field that is not here is
left out by the real servicer as well.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from smg_chaos.engine.media.shared_tensors import shared_namespace
from smg_chaos.engine.protocol.servicer_behaviours import Flavour

if TYPE_CHECKING:
    from smg_chaos.engine.simulator.engine import Engine

Fact: TypeAlias = "Callable[[Engine, float], Any]"
Table: TypeAlias = Mapping[str, Fact]

# SGLang's servicer reports these whatever model runs.
_FALLBACK_VOCABULARY: Final = 128256
_FALLBACK_BOS: Final = 1
# What an engine says whose rooms are nowhere, because nobody looks for them.
_BOOTSTRAP_PORT: Final = 8998


def _path(engine: "Engine", now_s: float) -> str:
    return engine.bundle.path


def _model(engine: "Engine", now_s: float) -> str:
    return engine.model


def _context(engine: "Engine", now_s: float) -> int:
    return engine.settings.context


def _longest_prompt(engine: "Engine", now_s: float) -> int:
    return engine.settings.context - engine.manners.prompt_reserve


def _vocabulary(engine: "Engine", now_s: float) -> int:
    return engine.vocabulary


def _eos(engine: "Engine", now_s: float) -> list[int]:
    return list(engine.bundle.eos_ids)


def _all_eos(engine: "Engine", now_s: float) -> list[int]:
    return [*engine.bundle.eos_ids, *engine.bundle.further_eos_ids]


def _pool_tokens(engine: "Engine", now_s: float) -> int:
    return engine.table.count * engine.table.size


def _slots(engine: "Engine", now_s: float) -> int:
    return engine.settings.slots


def _active(engine: "Engine", now_s: float) -> int:
    return engine.active


def _uptime_s(engine: "Engine", now_s: float) -> float:
    return now_s - engine.started_s


class _Moment(int):
    """Seconds since the epoch, for a google.protobuf.Timestamp."""


def _started(engine: "Engine", now_s: float) -> _Moment:
    return _Moment(engine.wall_s(engine.started_s))


def _last_output(engine: "Engine", now_s: float) -> float:
    outputs_s = [meter.last_output_s for meter in engine.meters if meter.last_output_s is not None]
    return engine.wall_s(max(outputs_s, default=engine.started_s))


def _config(key: str, default: Any) -> Fact:
    def read(engine: "Engine", now_s: float) -> Any:
        value = engine.bundle.model_config.get(key, default)
        return default if value is None else value

    return read


def _always(value: Any) -> Fact:
    def read(engine: "Engine", now_s: float) -> Any:
        return value

    return read


def _sglang_arguments(engine: "Engine", now_s: float) -> dict[str, Any]:
    return {
        "model_path": engine.bundle.path,
        "served_model_name": engine.model,
        "tokenizer_path": engine.bundle.path,
        "context_length": engine.settings.context,
        "page_size": engine.table.size,
        "max_running_requests": engine.settings.slots,
        "max_total_tokens": engine.table.count * engine.table.size,
        "tp_size": 1,
        "dp_size": engine.settings.ranks,
        **_disaggregation(engine),
        "device": "cpu",
        **({"dtype": engine.settings.media_dtype} if engine.settings.vision else {}),
        "random_seed": engine.settings.seed,
        "reasoning_parser": None,
        "api_key": None,
        "constrained_decoding_start": "first_token",
        "grammar_backend": "xgrammar",
    }


def _disaggregation(engine: "Engine") -> dict[str, Any]:
    """Return the disaggregation fields of engines that pair up by rooms, whether they do so or
    not.
    """
    role, protocol = engine.settings.role, engine.settings.pairing_protocol
    return {
        "disaggregation_mode": "null" if role == "regular" else role,
        "disaggregation_bootstrap_port": engine.pairs.where[1] or _BOOTSTRAP_PORT,
        "disaggregation_transfer_backend": "mooncake",
        **({"pairing_protocol": protocol} if protocol else {}),
    }


def _sees(engine: "Engine") -> bool:
    return bool(engine.settings.vision)


def _vision(engine: "Engine", now_s: float) -> bool:
    return _sees(engine)


def _fetches(engine: "Engine") -> bool:
    return _sees(engine) and engine.settings.media_references


def _media_dtype(engine: "Engine", now_s: float) -> str:
    return engine.settings.media_dtype


def _namespace(engine: "Engine", now_s: float) -> str:
    return shared_namespace() if engine.settings.shared_memory else _NOWHERE


_NOWHERE: Final = "00000000-0000-0000-0000-000000000000:0"
_CONNECTORS: Final = {
    "nixl": "NixlConnector",
    "mooncake": "MooncakeConnector",
    "store": "ExampleConnector",
}
_KV_ROLES: Final = {"prefill": "kv_producer", "decode": "kv_consumer", "regular": "kv_both"}


def _connector(engine: "Engine", now_s: float) -> str:
    return _CONNECTORS.get(engine.settings.style(), "")


def _kv_role(engine: "Engine", now_s: float) -> str:
    return _KV_ROLES[engine.settings.role] if _connector(engine, now_s) else ""


def _engine_id(engine: "Engine", now_s: float) -> str:
    return engine.pairs.engine_id if _connector(engine, now_s) else ""


def _pairing_protocol(engine: "Engine", now_s: float) -> str:
    return engine.settings.pairing_protocol


def _ranks(engine: "Engine", now_s: float) -> int:
    return engine.settings.ranks


def _scheduler(engine: "Engine", now_s: float) -> dict[str, Any]:
    return {
        "status": "ready",
        "max_total_num_tokens": engine.table.count * engine.table.size,
        "max_req_input_len": engine.settings.context - engine.manners.prompt_reserve,
        **({"shm_namespace_id": _namespace(engine, now_s)} if engine.settings.vision else {}),
    }


def _tokenspeed_arguments(engine: "Engine", now_s: float) -> dict[str, Any]:
    return {
        "model": engine.bundle.path,
        "served_model_name": engine.model,
        "max_model_len": engine.settings.context,
        "block_size": engine.table.size,
        "max_num_seqs": engine.settings.slots,
        **_disaggregation(engine),
        **({"dp_size": engine.settings.ranks} if engine.settings.ranks > 1 else {}),
        "constrained_decoding_start": "first_token",
    }


_VLLM_MODEL: Final[Table] = {
    "model_path": _path,
    "is_generation": _always(True),
    "supports_vision": _vision,
    "max_context_length": _context,
    "vocab_size": _vocabulary,
    "served_model_name": _model,
    "tokenizer_path": _path,
    "model_type": _config("model_type", ""),
    "architectures": _config("architectures", []),
    "eos_token_ids": _eos,
    "pad_token_id": _config("pad_token_id", 0),
    "bos_token_id": _config("bos_token_id", 0),
    "max_req_input_len": _context,
}
_VLLM_SERVER: Final[Table] = {
    "kv_connector": _connector,
    "kv_role": _kv_role,
    "kv_engine_id": _engine_id,
    "pairing_protocol": _pairing_protocol,
    "data_parallel_size": _ranks,
    "shm_namespace_id": _namespace,
    "kv_cache_dtype": _always("auto"),
    "block_size": lambda engine, now_s: engine.table.size,
    "model_dtype": _always("torch.float32"),
    "multimodal_encoder_dtype": _media_dtype,
    "mm_device_do_normalize": lambda engine, now_s: engine.settings.normalizes(),
    "mm_item_limits": lambda engine, now_s: engine.settings.media_items if _sees(engine) else "",
    "mm_encoder_budget": lambda engine, now_s: (
        engine.settings.media_tokens_max if _sees(engine) else 0
    ),
    "mm_processor": lambda engine, now_s: "inprocess" if _fetches(engine) else "",
    "mm_media_ref_schemes": lambda engine, now_s: "http,https,data" if _fetches(engine) else "",
    "max_num_seqs": _slots,
    "constrained_decoding_start": _always("first_token"),
}

MODEL_FACTS: Final[Mapping[Flavour, Table]] = MappingProxyType(
    {
        Flavour.MLX: {
            "model_path": _path,
            "is_generation": _always(True),
            "max_context_length": _context,
            "vocab_size": _vocabulary,
            "served_model_name": _path,
            "model_type": _config("model_type", ""),
            "architectures": _config("architectures", []),
            "eos_token_ids": _eos,
            "pad_token_id": _config("pad_token_id", 0),
            "bos_token_id": _config("bos_token_id", 0),
            "max_req_input_len": _context,
        },
        Flavour.VLLM: _VLLM_MODEL,
        Flavour.VLLM_RUST: {**_VLLM_MODEL, "eos_token_ids": _all_eos},
        Flavour.SGLANG: {
            "model_path": _path,
            "tokenizer_path": _path,
            "is_generation": _always(True),
            "weight_version": _always("default"),
            "supports_vision": _vision,
            "served_model_name": _model,
            "max_context_length": _pool_tokens,
            "vocab_size": _always(_FALLBACK_VOCABULARY),
            "model_type": _config("model_type", ""),
            "architectures": _config("architectures", []),
            "bos_token_id": _always(_FALLBACK_BOS),
            "max_req_input_len": _longest_prompt,
            "id2label_json": _always('{"0": "LABEL_0", "1": "LABEL_1"}'),
            "num_labels": _always(2),
        },
        Flavour.TRTLLM: {
            "model_id": _path,
            "max_input_len": _longest_prompt,
            "max_seq_len": _context,
            "vocab_size": _vocabulary,
        },
        Flavour.TOKENSPEED: {
            "model_path": _path,
            "tokenizer_path": _path,
            "served_model_name": _model,
            "model_type": _config("model_type", ""),
            "architectures": _config("architectures", []),
            "max_context_length": _context,
            "max_req_input_len": _longest_prompt,
            "vocab_size": _vocabulary,
            "eos_token_ids": _eos,
            "pad_token_id": _config("pad_token_id", 0),
            "bos_token_id": _config("bos_token_id", 0),
            "weight_version": _always("default"),
            "model_dtype": _always("float32"),
            "supports_vision": _vision,
            "supports_multimodal": _vision,
            "supported_modalities": lambda engine, now_s: [1] if _sees(engine) else [],
            "multimodal_encoder_dtype": _media_dtype,
        },
    }
)

SERVER_FACTS: Final[Mapping[Flavour, Table]] = MappingProxyType(
    {
        Flavour.MLX: {
            "server_type": _always("mlx-grpc"),
            "active_requests": _active,
            "uptime_seconds": _uptime_s,
        },
        Flavour.VLLM: _VLLM_SERVER,
        Flavour.VLLM_RUST: {
            **_VLLM_SERVER,
            "server_type": _always("vllm-grpc"),
            "active_requests": _active,
            "uptime_seconds": _uptime_s,
        },
        Flavour.SGLANG: {
            "server_args": _sglang_arguments,
            "scheduler_info": _scheduler,
            "active_requests": _active,
            "last_receive_timestamp": _last_output,
            "uptime_seconds": _uptime_s,
            "start_time": _started,
            "sglang_version": _always("0.5.23"),
            "server_type": _always("grpc"),
            "max_total_num_tokens": _pool_tokens,
        },
        Flavour.TRTLLM: {
            "version": _always("1.3.0"),
            "backend": _always("tensorrt-llm"),
            "tensor_parallel_size": _always(1),
            "pipeline_parallel_size": _always(1),
            "context_parallel_size": _always(1),
            "world_size": _always(1),
        },
        Flavour.TOKENSPEED: {
            "server_args": _tokenspeed_arguments,
            "scheduler_info": _scheduler,
            "active_requests": _active,
            "uptime_seconds": _uptime_s,
            "max_total_num_tokens": _pool_tokens,
            "start_time": _started,
            "tokenspeed_version": _always("0.1.0"),
        },
    }
)

# The version GetLoads reports.
VERSIONS: Final[Mapping[Flavour, str]] = MappingProxyType(
    {
        Flavour.VLLM: "0.32.0",
        Flavour.VLLM_RUST: "0.32.0",
        Flavour.SGLANG: "0.5.23",
        Flavour.TOKENSPEED: "tokenspeed",
    }
)


def told(message: Any, table: Table, engine: "Engine", now_s: float) -> bytes:
    """Return `message` with the table's facts in it, serialised."""
    for name, fact in table.items():
        value = fact(engine, now_s)
        if isinstance(value, dict):
            getattr(message, name).update(value)  # a google.protobuf.Struct
        elif isinstance(value, _Moment):
            getattr(message, name).FromSeconds(value)
        elif isinstance(value, list):
            getattr(message, name).extend(value)
        else:
            setattr(message, name, value)
    body: bytes = message.SerializeToString()
    return body
