"""Audio section of a session object: checked as the API has it, shown as it is in force. Pure.

Formats and ranges are meaning, and refused where they are wrong. Which model transcribes, whose voice speaks and how turns are
detected are hints: without a voice there is nothing for them to have an effect on, and the session shows that.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.json_cursor import Cursor
from smg_node.dialects.realtime.config.generation_parameters import unlike

RATE: Final = 24_000
"""Samples a second of `audio/pcm`: the only rate that the API knows."""
_RATES: Final = (RATE, 16_000, 48_000)
_FORMATS: Final = ("audio/pcm", "audio/pcmu", "audio/pcma")
_VOICE: Final = "none"
_SPEEDS: Final = (0.25, 1.5)
_EAGERNESS: Final = ("low", "medium", "high", "auto")
_MS_MAX: Final = 600_000
_TEXT_MAX: Final = 65_536
_WORDS_MAX: Final = 1_024


def check_audio(cursor: Cursor) -> None:
    """Note what is wrong with the `audio` of a session or an answer."""
    audio = cursor.object("audio")
    if audio is None:
        return
    audio.only(("input", "output"))
    heard, spoken = audio.object("input"), audio.object("output")
    if heard is not None:
        heard.only(("format", "transcription", "noise_reduction", "turn_detection"))
        _check_format(heard, _RATES)
        _check_transcription(heard)
        noise = heard.object("noise_reduction")
        if noise is not None:
            noise.word("type", ("near_field", "far_field"))
            noise.number("strength", low=0, high=1)
        _check_turns(heard)
    if spoken is not None:
        spoken.only(("format", "voice", "speed"))
        _check_format(spoken, (RATE,))
        _check_voice(spoken)
        spoken.number("speed", low=_SPEEDS[0], high=_SPEEDS[1])


def _check_format(cursor: Cursor, rates: tuple[int, ...]) -> None:
    wanted = cursor.object("format")
    if wanted is None:
        return
    wanted.only(("type", "rate"))
    wanted.word("type", _FORMATS, required=True)
    rate = wanted.integer("rate", low=1)
    if rate is not None and rate not in rates:
        known = ", ".join(map(str, rates))
        wanted.problem("rate", f"must be one of {known}; got {rate}")


def _check_transcription(cursor: Cursor) -> None:
    wanted = cursor.object("transcription")
    if wanted is None:
        return
    for key in ("model", "language", "delay"):
        wanted.text(key, characters_max=256)
    wanted.text("prompt", characters_max=_TEXT_MAX)
    for key in ("keywords", "languages"):
        values = wanted.array(key, at_most=_WORDS_MAX)
        wanted.elements(key, str, "a string", values or ())


def _check_turns(cursor: Cursor) -> None:
    turns = cursor.object("turn_detection")
    if turns is None:
        return
    turns.word("type", ("server_vad", "semantic_vad"), required=True)
    turns.number("threshold", low=0, high=1)
    for key in ("prefix_padding_ms", "silence_duration_ms", "idle_timeout_ms"):
        turns.integer(key, low=0, high=_MS_MAX)
    turns.word("eagerness", _EAGERNESS)
    turns.flag("create_response")
    turns.flag("interrupt_response")


def _check_voice(cursor: Cursor) -> None:
    voice = cursor.values.get("voice")
    if type(voice) is dict:
        named = cursor.object("voice")
        assert named is not None, "it is an object"
        named.text("id", required=True, characters_min=1, characters_max=256)
    elif voice is not None and type(voice) is not str:
        cursor.problem("voice", unlike(voice, "a string or an object"), "invalid_type")


def shown_audio(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return `audio` of a session that has no voice, of which the client said this, and it is right."""
    audio = said.get("audio") or {}
    heard, spoken = audio.get("input") or {}, audio.get("output") or {}
    return {
        "input": {
            "format": _shown_format(heard.get("format")),
            "transcription": None,
            "noise_reduction": heard.get("noise_reduction"),
            "turn_detection": None,
        },
        "output": {**shown_output(said), "speed": float(spoken.get("speed") or 1.0)},
    }


def shown_output(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return format and voice of an answer; nothing speaks it."""
    spoken = (said.get("audio") or {}).get("output") or {}
    return {"format": _shown_format(spoken.get("format")), "voice": _VOICE}


def _shown_format(said: Mapping[str, Any] | None) -> dict[str, Any]:
    kind = _FORMATS[0] if said is None else said["type"]
    if kind != _FORMATS[0]:
        return {"type": kind}
    rate = int((said or {}).get("rate") or RATE)
    own = {} if rate == RATE else {"x_smg_rate": rate}
    return {"type": kind, "rate": RATE, **own}
