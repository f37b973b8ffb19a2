"""CLI of `smg-chaos bench`, the side-by-side benchmark of gateways."""

import sys
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import typer

from smg_chaos.bench.options import FlashLoad, Options, ToolLoad

_LOAD: Final = "Load"
_WHOM: Final = "Gateways and engines"
_OUT: Final = "Results"
_TOOLS: Final = ToolLoad()

_EPILOG: Final = """
Workloads (-w):

short       not streamed, 8 tokens
stream1     streamed, 1 token
burst       streamed, 129 tokens at full speed
paced       a token every 20 ms in each of --streams
cycled      prompts of 8 k tokens, 16 of them
tail        prompts of 8 k tokens that begin alike
documents   prompts of 32 KB that were never seen
turns       chats of 16 turns
idle        one client
mixed       96 paced streams, a loop of 32 KB prompts, short probes

Flash crowds, of as many as --crowd says: all connect and ask in one instant, again and again:

flash         streams that go on for a second, a token every 20 ms
flash1        streams of one token
flash-beside  gaps between tokens of 256 paced streams, beside crowds of one token

With a model that sees, asked by two clients in a closed loop; `pictures` is all:

picture-small picture-screen picture-phone  a JPEG that was never seen, of 0.3, 2 and 12 megapixels
picture-known                               one of 2 megapixels again and again
picture-bf16 picture-bf16-screen            of 0.3 and 2 megapixels, as bfloat16 of at most a million pixels

picture-streams                             gaps between tokens of 64 paced streams, without and with pictures of 12
                                            megapixels beside them

In front of a vendor, the stand-in of Anthropic's API, asked by Messages (native) or Chat (translated); `vendor` is all:

vendor-native vendor-translated                  not streamed, 8 tokens
vendor-native-stream1 vendor-translated-stream1  streamed, 1 token
vendor-native-burst vendor-translated-burst      streamed, 129 tokens at full speed
vendor-native-paced vendor-translated-paced      a token every 20 ms in each of 16 streams

With a server of tools (smg-chaos mcp-server, its modern era), and a second engine whose model calls one:

tools       gaps between tokens of 500 paced streams, without and with 50 runs a second of 64 kB beside them: Responses
            whose model calls a tool once and then answers. The pace, a token every 100 ms in each stream, leaves a
            node of one process most of a core: a slower machine wants a larger --step-ms or fewer --streams

Gateways (-g):

smg-node    this tree's
smg         in gRPC mode, as it comes
smg-cached  with its L0 and L1 tokenizer caches
litellm     in front of an engine that speaks HTTP, which it needs; like smg-node, also of a vendor

Examples:

$ smg-chaos bench

$ smg-chaos bench -g smg-node -g smg-cached -w documents --rounds 5

$ smg-chaos bench -g smg-node -g "quiet:smg-node --telemetry.access-log false"
(two configurations of one gateway: a label, a kind, flags for it)

$ smg-chaos bench -w paced --streams 64 --streams 256 --duration-s 10

$ smg-chaos bench -g smg-node -g litellm -w vendor
(this gateway and litellm in front of the same vendor)

$ smg-chaos bench -w flash -w flash1 --crowd 256 --crowd 1000 -g smg-node -g "two:smg-node --processes 2" -g smg

$ smg-chaos bench -w tools --duration-s 10
(what runs of tools do to streams: with more than that, --runs-per-s and --result-bytes)

$ smg-chaos bench -w short --rate 200 --clients 64
(an open loop: 200 requests a second, whether answers come or not)

$ smg-chaos bench --url http://127.0.0.1:30000 --model my-model --pid 4711
(a gateway that runs already, and the process whose CPU is counted)
"""


_Gateway: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--gateway", "-g", help="[LABEL:]KIND [FLAGS]; repeat it", rich_help_panel=_WHOM),
]
_Workload: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--workload", "-w", help="which; repeat it", rich_help_panel=_LOAD),
]
_Rounds: TypeAlias = Annotated[
    int, typer.Option(help="rounds, interleaved", min=1, max=100, rich_help_panel=_LOAD)
]
_DurationS: TypeAlias = Annotated[
    float,
    typer.Option(help="seconds that count, each", min=0.2, max=600, rich_help_panel=_LOAD),
]
_WarmupS: TypeAlias = Annotated[
    float, typer.Option(help="seconds before them", min=0, max=60, rich_help_panel=_LOAD)
]
_Clients: TypeAlias = Annotated[
    int, typer.Option(help="connections of a loop", min=1, max=4096, rich_help_panel=_LOAD)
]
_Rate: TypeAlias = Annotated[
    float,
    typer.Option(
        help="requests per second; 0: a closed loop", min=0, max=100_000, rich_help_panel=_LOAD
    ),
]
_Streams: TypeAlias = Annotated[
    list[int] | None,
    typer.Option(
        help="paced streams (64 256; beside tools 500); repeat it",
        min=1,
        max=4096,
        rich_help_panel=_LOAD,
    ),
]
_StepMs: TypeAlias = Annotated[
    int,
    typer.Option(
        help="ms between tokens of streams beside tools", min=5, max=1000, rich_help_panel=_LOAD
    ),
]
_RunsPerS: TypeAlias = Annotated[
    float,
    typer.Option(
        help="runs of tools a second, beside streams", min=0.1, max=10_000, rich_help_panel=_LOAD
    ),
]
_ResultBytes: TypeAlias = Annotated[
    int,
    typer.Option(help="size of what a tool returns", min=100, max=200_000, rich_help_panel=_LOAD),
]
_Crowd: TypeAlias = Annotated[
    list[int] | None,
    typer.Option(
        help="streams that begin in one instant (256; of one token 1000); repeat it",
        min=1,
        max=8192,
        rich_help_panel=_LOAD,
    ),
]
_Kept: TypeAlias = Annotated[
    bool,
    typer.Option("--kept", help="a crowd is connected before it asks", rich_help_panel=_LOAD),
]
_ClientProcesses: TypeAlias = Annotated[
    int, typer.Option(help="processes that make the load", min=1, max=16, rich_help_panel=_LOAD)
]
_Tokenizer: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="folder with a real tokenizer; a tiny built-in one otherwise",
        exists=True,
        file_okay=False,
        rich_help_panel=_WHOM,
    ),
]
_Contract: TypeAlias = Annotated[
    Literal["vllm", "sglang", "trtllm", "mlx", "tokenspeed"],
    typer.Option(help="what the simulated engine speaks", rich_help_panel=_WHOM),
]
_EngineServer: TypeAlias = Annotated[
    Literal["h2", "grpc"],
    typer.Option(help="its server; h2 is the cheap one", rich_help_panel=_WHOM),
]
_Pace: TypeAlias = Annotated[
    Literal["each", "lockstep"],
    typer.Option(help="paced streams: each on its own, or together", rich_help_panel=_WHOM),
]
_Peers: TypeAlias = Annotated[
    Path, typer.Option(help="where other gateways are installed", rich_help_panel=_WHOM)
]
_Url: TypeAlias = Annotated[
    str | None,
    typer.Option(help="a gateway that runs already, instead", rich_help_panel=_WHOM),
]
_Model: TypeAlias = Annotated[
    str, typer.Option(help="the model to ask it for", rich_help_panel=_WHOM)
]
_Pid: TypeAlias = Annotated[
    int, typer.Option(help="its process, to count its CPU", min=0, rich_help_panel=_WHOM)
]
_Json: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="write rows and figures to this file too", rich_help_panel=_OUT),
]
_Out: TypeAlias = Annotated[
    Path, typer.Option(help="folder for results and logs", rich_help_panel=_OUT)
]


def bench(
    gateway: _Gateway = None,
    workload: _Workload = None,
    rounds: _Rounds = 3,
    duration_s: _DurationS = 4.0,
    warmup_s: _WarmupS = 1.0,
    clients: _Clients = 32,
    rate: _Rate = 0.0,
    streams: _Streams = None,
    step_ms: _StepMs = _TOOLS.step_ms,
    runs_per_s: _RunsPerS = _TOOLS.runs_per_s,
    result_bytes: _ResultBytes = _TOOLS.result_bytes,
    crowd: _Crowd = None,
    kept: _Kept = False,
    client_processes: _ClientProcesses = 1,
    tokenizer: _Tokenizer = None,
    contract: _Contract = "vllm",
    engine_server: _EngineServer = "h2",
    pace: _Pace = "each",
    peers: _Peers = Path(".cache/peers"),
    url: _Url = None,
    model: _Model = "simulated",
    pid: _Pid = 0,
    json: _Json = None,
    out: _Out = Path(".cache/bench"),
) -> None:
    """Measure gateways side by side: CPU per request and per token, times to the first token.

    Starts an engine and the gateways, goes round them with each workload, checks every
    answer, and prints a table. Linux only: CPU is the kernel's accounting of a gateway's
    whole process tree.
    """
    _measure(
        Options(
            gateways=tuple(gateway or ()),
            workloads=tuple(workload or ()),
            rounds=rounds,
            duration_s=duration_s,
            warmup_s=warmup_s,
            clients=clients,
            rate_per_s=rate,
            streams=tuple(streams or (64, 256)),
            tools=ToolLoad(tuple(streams or _TOOLS.streams), step_ms, runs_per_s, result_bytes),
            crowds=FlashLoad(tuple(crowd or ()), kept),
            client_processes=client_processes,
            tokenizer=tokenizer,
            contract=contract,
            engine_server=engine_server,
            pace=pace,
            peers=peers,
            url=url,
            model=model,
            pid=pid,
            json=json,
            out=out,
        )
    )


def _measure(options: Options) -> None:
    """Run the benchmark and exit: 0 if every row counts, 1 if not, 2 for what makes no sense."""
    from smg_chaos.bench.children import BenchError
    from smg_chaos.bench.figures.process_accounting import AccountingError
    from smg_chaos.bench.session import run

    try:
        code = run(options)
    except ValueError as error:
        print(f"smg-chaos bench: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    except (AccountingError, BenchError, OSError) as error:
        print(f"smg-chaos bench: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    raise typer.Exit(code)


app = typer.Typer(add_completion=False)
app.command(name="bench", epilog=_EPILOG)(bench)
