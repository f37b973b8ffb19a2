#!/usr/bin/env bash
# openai 3.54.0 (2026): the helper that adds a stream up fails on a tool call's delta without `function`.
# Expected: a delta may leave `function` out, as its own type says (Optional), and then adds nothing.
# Seen: the first delta of a call may, but a later one (which only repeats its id) is an AssertionError without a word,
# in `client.chat.completions.stream` as well; the plain stream gives it out.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openai==3.54.0
cat > "$folder/deltas.py" <<'PY'
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{"}}
REST = {"index": 0, "function": {"arguments": "}"}}
BARE = {"index": 0, "id": "call_1"}


def added_up(deltas):
    state = ChatCompletionStreamState()
    try:
        for at, delta in enumerate([*deltas, None]):
            choice = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
            if delta is not None:
                choice = {"index": 0, "delta": {"tool_calls": [delta]}, "finish_reason": None}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    except AssertionError as error:
        return f"AssertionError({str(error)!r}) at delta {at}"
    return state.get_final_completion().choices[0].message.tool_calls[0].function.arguments


assert ChoiceDeltaToolCall.model_fields["function"].default is None
whole, first, between = added_up([CALL, REST]), added_up([BARE, CALL, REST]), added_up([CALL, BARE, REST])
print("each delta with a function:", whole)
print("none in the first:         ", first)
print("none in a later one:       ", between)
assert whole == "{}"
assert first == "{}"
assert between == "AssertionError('') at delta 1"
PY
"$folder/venv/bin/python" "$folder/deltas.py"
