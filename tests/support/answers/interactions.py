"""Interactions for tests: asks, generations told, streams put together as a user of the SDK would."""

import json
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from smg_node.core.generation.events import Event
from smg_node.dialects.dialect import Caller, Unknown
from smg_node.dialects.interactions.events.presenter import InteractionPresenter
from smg_node.dialects.interactions.request.interaction_request import InteractionRequest
from smg_node.dialects.interactions.request.reader import InteractionsReader
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals

THREAD = "5eed5eed5eed"
INTERACTION_ID = f"int_0198c0ffee00{THREAD}0123456789abcdef01234567"
NOW_MS = 0x0198_C0FF_EE00
SEALS = ThoughtSeals(PlainVault())


class AcmeCaller(Unknown):
    """Caller of the tenant `acme`."""

    request_id = "req_1"
    tenant = "acme"


def interaction_ask(caller: Caller | None = None, /, **parameters: Any) -> InteractionRequest:
    body = {"model": "m", "input": "hi", **parameters}
    return InteractionsReader(ReaderOptions(), SEALS).read(body, caller or AcmeCaller())


def interaction_presenter(ask: InteractionRequest | None = None) -> InteractionPresenter:
    asked = ask or interaction_ask()
    sign = SEALS.sign if asked.shows_thoughts else SEALS.seal
    return InteractionPresenter(
        asked,
        interaction_id=INTERACTION_ID,
        thread=THREAD,
        created_s=5,
        now_ms=NOW_MS,
        chance=Random(7),
        sign=lambda thought: sign(thought, tenant="acme", model="m"),
    )


def told_interaction(
    events: Iterable[Event], ask: InteractionRequest | None = None
) -> tuple[InteractionPresenter, list[NumberedEvent]]:
    """Return a whole interaction: begun, told event by event, closed with what it came to."""
    presenter = interaction_presenter(ask)
    told = presenter.begin()
    for event in events:
        told += presenter.tell([event])
    assert presenter.outcome is not None
    return presenter, told + presenter.close(presenter.outcome.at(9))


def accumulated(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps that a client puts together by index; an event that cannot come there fails."""
    steps: list[dict[str, Any]] = []
    texts: list[str] = []
    open_index: int | None = None
    for event in events:
        match event["event_type"]:
            case "step.start":
                assert open_index is None
                assert event["index"] == len(steps)
                open_index = event["index"]
                steps.append(json.loads(json.dumps(event["step"])))
                texts = []
            case "step.delta":
                assert event["index"] == open_index
                _apply(steps[-1], event["delta"], texts)
            case "step.stop":
                assert event["index"] == open_index
                _settle(steps[-1], "".join(texts))
                open_index = None
            case _:
                pass
    assert open_index is None
    return steps


def _apply(step: dict[str, Any], delta: dict[str, Any], texts: list[str]) -> None:
    match delta["type"]:
        case "text":
            texts.append(delta["text"])
        case "arguments_delta":
            texts.append(delta["arguments"])
        case "thought_summary":
            texts.append(delta["content"]["text"])
        case "thought_signature":
            step["signature"] = delta["signature"]
        case other:
            raise AssertionError(other)


def _settle(step: dict[str, Any], text: str) -> None:
    if step["type"] == "function_call":
        step["arguments"] = json.loads(text)
    elif step["type"] == "model_output":
        step["content"] = [{"type": "text", "text": text}] if text else []
    elif text:
        step["summary"] = [{"type": "text", "text": text}]
