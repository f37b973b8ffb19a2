"""Live authenticator: tokens count from the first issuer on, and a node never opens because it cannot follow one."""

from types import SimpleNamespace
from typing import cast

import pytest

from smg_node.access.authenticators import Authenticators
from smg_node.access.identity import Authenticator, Identity, unknown_key
from smg_node.cluster.issuers.live_authenticator import LiveAuthenticator
from smg_node.core.errors import SmgError

ALICE = Identity("t1", "acme", "user")


class Keys:
    """A node without any API key."""

    closed, settled, empty = False, True, True
    version = 7

    def expects(self, credential: str) -> bool:
        return False

    def is_asked_about(self, credential: str) -> bool:
        return False

    def identify(self, credential: str) -> Identity:
        raise unknown_key()


def test_it_goes_by_the_issuers_there_are_and_each_change_is_another_version() -> None:
    now = SimpleNamespace(tokens=None, version=1, some=False)
    live = LiveAuthenticator(
        cast("Authenticator", Keys()),
        lambda keys: cast("Authenticators | None", now.tokens),
        now,
        lambda: now.some,
    )
    assert (live.closed, live.empty, live.settled, live.version) == (False, True, True, 8)
    with pytest.raises(SmgError):
        live.identify("a token")
    now.tokens = SimpleNamespace(
        closed=True, empty=False, settled=True, expects=lambda one: True, identify=lambda one: ALICE
    )
    now.version, now.some = 2, True
    live.refresh()
    assert (live.closed, live.empty, live.version) == (True, False, 9)
    assert (live.identify("a token"), live.expects("a token")) == (ALICE, True)
    # The last one is gone.
    now.tokens, now.version, now.some = None, 3, False
    live.refresh()
    assert (live.closed, live.version) == (False, 10)


def test_an_issuer_that_is_not_followed_closes_the_node() -> None:
    live = LiveAuthenticator(
        cast("Authenticator", Keys()), lambda keys: None, SimpleNamespace(version=1), lambda: True
    )
    assert live.closed
    with pytest.raises(SmgError):
        live.identify("a token")
