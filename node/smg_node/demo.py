"""Two simulated engines for `--demo`, as a process of their own that ends with the node.

The node may not import the simulator (imports point down), and an engine in the node's own process
would make every figure of the demo a lie; so it is started the way an operator would start it.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError

MODEL: Final = "demo"
ENGINES: Final = 2
START_MAX_S: Final = 20.0
STOP_MAX_S: Final = 3.0
_LISTENING: Final = re.compile(rb"listening on ([0-9.]+:[0-9]+)")


@asynccontextmanager
async def demo_engines() -> AsyncIterator[Sequence[str]]:
    """Run two simulated engines; yield their worker URLs. UPSTREAM_FAILED if they do not start."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "smg_chaos.cli",
        "engine",
        *("--contract", "vllm", "--model", MODEL, "--port", "0", "--workers", str(ENGINES)),
        *("--ttft-ms", "50", "--itl-ms", "20", "--parent-watch"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield await _addresses(process)
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(STOP_MAX_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


async def _addresses(process: asyncio.subprocess.Process) -> list[str]:
    assert process.stdout is not None
    found: list[str] = []
    try:
        async with asyncio.timeout(START_MAX_S):
            while len(found) < ENGINES:
                line = await process.stdout.readline()
                if not line:
                    raise SmgError(
                        ErrorKind.UPSTREAM_FAILED, "the simulated engines of the demo did not start"
                    )
                if match := _LISTENING.search(line):
                    found.append(f"grpc://{match[1].decode()}")
    except TimeoutError:
        raise SmgError(
            ErrorKind.UPSTREAM_TIMEOUT, f"the simulated engines did not start in {START_MAX_S} s"
        ) from None
    return found


def say_demo(port: int) -> None:
    """Print what to type now."""
    sys.stdout.write(_WORDS.format(port=port, model=MODEL))
    sys.stdout.flush()


_WORDS: Final = """
The demo is up: two simulated engines behind one node. In another terminal:

  curl http://127.0.0.1:{port}/v1/chat/completions \\
    -H 'content-type: application/json' \\
    -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "Hello"}}]}}'

  curl -N http://127.0.0.1:{port}/v1/chat/completions \\
    -H 'content-type: application/json' \\
    -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "Hello"}}], "stream": true}}'

  python - <<'PYTHON'          # pip install openai
  from openai import OpenAI
  client = OpenAI(base_url="http://127.0.0.1:{port}/v1", api_key="unused")
  stream = client.chat.completions.create(
      model="{model}", messages=[{{"role": "user", "content": "Hello"}}], stream=True
  )
  for chunk in stream:
      print(chunk.choices[0].delta.content or "", end="", flush=True)
  print()
  PYTHON

  smg-admin --url http://127.0.0.1:{port} workers list

Ctrl-C ends it.

"""
