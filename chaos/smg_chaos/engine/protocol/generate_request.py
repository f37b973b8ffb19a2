"""Generate request: the parameters of one generation, independent of a contract."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Asked:
    """Parameters of one Generate; the defaults are what an unset field means.

    `max_tokens` None means the rest of the context. `logprobs` and `prompt_logprobs` are None for
    off, else how many alternatives. `n` is at least 1 once read.
    """

    request_id: str = ""
    ids: Sequence[int] = ()
    text: str | None = None
    stream: bool = False
    max_tokens: int | None = None
    min_tokens: int = 0
    temperature: float | None = None
    top_p: float | None = None
    repetition_penalty: float | None = None
    n: int = 1
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    keep_stop: bool = False
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    # How SGLang and TokenSpeed spell the last two.
    logprobs_on: bool = False
    logprobs_top: int = 0
    logprobs_from: int = -1
    # What makes it one of two calls that work on one request, and where among data-parallel ranks.
    room: int | None = None
    room_host: str = ""
    room_port: int = 0
    transfer: str = ""
    rank: int | None = None
    # Messages of pictures by the names of their fields, and digests of what was seen in them.
    media: Mapping[str, Any] = field(default_factory=dict)
    open_shared: Callable[[str, int, int], bytes] | None = None
    pictures: Sequence[str] = ()
    hashes: Sequence[tuple[str, int, int]] = ()
    """Identities of pictures as they were sent, each with where its place in the prompt begins and how long it is."""
