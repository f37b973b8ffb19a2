"""Frame forwarder: the process that carries frames between TAP interfaces and the switch."""

import gc
import json
import os
import random
import select
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

import msgspec

from smg_chaos.gameday.lab.ethernet_switch import Delivery, Switch
from smg_chaos.gameday.lab.link_rules import RuleError, rules_from

_FRAME_BYTES_MAX: Final = 2048
_BURST: Final = 32  # frames read from one port before the others have their turn
REQUEST_BYTES_MAX: Final = 1 << 19
_URGENT: Final = -10  # link faults must not depend on how busy the nodes are


def forward(
    taps: Sequence[int],
    names: Sequence[str],
    hardware: Sequence[bytes],
    seed: int,
    control: socket.socket,
) -> None:
    """Carry frames until `control` is closed at the other end."""
    with suppress(OSError):  # without leave to be urgent, it is as the others
        os.nice(_URGENT)
    gc.disable()  # nothing here makes cycles
    switch = Switch(names, hardware, lambda link: random.Random(f"{seed}/{link}"))
    control.setblocking(False)
    poll = select.epoll()
    for tap in taps:
        poll.register(tap, select.EPOLLIN)
    poll.register(control.fileno(), select.EPOLLIN)
    port_of = {tap: port for port, tap in enumerate(taps)}
    while True:
        due_us = switch.next_due_us()
        wait_s = -1.0 if due_us is None else max(due_us - _now_us(), 0) / 1e6
        for ready, _ in poll.poll(wait_s):
            if ready in port_of:
                _drain(switch, port_of[ready], ready, taps)
            elif not _obey(switch, control):
                return
        _deliver(switch.due(now_us=_now_us()), taps)


def _now_us() -> int:
    return time.monotonic_ns() // 1000


def _drain(switch: Switch, port: int, tap: int, taps: Sequence[int]) -> None:
    for _ in range(_BURST):
        try:
            frame = os.read(tap, _FRAME_BYTES_MAX)
        except BlockingIOError:
            return
        _deliver(switch.take(port, frame, now_us=_now_us()), taps)


def _deliver(deliveries: list[Delivery], taps: Sequence[int]) -> None:
    for port, frame in deliveries:
        with suppress(BlockingIOError):  # a full queue loses frames, here as anywhere
            os.write(taps[port], frame)


def _obey(switch: Switch, control: socket.socket) -> bool:
    """Answer one request; return whether there was one, and not the end."""
    try:
        request = control.recv(REQUEST_BYTES_MAX)
    except BlockingIOError:
        return True
    if not request:
        return False
    control.send(json.dumps(_answer(switch, request)).encode())
    return True


def _answer(switch: Switch, request: bytes) -> dict[str, Any]:
    word, _, content = request.partition(b" ")
    if word == b"rules":
        try:
            switch.set_rules(rules_from(content))
        except RuleError as error:
            return {"error": str(error)}
        return {}
    if word == b"mark":
        switch.mark()
        return {}
    if word == b"counts":
        return {"counts": [asdict(count) for count in switch.counts]}
    if word == b"spoken":
        return {"at_us": switch.spoken_us(socket.inet_aton(content.decode()))}
    return {"error": f"no such request: {word!r}"}


def rules_request(rules: dict[str, Any]) -> bytes:
    """Return the request that changes the rules."""
    return b"rules " + msgspec.json.encode(rules)
