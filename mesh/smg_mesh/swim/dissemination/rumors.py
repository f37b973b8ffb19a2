"""Rumors: chooses the claims and news that ride on the next packet.

Claims about members and news share what a packet has left: 60 % and 40 % of the bytes, and what one
class leaves the other may use; news that found no room go before the claims of the next packet. So
neither starves. The least sent go first, then the newest. A rumor is sent `retransmit_mult *
ceil(log10(members + 1))` times, which infects all members with high probability, and is then
dropped.
"""

from collections import OrderedDict
from typing import Final, TypeAlias

import msgspec

from smg_mesh.config import SwimOptions
from smg_mesh.swim.dissemination.transmit_queue import Transmissions, Waiting
from smg_mesh.swim.messages import Claim, News, Rank
from smg_mesh.swim.wire import RUMORS_MAX, claim_bytes, news_bytes

_CLAIMS_PERCENT: Final = 60
_CLAIMS_MIN: Final = 64
"""Room for claims even in a small cluster."""
_HEARD_PER_ENTRY: Final = 2
"""News are remembered after their last transmission, so that latecomers do not start them again."""
_SMALLEST_BYTES: Final = 8
"""Nothing fits into less."""
_NOTHING: Final[tuple[tuple[Claim, ...], tuple[News, ...]]] = ((), ())

NewsKey: TypeAlias = tuple[str, str, str]


class Rumors:
    """Claims, one per subject, and news, one per (origin, kind, key), that are still to be sent."""

    def __init__(self, options: SwimOptions) -> None:
        self._options = options
        self._claims: Transmissions[str, Claim] = Transmissions()
        self._news: Transmissions[NewsKey, News] = Transmissions()
        self._heard: OrderedDict[NewsKey, int] = OrderedDict()
        self._news_first = False
        """The last packet had no room for news."""

    def add(self, claim: Claim, *, members: int) -> None:
        """Spread the claim, unless a newer one about the same name waits; an older one is replaced.

        Where a member listens and what it says of itself travel with ALIVE only.
        """
        waiting = self._claims.get(claim.name)
        if waiting is not None and waiting.order > claim.order:
            return
        if claim.rank != Rank.ALIVE and not (claim.address is None and claim.meta is None):
            claim = msgspec.structs.replace(claim, address=None, meta=None)
        self._claims.forget(claim.name)
        while len(self._claims) >= max(_CLAIMS_MIN, 2 * members):
            self._claims.drop_most_sent()
        self._claims.add(claim.name, claim, claim_bytes(claim))

    def forget(self, name: str) -> None:
        """Say nothing more about that member."""
        self._claims.forget(name)

    def add_news(self, news: News) -> bool:
        """Spread the news and return True, unless they or newer ones were heard before."""
        key = (news.origin, news.kind, news.key)
        heard_seq = self._heard.get(key)
        if heard_seq is not None and heard_seq >= news.seq:
            self._heard.move_to_end(key)
            return False
        self._remember(key, news.seq)
        self._news.forget(key)
        self._make_room(size_bytes := news_bytes(news))
        self._news.add(key, news, size_bytes)
        return True

    def take(self, bytes_left: int, *, members: int) -> tuple[tuple[Claim, ...], tuple[News, ...]]:
        """Return what the next packet carries, at most `RUMORS_MAX` in all; each is counted as sent."""
        if not (self._claims or self._news) or bytes_left < _SMALLEST_BYTES:
            return _NOTHING
        # As many as the decimal digits of the members: ceil(log10(members + 1)) without a float.
        transmissions_max = self._options.retransmit_mult * len(str(max(1, members)))
        if not self._news:
            return self._take_claims(bytes_left, transmissions_max), ()
        return self._take_both(bytes_left, transmissions_max)

    def waiting(self) -> int:
        """Return how many rumors have transmissions left."""
        return len(self._claims) + len(self._news)

    def counts(self) -> tuple[int, int]:
        """Return how many claims and news wait."""
        return len(self._claims), len(self._news)

    def leftovers(self) -> int:
        """Return how much memory holds what is not to be sent any more; bounded by what is."""
        return self._claims.leftovers + self._news.leftovers

    def _take_claims(self, bytes_left: int, transmissions_max: int) -> tuple[Claim, ...]:
        claims = self._claims.pick(bytes_left, RUMORS_MAX)
        self._claims.sent(claims, transmissions_max)
        return tuple([entry.value for entry in claims])

    def _take_both(
        self, bytes_left: int, transmissions_max: int
    ) -> tuple[tuple[Claim, ...], tuple[News, ...]]:
        """Claims take their share, news what is left, and claims again what news left."""
        news = self._news.pick(bytes_left, 1) if self._news_first else []
        bytes_left -= _size_bytes(news)
        claims = self._claims.pick(
            bytes_left * _CLAIMS_PERCENT // 100, RUMORS_MAX * _CLAIMS_PERCENT // 100
        )
        bytes_left -= _size_bytes(claims)
        more_news = self._news.pick(bytes_left, RUMORS_MAX - len(news) - len(claims))
        bytes_left -= _size_bytes(more_news)
        news += more_news
        claims += self._claims.pick(bytes_left, RUMORS_MAX - len(claims) - len(news))
        self._news_first = not news
        self._claims.sent(claims, transmissions_max)
        self._news.sent(news, transmissions_max)
        return tuple([entry.value for entry in claims]), tuple([entry.value for entry in news])

    def _make_room(self, size_bytes: int) -> None:
        options = self._options
        while len(self._news) and (
            len(self._news) >= options.news_entries_max
            or self._news.size_bytes + size_bytes > options.news_bytes_max
        ):
            self._news.drop_most_sent()

    def _remember(self, key: NewsKey, seq: int) -> None:
        self._heard[key] = seq
        self._heard.move_to_end(key)
        if len(self._heard) > _HEARD_PER_ENTRY * self._options.news_entries_max:
            self._heard.popitem(last=False)


def _size_bytes(entries: list[Waiting[NewsKey, News]] | list[Waiting[str, Claim]]) -> int:
    return sum([entry.size_bytes for entry in entries])
