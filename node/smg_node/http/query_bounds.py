"""Query bounds: what the values of query parameters may be, for the routes that read them and for `/openapi.json`."""

from typing import Final

SWITCH_ON: Final = ("1", "true", "yes")
SWITCH_OFF: Final = ("", "0", "false", "no")
"""Spellings of a switch, in small letters; an empty one is off."""
NUMBER_DIGITS_MAX: Final = 20

MEMBER_STATES: Final = ("alive", "suspect", "dead", "left")
WORKER_STATES: Final = ("pending", "ready", "not_ready", "failed", "draining")

AUDIT_ROWS_MAX: Final = 1000
AUDIT_WORD_CHARACTERS_MAX: Final = 512
SETTINGS_CHANGES_MAX: Final = 1000
EVENT_ID_DIGITS_MAX: Final = 18
METRIC_NAMES_MAX: Final = 200
GOOGLE_MODELS: Final = 50
ANTHROPIC_MODELS: Final = 20
"""How many models are on a page of either API's list unless the client says."""
MODELS_MAX: Final = 1000
"""A page has no more of them."""
USAGE_NAME_CHARACTERS_MAX: Final = 256
USAGE_SPAN_PATTERN: Final = r"([1-9][0-9]{0,4})([mhd])"
"""A time so many minutes, hours or days ago."""
