"""Stream knobs: start, keep-alive and back-pressure of streamed answers."""

from smg_node.config.schema.declaration import Section, number


class Stream(Section):
    """When a stream begins, how it stays alive, what a slow reader costs."""

    commit_after_s: float = number(
        10,
        "Seconds without a first event after which the 200 is sent anyway. Until then a failure still"
        " has its real status.",
        low=0,
        high=3600,
        why="0 commits at once; nobody waits longer than an hour",
    )
    keepalive_s: float = number(
        15,
        "Seconds of silence after which a ping is written into the stream.",
        low=0.05,
        high=3600,
        why="more than 20 pings a second are load; proxies cut idle streams long before an hour",
        aliases=("--sse-keepalive-secs",),
    )
    coalesce_ms: int = number(
        0,
        "Milliseconds that tokens of a chat or a completion may wait for the next ones, to be one event of the stream"
        " with them; the first one never waits. 0 sends every token at once. With many fast streams this saves writes,"
        " bytes and wake-ups; texts, log probabilities and usage stay the same. Answers of HTTP workers and events of"
        " /v1/responses, which are numbered, pass as they are.",
        low=0,
        high=1000,
        why="what arrives once a second is no stream any more",
    )
    slow_client_bytes: int = number(
        1_048_576,
        "Unsent bytes of one stream after which its engine is no longer read.",
        low=1024,
        high=1_073_741_824,
        why="below 1 KiB one event already blocks; above 1 GiB one client could fill the memory",
    )
    slow_client_s: float = number(
        60,
        "Seconds a paused client may take nothing before its request is aborted.",
        low=0.1,
        high=86_400,
        why="below 0.1 s ordinary jitter aborts; a paused stream holds an engine slot, at most a day",
    )
