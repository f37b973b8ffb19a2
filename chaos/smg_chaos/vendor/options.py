"""Options of `smg-chaos vendor`, each declared once: flag, type, help, group."""

from pathlib import Path
from typing import Any, Final, NamedTuple

from smg_chaos.vendor.hostings.hosting import HOSTINGS
from smg_chaos.vendor.hostings.quirks import VENDORS
from smg_chaos.vendor.settings import KEYS, VendorSettings

_WHICH: Final = "Which vendor"
_SAYS: Final = "What it says"
_REFUSES: Final = "What it refuses"
_COSTS: Final = "Limits, cache and money"
_PROCESS: Final = "Process"


class Option(NamedTuple):
    """One option. `field` is the setting it sets, "" for one of the process."""

    flag: str
    kind: Any
    says: str
    group: str
    field: str = ""
    minimum: float | None = None
    maximum: float | None = None
    metavar: str | None = None
    default: Any = None


OPTIONS: Final = (
    Option(
        "kind",
        list[str],
        f"the hosting: {', '.join(HOSTINGS)}; several are served on consecutive ports",
        _WHICH,
        metavar="KIND",
        default=["openai"],
    ),
    Option(
        "quirk",
        list[str],
        f"what an openai_like vendor does otherwise, by its name ({', '.join(VENDORS)}) or one by one",
        _WHICH,
        "quirks",
        metavar="QUIRK",
    ),
    Option(
        "model",
        list[str],
        "a model it serves, * for any; otherwise the hosting's own",
        _WHICH,
        "models",
        metavar="MODEL",
    ),
    Option("context", int, "tokens of a prompt; 0: as the model has it", _WHICH, "context", 0),
    Option(
        "script",
        Path | None,
        "say the text of this file; otherwise facts of the request",
        _SAYS,
        metavar="FILE",
    ),
    Option("ttft-ms", float, "time before the first event", _SAYS, "ttft_ms", 0),
    Option(
        "itl-ms", float, "time for each token of the answer, 0: all at once", _SAYS, "itl_ms", 0
    ),
    Option(
        "seal-bytes",
        int,
        "padding of signatures, to make them large",
        _SAYS,
        "seal_bytes",
        0,
        1_048_576,
    ),
    Option(
        "key",
        list[str],
        f"a good key, or ID:SECRET[:TOKEN] for signatures; otherwise {' and '.join(KEYS)}",
        _REFUSES,
        "keys",
        metavar="KEY",
    ),
    Option(
        "seal-key",
        str,
        "what signatures and access tokens are made with; stand-ins that share it know each other's",
        _REFUSES,
        "seal_key",
        metavar="KEY",
    ),
    Option(
        "account",
        str,
        "the account whose encrypted reasoning and prompt cache it has",
        _REFUSES,
        "account",
        metavar="NAME",
    ),
    Option(
        "strict",
        bool,
        "refuse also what vendors mend: turns of one role in a row, thoughts left out, Gemini's skip word",
        _REFUSES,
        "strict",
    ),
    Option("fault", list[str], "a fault on purpose, see below", _REFUSES, "faults", metavar="SPEC"),
    Option("seed", int, "seed of the faults' chance", _REFUSES, "seed"),
    Option(
        "rpm", int, "requests a minute for each key, 0: no limit", _COSTS, "requests_per_minute", 0
    ),
    Option("tpm", int, "tokens a minute for each key, 0: no limit", _COSTS, "tokens_per_minute", 0),
    Option("cache", bool, "keep a prompt cache", _COSTS, "cache"),
    Option(
        "cache-ttl-s", float, "how long a prompt is cached without a mark", _COSTS, "cache_ttl_s", 0
    ),
    Option(
        "cache-min-tokens",
        int,
        "least prompt to cache; 0: as the model has it",
        _COSTS,
        "cache_min_tokens",
        0,
    ),
    Option(
        "cache-scope",
        str,
        "whose a cache is: the account's, or each key's",
        _COSTS,
        "cache_scope",
        metavar="account|key",
    ),
    Option(
        "price",
        list[str],
        "micro-dollars per million tokens: MODEL[@TIER][>TOKENS]=PROMPT,CACHED,WRITTEN,WRITTEN_LONG,ANSWER",
        _COSTS,
        "prices",
        metavar="PRICE",
    ),
    Option(
        "token-life-s",
        float,
        "how long an access token of /_vendor/token lives",
        _COSTS,
        "token_life_s",
        0,
    ),
    Option("host", str, "address to listen on", _PROCESS, default="127.0.0.1"),
    Option("port", int, "first port, 0: the system chooses", _PROCESS, "", 0, 65_535, default=0),
    Option(
        "keep",
        int,
        "requests that /_vendor/requests keeps",
        _PROCESS,
        "kept_requests",
        0,
        1_000_000,
    ),
    Option(
        "until-input-ends",
        bool,
        "end when standard input does: with the process that holds its other end",
        _PROCESS,
        default=False,
    ),
)


def default_of(option: Option) -> Any:
    """Return an option's default, as the flag spells it: an empty list stands for the setting's own."""
    if not option.field:
        return option.default
    value = getattr(VendorSettings(), option.field)
    return [] if isinstance(value, tuple) else value


def settings_of(given: dict[str, Any], kind: str, script: str) -> VendorSettings:
    """Return the settings of one kind; ValueError says what is wrong. Names in `given` are underscored flags."""
    fields: dict[str, Any] = {"kind": kind, "script": script}
    for option in OPTIONS:
        value = given[option.flag.replace("-", "_")]
        if option.field and value != []:
            fields[option.field] = tuple(value) if isinstance(value, list) else value
    settings = VendorSettings(**fields)
    from smg_chaos.vendor.faults.fault import parse_fault

    for spec in settings.faults:
        parse_fault(spec)
    return settings
