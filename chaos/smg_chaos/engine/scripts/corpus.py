"""Corpus from which the built-in tokenizer of a simulated engine is trained.

Fixed text, so that the vocabulary is the same on every machine and Python version.
"""

from typing import Final

TRAINING_TEXT: Final = """\
A gateway stands between the people who ask and the engines that answer. It reads the question, turns
words into numbers, chooses one of many engines, and gives the numbers back as words while they come.
When an engine stops, another one goes on; when a node leaves, the others remember what it knew.
The weather is often fine, but a good ship is built for storms. Some packets are late, some are lost,
and some arrive twice. A clock may jump, a disk may be full, a name may point to the wrong place.
What is the capital of France? The capital of France is Paris. Tell me a short story about a small
robot that wanted to learn how to paint. Once upon a time there was a robot who lived in a quiet town.
Write a function that returns the sum of two integers and explain what each line does.
def add(left: int, right: int) -> int:
    return left + right
for index in range(10):
    print(index, "times", index, "is", index * index)
{"name": "get_weather", "arguments": {"city": "Paris", "unit": "celsius", "days": 3}}
{"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
Hello from a simulated engine: six quick zebras jump over one lazy dog, and then they say hello again.
You are a helpful assistant. Answer in one sentence. The user would like to know more about this.
Let me think about it. First, the question asks for a number. Then the answer must be forty two.
The sun, the moon and the stars; the river, the sea and the rain; the day before and the day after.
"""

CHAT_TEMPLATE: Final = r"""
{%- macro words(content) -%}
{%- if content is string -%}{{ content }}
{%- elif content -%}{%- for part in content -%}{%- if part.text -%}{{ part.text }}{%- endif -%}{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
{%- set leads = messages and messages[0].role == 'system' -%}
{%- if leads or tools -%}
{{- '<|im_start|>system\n' -}}
{%- if leads -%}{{ words(messages[0].content) }}{%- endif -%}
{%- if tools -%}
{{- '\n\n' if leads -}}
{{- 'Functions you may call, one JSON object a line:\n<tools>' -}}
{%- for tool in tools -%}{{ '\n' }}{{ tool | tojson }}{%- endfor -%}
{{- '\n</tools>\nTo call one, print <tool_call>, a JSON object with name and arguments, and </tool_call>.' -}}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{{- '<|im_start|>assistant\n' -}}
{{- words(message.content) -}}
{%- for entry in message.tool_calls or [] -%}
{%- set call = entry.function or entry -%}
{{- '\n<tool_call>\n{"name": ' -}}{{ call.name | tojson }}{{ ', "arguments": ' -}}
{%- if call.arguments is string -%}{{ call.arguments }}{%- else -%}{{ call.arguments | tojson }}{%- endif -%}
{{- '}\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\n' -}}
{%- elif message.role == 'tool' -%}
{{- '<|im_start|>user\n<tool_response>\n' -}}{{ words(message.content) }}
{{- '\n</tool_response><|im_end|>\n' -}}
{%- elif not (loop.first and leads) -%}
{{- '<|im_start|>' -}}{{ message.role }}{{ '\n' -}}{{ words(message.content) }}{{ '<|im_end|>\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}
""".strip()
