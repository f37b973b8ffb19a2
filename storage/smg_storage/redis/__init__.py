"""Redis or Valkey store: history by functions on the server, one slot for all of a thread.

What belongs together has one thread (`ids.thread_of`) and so lies in one slot, where a function of the server does each
operation as one step and in one round trip. A single server has every key within reach, and then that holds for
everything. In a cluster some things lie in other slots: an item or a conversation of another thread, a list of one
person's responses, a key of the client's choice. There a response's own row is the truth. What a turn needs elsewhere is
written around it, in this order:

    1 its key is taken              a crash leaves a key without a response: the same request may be tried again
    2 items of other threads        a crash leaves rows that no list has
    3 the row                       from here on the turn is there; if its conversation is in another slot, the row
                                    carries what has to be appended, and any reader does so first
    4 the conversation, lists, places; only then it is acknowledged

Each step does nothing when done again, so a repetition of the whole heals whatever was cut off. Deleting goes the other way:
the row first. Lists may then name what is gone, which readers see, and drop.

What a server acknowledges it may still lose, by its own settings: with `appendfsync everysec` up to two seconds of a machine
(not of a killed process, whose writes the system has), with `always` nothing, without an append-only file all since the last
snapshot; and with a failover what a replica had not been sent, unless `redis_wait_replicas` waits for it. `start` looks
at these settings and says in `warnings` what can be lost.
"""
