"""Reply of a stand-in, decided before anything is sent: a body or frames, what breaks them, and what they cost."""

from typing import Any

import msgspec

from smg_chaos.vendor.answers.answer import Cost
from smg_chaos.vendor.apis.call import Frame
from smg_chaos.vendor.faults.fault import Fault
from smg_chaos.vendor.limits.rate_buckets import KeyBuckets
from smg_chaos.vendor.wire.sse import encode


class Charge(msgspec.Struct):
    """What a reply is booked on: `expected` tokens were taken out of the bucket before; `counted` of the prompt are
    those that limits count.
    """

    key: str
    model: str
    cost: Cost
    expected: int
    counted: int
    buckets: KeyBuckets
    tier: str = ""


class Reply(msgspec.Struct, kw_only=True):
    """One reply; with `frames` it is a stream, else `body` is all of it. `failure` is an error inside the stream."""

    status: int = 200
    headers: dict[str, str] = {}
    body: bytes = b""
    frames: list[Frame] | None = None
    fault: Fault | None = None
    failure: bytes = b""
    charge: Charge | None = None


def json_reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    """Return a reply of JSON."""
    heads = {"content-type": "application/json", **(headers or {})}
    return Reply(status=status, headers=heads, body=encode(value))
