"""Pictures that this node leaves alone: those for workers that speak HTTP, and those that nobody sees."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from support.media.origin import Origin, origin
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "raw",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "A boat."},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
}
BROKEN = "data:image/png;base64,bm8gcGljdHVyZQ=="
"""What would be refused by whoever looked into it."""


@dataclass
class RawWorker:
    """A worker that speaks HTTP, and the bodies that it was sent."""

    port: int = 0
    bodies: list[bytes] = field(default_factory=list)


@contextmanager
def raw_worker() -> Iterator[RawWorker]:
    worker = RawWorker()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            models = {"object": "list", "data": [{"id": "raw", "object": "model"}]}
            known = {"/v1/models": models, "/health": {}}
            self._say(known.get(self.path))

        def do_POST(self) -> None:
            worker.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self._say(ANSWER if self.path == "/v1/chat/completions" else None)

        def _say(self, told: Any) -> None:
            content = json.dumps(told).encode()
            self.send_response(404 if told is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    worker.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield worker
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def pictures() -> Iterator[Origin]:
    with origin({"/a.png": b"never asked for"}) as found:
        yield found


@pytest.fixture(scope="module")
def worker() -> Iterator[RawWorker]:
    with raw_worker() as running:
        yield running


@pytest.fixture(scope="module")
def node(
    tmp_path_factory: pytest.TempPathFactory, worker: RawWorker, pictures: Origin
) -> Iterator[RunningNode]:
    flags = ("--media.fetch-private-hosts", pictures.host)
    folder = tmp_path_factory.mktemp("engines")
    with (
        running_simulated(folder, "--contract", "mlx", "--model", "apple") as mlx,
        running_simulated(folder, "--model", "blind") as blind,
    ):
        workers = [f"http://127.0.0.1:{worker.port}", f"grpc://{mlx.address}"]
        workers.append(f"grpc://{blind.address}")
        with running_node(folder, workers=workers, flags=flags) as running:
            yield running


def post(node: RunningNode, path: str, body: bytes) -> dict[str, Any]:
    request = Request(f"{node.url}{path}", body, {"content-type": "application/json"})
    with urlopen(request, timeout=30) as answer:
        found = json.load(answer)
    assert isinstance(found, dict)
    return found


def test_a_body_for_a_worker_that_speaks_http_stays_as_it_is(
    node: RunningNode, worker: RawWorker, pictures: Origin
) -> None:
    urls = [pictures.url("/a.png"), "http://10.0.0.1:22/x", BROKEN, "file:///etc/passwd"]
    parts = "".join(
        f'\n {{ "type":"image_url",  "image_url":{{"url":"{url}", "detail":"low"}} }},'
        for url in urls
    )
    body = (
        '{ "messages" : [{"role":"user","content":['
        f'{parts} {{"type":"text","text":"See \\u00e9\\/?"}}]}}],  "model":"raw", "x_own": 1.50 }}'
    ).encode()
    assert post(node, "/v1/chat/completions", body)["choices"] == ANSWER["choices"]
    assert worker.bodies[-1] == body
    assert pictures.asked == []


def test_videos_sound_and_files_for_such_a_worker_stay_as_they_are(
    node: RunningNode, worker: RawWorker, pictures: Origin
) -> None:
    body = (
        '{"model":"raw", "messages" : [{"role":"user","content":['
        f'{{ "type":"video_url","video_url":{{"url":"{pictures.url("/a.mp4")}"}}, "uuid":"v" }},'
        ' {"type":"video_url","video_url":{"url":"data:video/jpeg;base64,AAAA,AAAA"}},'
        ' {"type":"audio_url","audio_url":{"url":"http://10.0.0.1:22/x.wav"}},'
        ' {"type":"input_audio",  "input_audio":{"data":"not base64!","format":"wav"}},'
        ' {"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERi0=","filename":"a"}},'
        ' {"type":"text","text":"\\u00e9"} ]}], "x_own": 1.50}'
    ).encode()
    assert post(node, "/v1/chat/completions", body)["choices"] == ANSWER["choices"]
    assert worker.bodies[-1] == body
    assert pictures.asked == []


@pytest.mark.parametrize("model", ["apple", "blind"])
@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        (
            "/v1/chat/completions",
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "See"},
                            {"type": "image_url", "image_url": {"url": "URL"}},
                        ],
                    }
                ]
            },
            "messages[0].content[1].image_url",
        ),
        (
            "/v1/responses",
            {
                "input": [
                    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                    {
                        "type": "function_call_output",
                        "call_id": "c",
                        "output": [{"type": "input_image", "image_url": "URL"}],
                    },
                ]
            },
            "input[1].output[0]",
        ),
    ],
)
def test_a_model_that_sees_nothing_says_so_before_anything_is_fetched(
    node: RunningNode, pictures: Origin, model: str, path: str, body: Any, where: str
) -> None:
    url = pictures.url("/a.png")
    sent = json.dumps({"model": model, **body}).replace("URL", url).encode()
    with pytest.raises(HTTPError) as refused:
        post(node, path, sent)
    error = json.load(refused.value)["error"]
    assert refused.value.code == 400
    assert (error["param"], error["code"]) == (where, "unsupported_parameter")
    assert error["message"].startswith("the model '")
    assert error["message"].endswith(f"{model}' takes no pictures")
    assert pictures.asked == []
