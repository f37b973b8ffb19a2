"""Fetch settings: rules and limits of fetches, from an operator's settings."""

from typing import TYPE_CHECKING, Final

from smg_node.media.fetch.fetch_rules import FetchRules
from smg_node.media.fetch.fetcher import FetchLimits

if TYPE_CHECKING:
    from smg_node.config.sections.media import Media

_CACHE_SHARE: Final = 4
"""Files take this part of what prepared pictures may, which are what a chat's next turn needs."""


def fetch_rules(media: "Media") -> FetchRules:
    """Return whom these settings let us ask."""
    return FetchRules(media.fetch, media.fetch_hosts, media.fetch_private_hosts)


def fetch_limits(media: "Media", *, processes: int = 1) -> FetchLimits:
    """Return what a fetch may take by these settings in one of so many processes of a node."""
    kept = media.cache_bytes // (_CACHE_SHARE * processes) if media.url_cache else 0
    return FetchLimits(
        bytes_max=media.image_bytes_max,
        video_bytes_max=media.video_bytes_max,
        audio_bytes_max=media.audio_bytes_max,
        cache_bytes=kept,
    )
