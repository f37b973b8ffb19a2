"""Reader of Completions bodies: a table of parameters, and the function that takes each."""

from typing import Any, Final

from smg_node.core.generation.request import GenerateRequest
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.completions.prompt import read_prompts
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.openai.constraint import CONSTRAINTS
from smg_node.dialects.openai.extras import EXTRAS
from smg_node.dialects.openai.request_draft import Draft, Take, problems_for, refused, take_all
from smg_node.dialects.openai.sampling import SAMPLING, TOKENS_MAX, sampling_of, settle_sampling
from smg_node.dialects.openai.streaming import STREAMING
from smg_node.dialects.openai.view import View
from smg_node.dialects.options import ReaderOptions

# The API's own default: a client that says nothing gets a short answer.
MAX_TOKENS_DEFAULT: Final = 16
_LOGPROBS_MAX: Final = 5


def take_max_tokens(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the length of an answer, which may be none: then the prompt is all that is wanted of it."""
    value = cursor.integer(key, low=0)
    if value is not None and not cursor.has("max_completion_tokens"):
        draft.draw("max_tokens", min(value, TOKENS_MAX), key)


def take_logprobs(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `logprobs`: how many alternatives, a number here, a switch in Chat Completions."""
    draft.draw("logprobs", cursor.integer(key, low=0, high=_LOGPROBS_MAX), key)


def take_echo(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `echo`: the prompt stands before the answer."""
    draft.request["echo"] = cursor.flag(key) or False


def take_prompt(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `prompt`."""
    special = cursor.values.get("add_special_tokens")
    draft.request["prompts"] = read_prompts(
        cursor,
        key,
        prompts_max=draft.options.choices_max,
        add_special_tokens=special is not False,
    )


def check_flag(_draft: Draft, cursor: Cursor, key: str) -> None:
    """Check a boolean that another parameter's function reads."""
    cursor.flag(key)


PARAMETERS: Final[dict[str, Take]] = {
    **SAMPLING,
    **CONSTRAINTS,
    **STREAMING,
    **EXTRAS,
    "max_tokens": take_max_tokens,
    "prompt": take_prompt,
    "add_special_tokens": check_flag,
    "echo": take_echo,
    "logprobs": take_logprobs,
    "suffix": refused(
        "is not supported: no model here is known to fill in the middle", lambda value: value == ""
    ),
}


def _settle(draft: Draft, cursor: Cursor) -> None:
    if not cursor.has("prompt"):
        cursor.raw("prompt", required=True)
    wanted, drawn = draft.request, draft.sampling
    if "max_tokens" not in drawn:
        drawn["max_tokens"] = max(MAX_TOKENS_DEFAULT, drawn.get("min_tokens", 0))
    settle_sampling(draft, cursor)
    choices = len(wanted.get("prompts", ())) * drawn.get("n", 1)
    limit = draft.options.choices_max
    if choices > limit:
        cursor.problem("prompt", f"prompts times n must be at most {limit}, is {choices}")
    if wanted.get("stream") and cursor.has("prompt_logprobs"):
        cursor.unsupported("prompt_logprobs", "is only supported when stream is false")
    elif wanted.get("echo") and "logprobs" in drawn:
        # The echoed prompt has log probabilities like the answer.
        drawn.setdefault("prompt_logprobs", drawn["logprobs"])
        draft.spelled.setdefault("prompt_logprobs", "logprobs")


class CompletionsReader:
    """Reads Completions bodies."""

    def __init__(self, options: ReaderOptions) -> None:
        self._options = options
        self._plain = View(matched_stop=options.matched_stop)

    def read(self, body: dict[str, Any]) -> ParsedBody[View]:
        """Return the parsed body; INVALID_REQUEST names everything that is wrong with it."""
        draft = Draft(self._options)
        cursor = Cursor(body, problems_for(self._options))
        take_all(draft, cursor, PARAMETERS)
        if "model" not in draft.request:
            cursor.raw("model", required=True)
        _settle(draft, cursor)
        cursor.problems.check()
        wanted = draft.request
        request = GenerateRequest(
            sampling=sampling_of(draft),
            stream=wanted.pop("stream", False),
            ignored=draft.ignored_in(cursor.problems),
            **wanted,
        )
        if not draft.view:
            return ParsedBody(request, self._plain)
        return ParsedBody(request, View(matched_stop=self._options.matched_stop, **draft.view))
