"""Drains a node behind each balancer of deploy/ while clients stream, and counts the streams that were not as undisturbed.

Two real nodes and a simulated engine; each balancer is started with the file of deploy/, whose addresses are replaced. A
stream is good when it was answered 200, ended as its protocol says, and has the text that the engine's only answer has.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import aiohttp

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
ENGINE, BALANCER = 31500, 31501
NODES = {"node-a": (31502, 31503), "node-b": (31505, 31506)}
CLIENTS = 16
# The drain begins between: while work comes, a node serves for up to 15 s, 3 x drain.settle_s.
BEFORE_S, AFTER_S = 3.0, 19.0
ASKED = {
    "model": "m",
    "messages": [{"role": "user", "content": "Go on."}],
    "stream": True,
    "max_tokens": 40,
}


def configured(kind: str, folder: Path) -> list[str]:
    """Write a balancer's file for these nodes, and return the words that start it after its program."""
    source = {
        "haproxy": "haproxy/haproxy.cfg",
        "nginx": "nginx/smg-node.conf",
        "envoy": "envoy/envoy.yaml",
    }[kind]
    text = (
        (ROOT / "deploy" / source)
        .read_text()
        .replace(":8080", f":{BALANCER}")
        .replace("9901", "31509")
    )
    text = text.replace("listen 8080", f"listen {BALANCER}").replace(
        "port_value: 8080", f"port_value: {BALANCER}"
    )
    for number, (http, _) in enumerate(NODES.values(), 1):
        text = text.replace(f"10.0.0.{number}:30000", f"127.0.0.1:{http}")
        text = text.replace(
            f"address: 10.0.0.{number}, port_value: 30000",
            f"address: 127.0.0.1, port_value: {http}",
        )
    text = re.sub(r"^.*10\.0\.0\.3.*\n", "", text, flags=re.MULTILINE)
    if kind == "nginx":
        kept = " ".join(
            f"{name}_temp_path {folder}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        text = f"daemon off; pid {folder}/pid; error_log {folder}/log; events {{}} http {{ access_log off; {kept}\n{text} }}"
    file = folder / ("envoy.yaml" if kind == "envoy" else "configuration")
    file.write_text(text)
    return {
        "haproxy": ["-db", "-f", str(file)],
        "nginx": ["-p", str(folder), "-c", str(file)],
        "envoy": ["-c", str(file), "--log-level", "error", "--use-dynamic-base-id"],
    }[kind]


def node(name: str, folder: Path) -> list[str]:
    """Return the words that start a node."""
    http, metrics = NODES[name]
    words = [
        f"--http=127.0.0.1:{http}",
        f"--metrics=127.0.0.1:{metrics}",
        "--mesh=127.0.0.1:0",
        "--insecure-mesh",
    ]
    return [
        str(BIN / "smg-node"),
        *words,
        "--name",
        name,
        "--data-dir",
        str(folder / name),
        "--store",
        "none:",
        "--worker",
        f"grpc://127.0.0.1:{ENGINE}",
    ]


async def ready(session: aiohttp.ClientSession, port: int) -> None:
    """Return once somebody there says 200 to /readiness; TimeoutError after a minute."""
    async with asyncio.timeout(60):
        while True:
            try:
                async with session.get(f"http://127.0.0.1:{port}/readiness") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)


async def stream(session: aiohttp.ClientSession) -> tuple[str, str, str]:
    """Return how a stream went, its text and which node answered."""
    text, ended = [], False
    try:
        async with session.post(
            f"http://127.0.0.1:{BALANCER}/v1/chat/completions", json=ASKED
        ) as answer:
            if answer.status != 200:
                return f"status {answer.status}", "", ""
            served = answer.headers.get("x-smg-node", "")
            async for line in answer.content:
                said = line.decode().strip().removeprefix("data: ")
                if said == "[DONE]":
                    ended = True
                elif said.startswith("{"):
                    choices = json.loads(said).get("choices") or [{}]
                    text.append((choices[0].get("delta") or {}).get("content") or "")
    except aiohttp.ClientError as error:
        return type(error).__name__, "", ""
    return "ok" if ended else "cut off", "".join(text), served


def trial(kind: str, program: str) -> bool:
    """Return whether no stream was wrong behind this balancer; whatever was started has ended."""
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Where the balancers find libraries is not where ours should look.
        clean = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
        engine = (
            f"{BIN}/smg-chaos engine --contract vllm --model m --itl-ms 20 --port {ENGINE}".split()
        )
        quiet = subprocess.DEVNULL
        try:
            ours = (engine, *(node(one, folder) for one in NODES))
            started += [
                subprocess.Popen(one, env=clean, stdout=quiet, stderr=quiet) for one in ours
            ]
            started.append(subprocess.Popen([program, *configured(kind, folder)], stderr=quiet))
            return asyncio.run(drained(kind, started))
        finally:
            for process in reversed(started):
                process.send_signal(signal.SIGTERM)
            for process in started:
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


async def drained(kind: str, started: list[subprocess.Popen[bytes]]) -> bool:
    """Stream, let the first node leave meanwhile, and tell what came of it."""
    outcomes: Counter[str] = Counter()
    served: Counter[str] = Counter()
    async with aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=60), connector=aiohttp.TCPConnector(limit=0)
    ) as session:
        for http, _ in NODES.values():
            await ready(session, http)
        await ready(session, BALANCER)
        _, expected, _ = await stream(session)
        end_s = time.monotonic() + BEFORE_S + AFTER_S

        async def client() -> None:
            while time.monotonic() < end_s:
                outcome, text, by = await stream(session)
                outcomes[outcome if outcome != "ok" or text == expected else "other text"] += 1
                served[by] += 1

        async def leave() -> None:
            await asyncio.sleep(BEFORE_S)
            started[1].send_signal(signal.SIGTERM)

        await asyncio.gather(leave(), *(client() for _ in range(CLIENTS)))
        left = await asyncio.to_thread(started[1].wait, 30)
    good = set(outcomes) == {"ok"} and left == 0 and bool(expected) and len(served) == len(NODES)
    print(
        f"{kind}: {dict(outcomes)}, served by {dict(served)}; the node left with {left}", flush=True
    )
    return good


def main(asked: list[str]) -> int:
    """Try each NAME=PROGRAM; 1 if a stream behind any of them was wrong."""
    good = []
    for one in asked:
        kind, program = one.split("=", 1)
        good.append(trial(kind, program))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
