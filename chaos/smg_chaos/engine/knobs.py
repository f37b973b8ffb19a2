"""Knobs of `smg-chaos engine`, each declared once: flag, type, default, range, help, group.

A knob is named like the field it sets: of `EngineSettings`, or of `Wanted` for the others. Times
are milliseconds on the command line and seconds inside.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from smg_chaos.engine.media.vision_models import Vision
from smg_chaos.engine.plans import SERVERS, Wanted
from smg_chaos.engine.scripts.scripts import NAMES
from smg_chaos.engine.settings import (
    Connector,
    EngineSettings,
    Events,
    Killers,
    LoadFailure,
    Loads,
    Pace,
    Role,
)

_MODEL: Final = "Which engine"
_SAYS: Final = "What it says"
_TIME: Final = "How fast"
_MEMORY: Final = "Slots and memory"
_PAIRS: Final = "Pairs and ranks"
_MEDIA: Final = "Pictures"
_ODD: Final = "Oddities and faults"
_PROCESS: Final = "Process"


@dataclass(frozen=True, slots=True)
class Knob:
    """One knob. `field` is the field it sets; `scale` turns the flag's value into the field's."""

    flag: str
    kind: Any
    says: str
    group: str
    field: str = ""
    scale: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    metavar: str | None = None

    @property
    def sets(self) -> str:
        """The field this knob sets."""
        return self.field or self.flag.replace("-", "_")

    def default(self) -> Any:
        """Return the field's own default, as the flag spells it."""
        home = _SETTINGS if self.of_settings else _WANTED
        value = getattr(home, self.sets)
        return value / self.scale if self.scale else value

    @property
    def of_settings(self) -> bool:
        """Whether the field belongs to the engine's settings, not to those around it."""
        return self.sets in EngineSettings.__dataclass_fields__ and self.sets != "vocabulary"

    def value(self, given: Any) -> Any:
        """Return the field's value for the flag's value."""
        return given * self.scale if self.scale else given


_SETTINGS: Final = EngineSettings()
_WANTED: Final = Wanted()
_MS: Final = 0.001

KNOBS: Final = (
    Knob(
        "contract",
        Literal["mlx", "vllm", "sglang", "trtllm", "tokenspeed", "openai"],
        "the contract to speak; openai: HTTP, with vLLM's manners behind it",
        _MODEL,
    ),
    Knob("servicer", Literal["python", "rust"], "which servicer of vLLM", _MODEL),
    Knob("model", str, "the name it serves its model under", _MODEL),
    Knob(
        "tokenizer",
        Path | None,
        "folder with a real tokenizer to serve; a tiny built-in one otherwise",
        _MODEL,
    ),
    Knob(
        "vocabulary",
        int | None,
        "vocabulary size it claims; 4160, or what the folder says",
        _MODEL,
        minimum=1,
    ),
    Knob("context", int, "prompt and answer, in tokens", _MODEL, minimum=16),
    Knob(
        "script",
        str,
        f"{', '.join(NAMES)}; any-length:LEAST,MORE,MOST; calls-once:TOOL ARGUMENTS; or a file: text, or ids in .ids or .json",
        _SAYS,
    ),
    Knob(
        "coalesce",
        int | None,
        "tokens per chunk, 1 never merges; otherwise as the contract does it",
        _SAYS,
        minimum=1,
    ),
    Knob("ttft-ms", float, "time before the first token", _TIME, "first_token_s", _MS, 0),
    Knob("itl-ms", float, "time between two tokens, 0: all at once", _TIME, "step_s", _MS, 0),
    Knob("jitter", float, "share by which steps vary", _TIME, minimum=0, maximum=1),
    Knob("growth", float, "share a step grows by per running request", _TIME, minimum=0),
    Knob(
        "prefill-tokens-per-s",
        float,
        "speed of prefill, cached blocks are free; 0: no time at all",
        _TIME,
        minimum=0,
    ),
    Knob(
        "pace",
        Pace,
        "lockstep: all requests step together, as in a real engine; each: a rhythm of its own",
        _TIME,
    ),
    Knob("slots", int, "requests that run at once", _MEMORY, minimum=1),
    Knob("waiting-max", int, "requests that may wait for a slot", _MEMORY, minimum=0),
    Knob("blocks", int, "KV blocks", _MEMORY, minimum=1),
    Knob("block-size", int | None, "tokens in a KV block (32, SGLang 16)", _MEMORY, minimum=1),
    Knob("cache", bool, "keep a prefix cache", _MEMORY),
    Knob(
        "role",
        Role,
        "work prompts off for others, draw answers for others, or do both; or encode pictures for "
        "those that work prompts off (tokenspeed)",
        _PAIRS,
    ),
    Knob(
        "kv-connector",
        Connector,
        "how it works in pairs: in rooms as SGLang does, or by a connector of vLLM; "
        "contract: rooms, and nixl for a vLLM with a role",
        _PAIRS,
    ),
    Knob(
        "bootstrap-port",
        int,
        "where others fetch from it, first port of the workers; 0: the system chooses",
        _PAIRS,
        minimum=0,
        maximum=65535,
    ),
    Knob("engine-id", str, "how connectors call it; made up otherwise", _PAIRS),
    Knob("pairing-protocol", str, "what it says a partner must say as well", _PAIRS),
    Knob(
        "pair-wait-ms",
        float,
        "how long it waits for its partner before it gives a request up",
        _PAIRS,
        "pair_wait_s",
        _MS,
        1,
    ),
    Knob(
        "kv-lease-ms",
        float,
        "how long it keeps for others what nobody fetches",
        _PAIRS,
        "kv_lease_s",
        _MS,
        1,
    ),
    Knob("kv-load-failure", LoadFailure, "what becomes of a request whose KV is gone", _PAIRS),
    Knob("decode-cache", bool, "keep a prefix cache where a decode engine has none", _PAIRS),
    Knob(
        "kv-store",
        Path | None,
        "folder that engines with the connector store share; this process only otherwise",
        _PAIRS,
    ),
    Knob(
        "ranks",
        int,
        "data-parallel ranks, each with slots, blocks and a cache of its own",
        _PAIRS,
        minimum=1,
        maximum=64,
    ),
    Knob(
        "vision",
        Vision,
        "see pictures and videos, and hear, as this family does; the built-in tokenizer gets its tokens and files",
        _MEDIA,
    ),
    Knob(
        "media-trusting",
        bool,
        "believe what it is sent of pictures, as vLLM does; otherwise what is wrong is refused and counted",
        _MEDIA,
    ),
    Knob(
        "media-normalizes",
        bool,
        "take 8-bit values of pictures and normalise them itself (vLLM, Qwen's families)",
        _MEDIA,
    ),
    Knob(
        "media-dtype",
        Literal["float32", "bfloat16", "float16"],
        "type of values that are normalised already",
        _MEDIA,
    ),
    Knob(
        "media-area-max",
        int,
        "most pixels of a resized picture in its processor's files (Qwen's families), 0: the family's own",
        _MEDIA,
        minimum=0,
    ),
    Knob("media-items", str, "most pictures and videos of a request", _MEDIA),
    Knob(
        "media-tokens-max",
        int,
        "most features of one picture, 0: it does not say",
        _MEDIA,
        minimum=0,
    ),
    Knob(
        "media-references",
        bool,
        "fetch pictures, videos and sound itself that it is given by URL (vLLM)",
        _MEDIA,
    ),
    Knob(
        "media-item-bytes-max",
        int,
        "most bytes of a data URL among them, as vLLM's SMG_VLLM_MM_MAX_ITEM_BYTES",
        _MEDIA,
        minimum=1,
    ),
    Knob("shared-memory", bool, "read tensors in this machine's /dev/shm", _MEDIA),
    Knob("events", Events, "KV events", _ODD),
    Knob("loads", Loads, "what it says of its load", _ODD),
    Knob("killers", Killers, "what a request does that engines die of", _ODD),
    Knob("fault", list[str], "a fault on purpose, see below", _ODD, field="faults", metavar="SPEC"),
    Knob("seed", int, "seed of everything random", _ODD),
    Knob("host", str, "address to listen on", _PROCESS),
    Knob("port", int, "first port, 0: the system chooses", _PROCESS, minimum=0, maximum=65535),
    Knob("workers", int, "engines, on consecutive ports", _PROCESS, minimum=1, maximum=1024),
    Knob(
        "server",
        Literal[SERVERS],
        "grpc: grpc.aio, as real servicers; h2: a lean one, for benchmarks",
        _PROCESS,
    ),
    Knob(
        "api-key",
        str,
        "every call has to carry this key (authorization: Bearer KEY); none: an open door",
        _PROCESS,
        metavar="KEY",
    ),
    Knob("tell-calls", bool, "print a line for each call: what, and from where", _PROCESS),
    Knob(
        "account",
        Path | None,
        "write a line of JSON to this file for each generation: when it came in, and when it ended",
        _PROCESS,
    ),
    Knob("report", Path | None, "write what was counted to this file at the end", _PROCESS),
    Knob(
        "until-input-ends",
        bool,
        "end when standard input does: with the process that holds its other end",
        _PROCESS,
    ),
)


def wanted(given: dict[str, Any]) -> Wanted:
    """Return the plan that the flags ask for; `given` maps each flag's name, underscored, to its
    value.
    """
    settings: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for knob in KNOBS:
        value = knob.value(given[knob.flag.replace("-", "_")])
        (settings if knob.of_settings else others)[knob.sets] = value
    return Wanted(settings=settings, **others)
