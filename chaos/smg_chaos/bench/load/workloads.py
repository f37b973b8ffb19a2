"""Workloads of the benchmark, one row each: prompts, load shape, and what is counted.

Closed loops measure what a request costs; they say little about latency, which is their own queue.
Times to the first token come from "idle" (one client) and "mixed" (everything at once).
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec.structs import replace

from smg_chaos.bench.load.flash.flash_workloads import FLASH, flash_crowds
from smg_chaos.bench.load.job import Api, Flow, Prompt
from smg_chaos.bench.load.script import Spoken
from smg_chaos.bench.load.tools.tool_runs import PICTURES, SEER
from smg_chaos.bench.load.tools.tool_workloads import tools
from smg_chaos.bench.load.workload import (
    ROUND,
    STEP_MS,
    STREAMS,
    Behind,
    Flows,
    Load,
    Workload,
    closed_flow,
    first_prompt,
    held_flow,
)
from smg_chaos.bench.options import FlashLoad, ToolLoad

BURST_TOKENS: Final = 129
_SHORT_TOKENS: Final = 8
_TURN_TOKENS: Final = 32
_DOCUMENT_BYTES: Final = 32 * 1024
_BYTES_PER_TOKEN: Final = 2.6
_PROMPT_CLIENTS: Final = 8
"""Fewer than of short chats, or their texts would be most of the memory that is measured."""
_PICTURE_CLIENTS: Final = 2
"""Pictures are worked on in parallel anyway, and each is a megabyte of request."""
_MIXED_STREAMS: Final = 96
_MIXED_READERS: Final = 4
_MIXED_PROBES_PER_S: Final = 60.0
PICTURE_STREAMS: Final = 64
_MIXED_LONGER: Final = 8
"""Times what others take: some two thousand probes a round. The 99th percentile of 300 is the third of a few that were
unlucky, and where a machine is still for a fifth of a second, that makes a dozen slow ones at once."""
DISTINCT: Final = 5_000
MESSAGES_STREAMS: Final = 64
VENDOR_STREAMS: Final = 16
"""As many as a proxy of one process keeps the pace of."""
# Streams of paced workloads outlast what is measured by this much, however late all is.
SLACK_S: Final = 1.0


def _short(
    tokens: int, *, stream: bool, connections: int | None = None, api: Api = "chat"
) -> Flows:
    def flows(load: Load, script: Spoken | None) -> Sequence[Flow]:
        prompt = Prompt(kind="short", first=first_prompt(load))
        one = closed_flow(
            load, script, prompt, tokens=tokens, stream=stream, connections=connections, api=api
        )
        return [one]

    return flows


def _cycled(load: Load, script: Spoken | None) -> Sequence[Flow]:
    prompt = Prompt(kind="cycled", first=first_prompt(load), sizes=load.long_sizes)
    return [closed_flow(load, script, prompt, tokens=1, stream=False)]


def _tail(load: Load, script: Spoken | None) -> Sequence[Flow]:
    prompt = Prompt(kind="tail", first=first_prompt(load), sizes=load.long_sizes[:1])
    return [closed_flow(load, script, prompt, tokens=1, stream=False)]


def _document(load: Load) -> Prompt:
    return Prompt(kind="document", first=first_prompt(load), sizes=(_DOCUMENT_BYTES,))


def _documents(load: Load, script: Spoken | None) -> Sequence[Flow]:
    return [closed_flow(load, script, _document(load), tokens=1, stream=False)]


def _distinct(load: Load, script: Spoken | None) -> Sequence[Flow]:
    return [
        replace(closed_flow(load, script, _document(load), tokens=1, stream=False), most=DISTINCT)
    ]


def _turns(load: Load, script: Spoken | None) -> Sequence[Flow]:
    said = script.text(_TURN_TOKENS) if script else "I do not know."
    prompt = Prompt(kind="turns", first=first_prompt(load), said=said)
    return [closed_flow(load, script, prompt, tokens=_TURN_TOKENS, stream=False)]


def paced(streams: int, api: Api = "chat") -> Workload:
    """Return the workload of so many streams, a token every 20 ms in each."""

    def flows(load: Load, script: Spoken | None) -> Sequence[Flow]:
        return [held_flow(load, script, streams, "main", api)]

    says = f"token of {streams} streams, one every {STEP_MS} ms in each"
    if api == "chat":
        return Workload(f"paced-{streams}", says, "token", flows, paced=True)
    return Workload(
        f"{api}-paced-{streams}", f"{api.capitalize()}: {says}", "token", flows, paced=True
    )


def clients(count: int) -> Workload:
    """Return the workload of so many clients that send short prompts, one after the other."""
    flows = _short(_SHORT_TOKENS, stream=False, connections=count)
    return Workload(f"clients-{count}", f"short chats of {count} clients", "request", flows)


def prompts(tokens: int) -> Workload:
    """Return the workload of prompts of about so many tokens, each of them new."""

    def flows(load: Load, script: Spoken | None) -> Sequence[Flow]:
        size = int(tokens * _BYTES_PER_TOKEN)
        prompt = Prompt(kind="document", first=first_prompt(load), sizes=(size,))
        return [
            closed_flow(load, script, prompt, tokens=1, stream=False, connections=_PROMPT_CLIENTS)
        ]

    says = f"prompt of about {tokens:,} tokens, never seen"
    return Workload(f"prompts-{tokens}", says, "request", flows)


def _mixed(load: Load, script: Spoken | None) -> Sequence[Flow]:
    short = Prompt(kind="short", first=first_prompt(load) + ROUND // 2)
    readers = closed_flow(
        load, script, _document(load), tokens=1, stream=False, name="documents",
        connections=_MIXED_READERS,
    )  # fmt: skip
    probes = Flow(
        name="probes",
        shape="open",
        connections=64,
        tokens=1,
        stream=True,
        prompt=short,
        rate_per_s=_MIXED_PROBES_PER_S,
        text=None if script is None else script.text(1),
    )
    return [held_flow(load, script, _MIXED_STREAMS, "streams"), readers, probes]


def _picture(
    name: str, width: int, height: int, *, known: bool = False, behind: Behind = "engine"
) -> Workload:
    """Return the workload of chats about pictures of that size."""

    def flows(load: Load, script: Spoken | None) -> Sequence[Flow]:
        kind: Literal["picture", "known picture"] = "known picture" if known else "picture"
        prompt = Prompt(kind=kind, first=first_prompt(load), sizes=(width, height))
        clients = _PICTURE_CLIENTS
        return [closed_flow(load, script, prompt, tokens=1, stream=False, connections=clients)]

    what = "the same picture again and again" if known else "a picture that was never seen"
    says = f"{what}, JPEG of {width} x {height}"
    if behind == "halves":
        says += ", as bfloat16 of at most a million pixels"
    return Workload(f"picture-{name}", says, "request", flows, sees=True, behind=behind)


def _beside_pictures(name: str, says: str, *, pictures: bool) -> Workload:
    """Return the workload of paced streams, without and with pictures of 12 megapixels beside them."""

    def flows(load: Load, script: Spoken | None) -> Sequence[Flow]:
        streams = held_flow(load, script, PICTURE_STREAMS, STREAMS)
        alone = replace(streams, gaps=True, process=0)
        if not pictures:
            return [alone]
        prompt = Prompt(kind="picture", first=first_prompt(load) + ROUND // 2, sizes=(4032, 3024))
        clients = _PICTURE_CLIENTS
        beside = closed_flow(
            load, script, prompt, tokens=1, stream=False, name=PICTURES, connections=clients
        )
        # At an engine of their own, so that streams wait for the gateway alone.
        return [alone, replace(beside, process=1, model=SEER)]

    return Workload(
        name,
        says,
        "gap",
        flows,
        paced=True,
        first=PICTURES if pictures else STREAMS,
        sees=True,
        behind="pair",
        beside=f"{name}-alone" if pictures else "",
        companion=PICTURES,
        clients_min=2,
    )


def _vendor(api: Api, way: str) -> tuple[Workload, ...]:
    """Return the workloads of one API in front of a vendor that speaks Messages; `way` is what that makes of it."""
    name, says = f"vendor-{way}", f"{way} to a vendor ({api.capitalize()} to Messages)"

    def held(load: Load, script: Spoken | None) -> Sequence[Flow]:
        return [held_flow(load, script, VENDOR_STREAMS, "main", api)]

    return (
        Workload(
            name,
            f"{says}, short, not streamed",
            "request",
            _short(_SHORT_TOKENS, stream=False, api=api),
            behind="vendor",
        ),
        Workload(
            f"{name}-stream1",
            f"{says}, streamed, 1 token",
            "request",
            _short(1, stream=True, api=api),
            behind="vendor",
        ),
        Workload(
            f"{name}-burst",
            f"{says}: event of a stream of {BURST_TOKENS} at full speed (less the cost of a stream of 1)",
            "token",
            _short(BURST_TOKENS, stream=True, api=api),
            less=f"{name}-stream1",
            behind="vendor",
        ),
        Workload(
            f"{name}-paced",
            f"{says}: event of {VENDOR_STREAMS} streams, one every {STEP_MS} ms in each",
            "token",
            held,
            paced=True,
            behind="vendor",
        ),
    )


_VENDOR: Final = (*_vendor("messages", "native"), *_vendor("chat", "translated"))
_PICTURES: Final = (
    _picture("small", 640, 480),
    _picture("screen", 1920, 1080),
    _picture("phone", 4032, 3024),
    _picture("known", 1920, 1080, known=True),
    _picture("bf16", 640, 480, behind="halves"),
    _picture("bf16-screen", 1920, 1080, behind="halves"),
)
_GAPS: Final = (
    f"p99 of the gaps between tokens of {PICTURE_STREAMS} streams, one every {STEP_MS} ms in each"
)
_BESIDE: Final = (
    _beside_pictures("picture-streams-alone", _GAPS, pictures=False),
    _beside_pictures("picture-streams", f"{_GAPS}, beside pictures of 4032 x 3024", pictures=True),
)
_ALL: Final = (
    Workload("short", "short chat, not streamed", "request", _short(_SHORT_TOKENS, stream=False)),
    Workload("stream1", "short chat, streamed, 1 token", "request", _short(1, stream=True)),
    Workload(
        "burst",
        f"token of a stream of {BURST_TOKENS} at full speed (less the cost of a stream of 1)",
        "token",
        _short(BURST_TOKENS, stream=True),
        less="stream1",
    ),
    Workload(
        "messages-short",
        "short message, not streamed",
        "request",
        _short(_SHORT_TOKENS, stream=False, api="messages"),
    ),
    Workload(
        "messages-stream1",
        "short message, streamed, 1 token",
        "request",
        _short(1, stream=True, api="messages"),
    ),
    Workload(
        "messages-burst",
        f"Messages: token of a stream of {BURST_TOKENS} at full speed (less the cost of a stream of 1)",
        "token",
        _short(BURST_TOKENS, stream=True, api="messages"),
        less="messages-stream1",
    ),
    paced(MESSAGES_STREAMS, "messages"),
    paced(MESSAGES_STREAMS, "responses"),
    paced(MESSAGES_STREAMS, "interactions"),
    Workload("cycled", "8 k tokens prompt, one of 16", "request", _cycled),
    Workload("tail", "8 k tokens prompt, all begin alike, never seen", "request", _tail),
    Workload("documents", "32 KB of real documents, never seen", "request", _documents),
    Workload(
        "distinct",
        f"{DISTINCT:,} times 32 KB of real documents, never seen: for memory",
        "request",
        _distinct,
        least_s=32.0,
    ),
    Workload("turns", "turn of a chat of 16 turns", "request", _turns),
    Workload(
        "idle",
        "time to the first token that the gateway adds, 1 client, p50",
        "first token",
        _short(1, stream=True, connections=1),
        added=True,
    ),
    Workload(
        "mixed",
        f"time to the first token beside {_MIXED_STREAMS} paced streams and a loop of 32 KB prompts, p99",
        "first token",
        _mixed,
        paced=True,
        first="probes",
        longer=_MIXED_LONGER,
    ),
    *_PICTURES,
    *_BESIDE,
    *_VENDOR,
)
NAMES: Final = (*(one.name for one in _ALL), "paced", "pictures", "vendor", "tools", *FLASH)
WORKLOADS: Final[Mapping[str, Workload]] = {one.name: one for one in _ALL}


def chosen(
    names: Sequence[str],
    streams: Sequence[int],
    load: ToolLoad | None = None,
    crowds: FlashLoad | None = None,
) -> list[Workload]:
    """Return the workloads of these names, and those they are compared with; ValueError names what
    exists.

    "paced" means one workload for each number of streams, "pictures" all those with pictures, "vendor" all those in
    front of a vendor, "tools" streams without and with runs of tools beside them, "flash" and "flash1" one for each size of a crowd.
    """
    crowd = crowds or FlashLoad()
    found: dict[str, Workload] = {}
    for name in names:
        if name == "paced":
            found |= {one.name: one for one in map(paced, streams)}
        elif name == "pictures":
            found |= {one.name: one for one in _PICTURES}
        elif name == "vendor":
            found |= {one.name: one for one in _VENDOR}
        elif name == "tools":
            found |= {one.name: one for one in tools(load or ToolLoad())}
        elif name in FLASH:
            found |= {one.name: one for one in flash_crowds(name, crowd)}
        elif name not in WORKLOADS:
            raise ValueError(f"no workload is called {name!r}; there are {', '.join(NAMES)}")
        else:
            less, alone = WORKLOADS[name].less, WORKLOADS[name].beside
            found |= {one: WORKLOADS[one] for one in (less, alone, name) if one}
    return list(found.values())
