"""Quirks of vendors with OpenAI's APIs: names for what one does otherwise than OpenAI. Pure.

Of Chat Completions:

    finish_optional             an answer may end without a reason, or with "": Snowflake
    max_tokens_name             the length is `max_tokens`: Mistral, DeepSeek, Z.ai, Snowflake, most others
    no_stream_options           `stream_options` is refused; usage comes unasked: Mistral
    tool_choice_required_any    a call that must be made is "any": Mistral
    seed_random_seed            the seed is `random_seed`: Mistral
    system_role                 there are no messages of role `developer`: all but OpenAI and Azure
    reasoning_content           thoughts of earlier turns go back, under this name: DeepSeek, Moonshot, Z.ai
    reasoning_details           thoughts go back as the list they came in, with signatures: OpenRouter
    thought_signatures          signatures of calls go back in `extra_content`: Gemini's OpenAI door

Of Responses:

    no_encrypted_reasoning      encrypted thoughts are not to be asked for
    no_summaries                summaries of thoughts are not to be asked for: accounts that are not verified

Of both:

    no_effort_none              the least effort is "minimal": the first gpt-5
    no_thinking                 the model takes no effort at all
"""

from typing import Final

FINISH_OPTIONAL: Final = "finish_optional"
MAX_TOKENS_NAME: Final = "max_tokens_name"
NO_STREAM_OPTIONS: Final = "no_stream_options"
REQUIRED_IS_ANY: Final = "tool_choice_required_any"
RANDOM_SEED: Final = "seed_random_seed"
SYSTEM_ROLE: Final = "system_role"
REASONING_CONTENT: Final = "reasoning_content"
REASONING_DETAILS: Final = "reasoning_details"
THOUGHT_SIGNATURES: Final = "thought_signatures"
NO_ENCRYPTED_REASONING: Final = "no_encrypted_reasoning"
NO_SUMMARIES: Final = "no_summaries"
NO_EFFORT_NONE: Final = "no_effort_none"
NO_THINKING: Final = "no_thinking"
