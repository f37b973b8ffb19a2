"""Settings of a simulated engine, each with its range."""

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from smg_chaos.engine.media.vision_models import MODELS, Vision
from smg_chaos.engine.protocol.servicer_behaviours import (
    AnswerBlocks,
    Bad,
    Coalesce,
    KvEvents,
    LoadRecords,
    Manners,
)
from smg_chaos.engine.protocol.servicers import manners_of

Pace: TypeAlias = Literal["lockstep", "each"]
Events: TypeAlias = Literal["contract", "none", "live", "memory"]
Loads: TypeAlias = Literal["contract", "pushed", "polled", "stale", "frozen", "absurd"]
Killers: TypeAlias = Literal["contract", "refuse", "hang", "die"]
Role: TypeAlias = Literal["regular", "prefill", "decode", "encode"]
Connector: TypeAlias = Literal["contract", "sglang", "nixl", "mooncake", "store"]
LoadFailure: TypeAlias = Literal["fail", "recompute"]

_POISON: Final = {"refuse": Bad.REFUSED, "hang": Bad.WEDGES, "die": Bad.EXITS}
_ALONE: Final = frozenset({"mlx", "trtllm"})
_IN_ROOMS: Final = frozenset({"sglang", "tokenspeed"})
_KV_EVENTS: Final = {
    "none": KvEvents.NONE,
    "live": KvEvents.LIVE,
    "memory": KvEvents.WITH_MEMORY,
}


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings of a simulated engine; "contract" means: as the imitated servicer does it.

    `step_s` is the time between two tokens of a request, 0 for as fast as possible; it varies by
    `jitter` (a share of itself) and grows by `growth` (a share of itself per running request).
    `prefill_tokens_per_s` 0 makes prefill free. `coalesce` is None (contract), 1 (never) or how
    many tokens share a chunk. `vocabulary` is what the engine claims; `context` counts prompt and
    answer.

    `kv_connector` is how it works on one request with another engine: in rooms of the first one
    (`sglang`), or as a connector of vLLM's; "contract" is rooms for SGLang and TokenSpeed, and nixl
    for a vLLM with a role. It waits `pair_wait_s` for its partner, and keeps blocks that no engine
    fetches for `kv_lease_s`. What a connector cannot fetch fails, or is computed anew. `slots` and
    `blocks` are those of each of its `ranks`.

    `vision` names the family of a model that sees pictures. What is wrong with them is refused, and counted, unless it
    is `media_trusting`. The other fields of media are what it says of itself, where its contract has words for it.
    """

    contract: str = "vllm"
    servicer: str = "python"
    model: str = "simulated"
    context: int = 2048
    vocabulary: int = 4160
    slots: int = 32
    waiting_max: int = 65536
    blocks: int = 512
    block_size: int | None = None
    first_token_s: float = 0.0
    step_s: float = 0.005
    jitter: float = 0.0
    growth: float = 0.0
    prefill_tokens_per_s: float = 20_000.0
    pace: Pace = "lockstep"
    coalesce: int | None = None
    cache: bool = True
    events: Events = "contract"
    loads: Loads = "contract"
    killers: Killers = "contract"
    seed: int = 0
    role: Role = "regular"
    kv_connector: Connector = "contract"
    bootstrap_port: int = 8998
    engine_id: str = ""
    pairing_protocol: str = ""
    pair_wait_s: float = 300.0
    kv_lease_s: float = 30.0
    kv_load_failure: LoadFailure = "fail"
    decode_cache: bool = False
    ranks: int = 1
    vision: Vision = ""
    media_trusting: bool = False
    media_normalizes: bool = True
    media_dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    media_area_max: int = 0
    media_items: str = "image=999,video=999"
    media_tokens_max: int = 16384
    media_references: bool = False
    media_item_bytes_max: int = 33_554_432
    shared_memory: bool = False

    def __post_init__(self) -> None:
        assert 0 <= self.jitter <= 1, "jitter is a share"
        assert self.slots >= 1
        assert self.step_s >= 0
        assert self.first_token_s >= 0
        assert self.prefill_tokens_per_s >= 0
        assert self.pair_wait_s > 0
        assert self.kv_lease_s > 0
        assert self.ranks >= 1
        self._check_pairing()
        if self.vision and self.contract == "mlx":
            raise ValueError("the contract mlx has no words for pictures")
        if self.blocks * self.block_tokens() < self.context:
            raise ValueError(
                f"{self.blocks} blocks of {self.block_tokens()} tokens cannot hold one request of "
                f"the context's {self.context} tokens"
            )

    def _check_pairing(self) -> None:
        if self.contract in _ALONE and (self.role != "regular" or self.kv_connector != "contract"):
            raise ValueError(f"the contract {self.contract} has no words for working in pairs")
        if self.role == "encode" and self.contract != "tokenspeed":
            raise ValueError(
                f"the contract {self.contract} has no words for encoding pictures for others"
            )
        if self.role == "encode" and not self.vision:
            raise ValueError(
                "an engine that encodes pictures needs a model that sees some: --vision"
            )
        if self.contract in _ALONE and self.ranks > 1:
            raise ValueError(f"the contract {self.contract} has no word for a rank")
        if self.contract in _IN_ROOMS and self.kv_connector not in ("contract", "sglang"):
            raise ValueError(f"{self.kv_connector} is a connector of vLLM, not of {self.contract}")
        if self.style() == "sglang" and self.role == "regular" and self.contract not in _IN_ROOMS:
            raise ValueError("an engine that meets others in rooms needs a role")

    def style(self) -> Literal["", "sglang", "nixl", "mooncake", "store"]:
        """Return how it works on one request with another engine, "" for not at all."""
        if self.kv_connector != "contract":
            return self.kv_connector
        if self.contract in _IN_ROOMS:
            return "sglang"
        return "nixl" if self.role != "regular" else ""

    def caches(self) -> bool:
        """Return whether it keeps a prefix cache: where rooms are, the decode engine has none by default."""
        bare = self.role == "decode" and self.style() == "sglang" and not self.decode_cache
        return self.cache and not bare

    def normalizes(self) -> bool:
        """Return whether it takes 8-bit values of pictures: only vLLM does so, for some families."""
        model = MODELS.get(self.vision)
        known = model is not None and model.normalizes and self.contract == "vllm"
        return known and self.media_normalizes

    def items_max(self) -> dict[str, int]:
        """Return how many pictures and videos a request may have."""
        words = [word.partition("=") for word in self.media_items.split(",") if word]
        return {name: int(number) for name, _, number in words}

    def block_tokens(self) -> int:
        """Return how many tokens a KV block holds."""
        return self.block_size or manners_of(self.contract, self.servicer).kv_block

    def manners(self) -> Manners:
        """Return the servicer's behaviours with these settings laid over them."""
        manners = manners_of(self.contract, self.servicer)
        if self.coalesce is not None:
            manners = replace(manners, coalesce=Coalesce.NEVER)
        if self.events != "contract" and manners.kv_events is not KvEvents.NONE:
            manners = replace(manners, kv_events=_KV_EVENTS[self.events])
        if self.loads == "polled":
            manners = replace(manners, load_records=LoadRecords.NONE)
        if self.loads == "pushed" and manners.kv_events is not KvEvents.NONE:
            manners = replace(manners, load_records=LoadRecords.FROM_START)
        if self.killers != "contract":
            poison = _POISON[self.killers]
            manners = replace(manners, no_ids=poison, unknown_id=poison)
            if manners.long_prompt is not Bad.ACCEPTED:
                manners = replace(manners, long_prompt=poison)
        return manners

    def stores_answers_late(self) -> bool:
        """Return whether an answer's blocks are published only when its request ends."""
        return self.manners().answer_blocks is AnswerBlocks.AT_END
