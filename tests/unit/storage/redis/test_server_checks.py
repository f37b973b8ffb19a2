import pytest

from smg_storage.redis.server_checks import warnings_of

SAFE = {
    "maxmemory": "0",
    "maxmemory-policy": "noeviction",
    "appendonly": "yes",
    "appendfsync": "always",
    "save": "",
}


def test_there_is_nothing_to_say_of_a_server_that_loses_nothing() -> None:
    assert warnings_of(SAFE) == ()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"maxmemory-policy": "allkeys-lru"}, "as soon as maxmemory is set it forgets"),
        ({"maxmemory-policy": "volatile-ttl", "maxmemory": "1000"}, "at 1000 bytes it forgets"),
        ({"appendonly": "no"}, "everything is lost when it ends"),
        ({"appendonly": "no", "save": "3600 1"}, "all since its last snapshot is lost"),
        ({"appendfsync": "no"}, "what the system had not written yet"),
        ({"appendfsync": "everysec"}, "up to two seconds are lost with the machine"),
    ],
)
def test_each_setting_that_loses_history_is_named(changed: dict[str, str], said: str) -> None:
    (warning,) = warnings_of({**SAFE, **changed})
    assert said in warning


def test_what_is_not_told_is_said_once() -> None:
    (warning,) = warnings_of(dict.fromkeys(SAFE))
    assert "does not tell" in warning
    partly = warnings_of({**SAFE, "maxmemory-policy": None})
    assert partly == ()
