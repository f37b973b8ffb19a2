"""Pictured requests: pictures that are the same to look at, and new to whoever tells them apart by their bytes."""

import base64
import io
import json
from itertools import pairwise
from typing import Any, Literal

import pytest
from PIL import Image

from smg_chaos.bench.load.job import Flow, Job, Prompt
from smg_chaos.bench.load.pictures import commented, photograph
from smg_chaos.bench.load.requests import requests_of

Kind = Literal["picture", "known picture"]


def bodies(kind: Kind, count: int) -> list[dict[str, Any]]:
    """Return the bodies of so many requests."""
    flow = Flow(
        name="main",
        shape="closed",
        connections=1,
        tokens=1,
        stream=False,
        prompt=Prompt(kind=kind, first=7, sizes=(96, 64)),
    )
    job = Job(host="127.0.0.1", port=1, model="seer", flows=(flow,))
    source = requests_of(job, flow, lambda: pytest.fail("no documents are wanted"))
    found = []
    for _ in range(count):
        head, _, body = source.next(0).partition(b"\r\n\r\n")
        assert b"content-length: %d" % len(body) in head
        found.append(json.loads(body))
    return found


def file_of(body: dict[str, Any]) -> bytes:
    """Return the file of a request's picture."""
    url: str = body["messages"][0]["content"][0]["image_url"]["url"]
    before, _, encoded = url.partition(",")
    assert before == "data:image/jpeg;base64"
    return base64.b64decode(encoded, validate=True)


def pixels(file: bytes) -> bytes:
    """Return a file's pixels."""
    with Image.open(io.BytesIO(file)) as picture:
        assert picture.format == "JPEG"
        return picture.tobytes()


def test_a_new_picture_is_another_file_of_the_same_pixels() -> None:
    one, other = (file_of(body) for body in bodies("picture", 2))
    assert one != other
    assert pixels(one) == pixels(other)


def test_a_known_picture_is_the_same_file_and_another_question() -> None:
    found = bodies("known picture", 3)
    assert len({file_of(body) for body in found}) == 1
    for one, other in pairwise(found):
        assert one["messages"][0]["content"][1] != other["messages"][0]["content"][1]


@pytest.mark.parametrize(("width", "height"), [(1, 1), (13, 40), (640, 480)])
def test_a_photograph_has_its_size_and_is_the_same_each_time(width: int, height: int) -> None:
    made = photograph(width, height)
    assert made == photograph(width, height)
    with Image.open(io.BytesIO(commented(made, 3))) as picture:
        assert picture.size == (width, height)
