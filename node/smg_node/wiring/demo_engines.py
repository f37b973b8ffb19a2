"""Demo engines: two simulated engines for `--demo`, in a child process that ends with the node.

The node may not import the simulator (imports point down), and an engine in the node's own process
would make every figure of the demo a lie; so it is started the way an operator would start it.
"""

import asyncio
import importlib.util
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from shlex import quote
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
        *("--ttft-ms", "50", "--itl-ms", "20", "--until-input-ends"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # What the node was told in its environment may be a secret.
        env={name: said for name, said in os.environ.items() if not name.startswith("SMG_")},
        # Ctrl-C is for the node, which ends its engines when its last answer has left.
        start_new_session=True,
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
        # Its session is its own: whatever it started and left goes with it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


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


def print_demo(port: int, certificate: Path | None, operators: str = "") -> None:
    """Print what to type now: commands that work when pasted as they are, over TLS where the node has a certificate that is
    for localhost. `operators` is the URL of the admin API where it is apart, or the path of its socket.
    """
    url, trust = f"http://127.0.0.1:{port}", ""
    if certificate is not None:
        url, trust = f"https://localhost:{port}", quote(str(certificate.absolute()))
    known = importlib.util.find_spec("openai") is not None
    sys.stdout.write(
        _WORDS.format(
            url=url,
            curls=f"--cacert {trust} " if trust else "",
            client=_CLIENT.format(url=url)
            if certificate is None
            else _TLS_CLIENT.format(url=url, file=str(certificate.absolute())),
            operators=quote(operators or url),
            admins=f" --ca-file {trust} --server-name localhost"
            if (operators or url).startswith("https:")
            else "",
            model=MODEL,
            python=sys.executable if known else "python",
            hint="" if known else "   # after: pip install openai",
            admin=shutil.which("smg-admin") or Path(sys.executable).with_name("smg-admin"),
        )
    )
    sys.stdout.flush()


_CLIENT: Final = """\
from openai import OpenAI

client = OpenAI(base_url="{url}/v1", api_key="unused")"""
_TLS_CLIENT: Final = """\
import ssl

from openai import DefaultHttpxClient, OpenAI

trust = ssl.create_default_context(cafile={file!r})
trust.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
wire = DefaultHttpxClient(verify=trust)
client = OpenAI(base_url="{url}/v1", api_key="unused", http_client=wire)"""
_WORDS: Final = """
The demo is up: two simulated engines behind one node. Type this in another terminal.

# A whole answer:
curl {curls}{url}/v1/chat/completions \\
  -H 'content-type: application/json' \\
  -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "Hello"}}]}}'

# The same, as it comes:
curl -N {curls}{url}/v1/chat/completions \\
  -H 'content-type: application/json' \\
  -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "Hello"}}], "stream": true}}'

# With the openai SDK:
{python} - <<'PYTHON'{hint}
{client}
stream = client.chat.completions.create(
    model="{model}", messages=[{{"role": "user", "content": "Hello"}}], stream=True
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="", flush=True)
print()
PYTHON

# What the node knows of its engines:
{admin} --url {operators}{admins} workers list

Ctrl-C ends it.

"""
