"""Chat templates that print an assistant's turn as a family's models do, in our own words and as few as will do.

They differ in what an assistant's turn looks like and in nothing else: how a thought is framed, what stands
around calls, and how one call is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

_JSON: Final = "{{ f.arguments | tojson }}"
_NAMED: Final = '{"name": "{{ f.name }}", "arguments": ' + _JSON + "}"
_WITH_PARAMETERS: Final = '{"name": "{{ f.name }}", "parameters": ' + _JSON + "}"
_EACH: Final = "{% for key, value in f.arguments | items %}"
_RAW: Final = "{{ value if value is string else value | tojson }}"


@dataclass(frozen=True, slots=True)
class Family:
    """One family: the formats its answers are read with, and the pieces of its template.

    `thought` has THOUGHT where the thought stands; `begin` and `end` stand around all calls, `between` between
    two; `call` writes one, of which `f` is the function and `call` all of it. `prompt` follows the assistant's
    opener where the model goes on; `stop` ends its turn. `macros` come first.
    """

    reasoning: str
    tools: str
    call: str
    thought: str = "<think>THOUGHT</think>"
    silent: str = ""
    begin: str = ""
    between: str = ""
    end: str = ""
    prompt: str = ""
    stop: str = "<|stop|>"
    text: tuple[str, str] = ("", "")
    macros: str = ""
    options: tuple[str, ...] = ()

    @property
    def template(self) -> str:
        """Return the family's chat template."""
        thought = self.thought.replace("THOUGHT", "{{ thought }}")
        before, behind = self.text
        return (
            self.macros
            + "{% for m in messages %}{% if m.role == 'assistant' %}<|assistant|>"
            + "{% set thought = m.reasoning_content or m.thinking %}"
            + "{% if thought %}"
            + thought
            + "{% else %}"
            + self.silent
            + "{% endif %}{% if m.content %}"
            + before
            + "{{ m.content }}"
            + behind
            + "{% endif %}{% if m.tool_calls %}"
            + self.begin
            + "{% for call in m.tool_calls %}{% set f = call.function %}"
            + self.call
            + "{% if not loop.last %}"
            + self.between
            + "{% endif %}{% endfor %}"
            + self.end
            + "{% endif %}"
            + self.stop
            + "{% else %}<|{{ m.role }}|>{{ m.tool_call_id }}|{{ m.content }}{% endif %}{% endfor %}"
            + "{% if add_generation_prompt %}<|assistant|>"
            + self.prompt
            + "{% endif %}"
        )


_GEMMA: Final = (
    "{% macro said(v) %}{% if v is string %}<|\"|>{{ v }}<|\"|>{% elif v is mapping %}{{ '{' }}"
    "{% for k, w in v | items %}{{ k }}:{{ said(w) }}{{ ',' if not loop.last }}{% endfor %}{{ '}' }}"
    "{% elif v is sequence %}[{% for w in v %}{{ said(w) }}{{ ',' if not loop.last }}{% endfor %}]"
    "{% else %}{{ v | tojson }}{% endif %}{% endmacro %}"
)
_M3: Final = (
    "{% set mark = ']<]minimax[>[' %}"
    "{% macro said(v) %}{% if v is mapping %}{% for k, w in v | items %}{{ mark }}<{{ k }}>{{ said(w) }}"
    "{{ mark }}</{{ k }}>{% endfor %}{% elif v is sequence and v is not string %}{% for w in v %}"
    "{{ mark }}<item>{{ said(w) }}{{ mark }}</item>{% endfor %}"
    "{% elif v is string %}{{ v }}{% else %}{{ v | tojson }}{% endif %}{% endmacro %}"
)
_K3: Final = (
    "{% macro kind(v) %}{% if v is boolean %}boolean{% elif v is none %}null{% elif v is number %}number"
    "{% elif v is string %}string{% elif v is mapping %}object{% else %}array{% endif %}{% endmacro %}"
)
# Python's own way of writing a value.
_PYTHON: Final = "{{ ([value] | string)[1:-1] }}"
_DSML_PARAMETER: Final = (
    "<｜DSML｜parameter name=\"{{ key }}\" string=\"{{ 'true' if value is string else 'false' }}\">"
    + _RAW
    + "</｜DSML｜parameter>\n"
)

FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "hermes": Family(
            "think",
            "hermes",
            "<tool_call>\n" + _NAMED + "\n</tool_call>",
            thought="<think>\nTHOUGHT\n</think>\n\n",
            between="\n",
            options=("implicit", "interleaved"),
        ),
        "qwen_xml": Family(
            "think",
            "qwen_xml",
            "<tool_call>\n<function={{ f.name }}>\n"
            + _EACH
            + "<parameter={{ key }}>\n"
            + _RAW
            + "\n</parameter>\n{% endfor %}</function>\n</tool_call>",
            thought="<think>\nTHOUGHT\n</think>\n\n",
            silent="<think>\n\n</think>\n\n",
            prompt="<think>\n",
            between="\n",
            options=("implicit",),
        ),
        "glm": Family(
            "think",
            "glm",
            "<tool_call>{{ f.name }}"
            + _EACH
            + "<arg_key>{{ key }}</arg_key><arg_value>"
            + _RAW
            + "</arg_value>{% endfor %}</tool_call>",
            silent="</think>",
            prompt="<think>",
            options=("implicit",),
        ),
        "deepseek_v3": Family(
            "think",
            "deepseek_v3",
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{{ f.name }}\n```json\n"
            + _JSON
            + "\n```<｜tool▁call▁end｜>",
            begin="<｜tool▁calls▁begin｜>",
            between="\n",
            end="<｜tool▁calls▁end｜>",
            stop="<｜end▁of▁sentence｜>",
        ),
        "deepseek_v31": Family(
            "think",
            "deepseek_v31",
            "<｜tool▁call▁begin｜>{{ f.name }}<｜tool▁sep｜>" + _JSON + "<｜tool▁call▁end｜>",
            silent="</think>",
            prompt="<think>",
            begin="<｜tool▁calls▁begin｜>",
            end="<｜tool▁calls▁end｜>",
            stop="<｜end▁of▁sentence｜>",
        ),
        "dsml": Family(
            "think",
            "dsml",
            '<｜DSML｜invoke name="{{ f.name }}">\n'
            + _EACH
            + _DSML_PARAMETER
            + "{% endfor %}</｜DSML｜invoke>\n",
            silent="</think>",
            prompt="<think>",
            begin="\n\n<｜DSML｜function_calls>\n",
            end="</｜DSML｜function_calls>",
            stop="<｜end▁of▁sentence｜>",
        ),
        "kimi_k2": Family(
            "think",
            "kimi_k2",
            "<|tool_call_begin|>{{ call.id }}<|tool_call_argument_begin|>"
            + _JSON
            + "<|tool_call_end|>",
            begin="<|tool_calls_section_begin|>",
            end="<|tool_calls_section_end|>",
            silent="<think></think>",
        ),
        "kimi_k3": Family(
            "kimi_k3",
            "kimi_k3",
            '<|open|>call tool="{{ f.name }}" index="{{ loop.index }}"<|sep|>'
            + _EACH
            + '<|open|>argument key="{{ key }}" type="{{ kind(value) }}"<|sep|>'
            + _RAW
            + "<|close|>argument<|sep|>{% endfor %}<|close|>call<|sep|>",
            thought="<|open|>think<|sep|>THOUGHT<|close|>think<|sep|>",
            silent="<|open|>think<|sep|><|close|>think<|sep|>",
            prompt="<|open|>think<|sep|>",
            text=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
            begin="<|open|>tools<|sep|>",
            end="<|close|>tools<|sep|>",
            stop="<|close|>message<|sep|><|end_of_msg|>",
            macros=_K3,
        ),
        "mistral": Family(
            "plain",
            "mistral",
            "[TOOL_CALLS]{{ f.name }}[CALL_ID]{{ call.id }}[ARGS]" + _JSON,
            thought="",
            stop="</s>",
        ),
        "mistral, a list": Family(
            "plain",
            "mistral",
            '{"name": "{{ f.name }}", "arguments": ' + _JSON + ', "id": "{{ call.id }}"}',
            thought="",
            begin="[TOOL_CALLS] [",
            between=", ",
            end="]",
            stop="</s>",
        ),
        "cohere": Family(
            "cohere_cmd",
            "cohere",
            '    {"tool_call_id": "{{ call.id }}", "tool_name": "{{ f.name }}", "parameters": '
            + _JSON
            + "}",
            thought="<|START_THINKING|>THOUGHT<|END_THINKING|>",
            text=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
            begin="<|START_ACTION|>[\n",
            between=",\n",
            end="\n]<|END_ACTION|>",
            stop="<|END_OF_TURN_TOKEN|>",
        ),
        "minimax_m2": Family(
            "think",
            "minimax_m2",
            '<invoke name="{{ f.name }}">\n'
            + _EACH
            + '<parameter name="{{ key }}">'
            + _RAW
            + "</parameter>\n{% endfor %}</invoke>\n",
            thought="<think>\nTHOUGHT\n</think>\n\n",
            begin="\n<minimax:tool_call>\n",
            end="</minimax:tool_call>",
            prompt="<think>\n",
            silent="<think>\n</think>\n",
            options=("interleaved",),
        ),
        "minimax_m3": Family(
            "minimax_m3",
            "minimax_m3",
            '{{ mark }}<invoke name="{{ f.name }}">{{ said(f.arguments) }}{{ mark }}</invoke>\n',
            thought="<mm:think>THOUGHT</mm:think>",
            silent="</mm:think>",
            begin="{{ mark }}<tool_call>\n",
            end="{{ mark }}</tool_call>",
            macros=_M3,
        ),
        "seed_oss": Family(
            "seed_oss",
            "seed_oss",
            "<seed:tool_call>\n<function={{ f.name }}>\n"
            + _EACH
            + "<parameter={{ key }}>"
            + _RAW
            + "</parameter>\n{% endfor %}</function>\n</seed:tool_call>",
            thought="<seed:think>THOUGHT</seed:think>",
            between="\n",
            stop="<seed:eos>",
        ),
        "hy_v3": Family(
            "hy_v3",
            "hy_v3",
            "<tool_call>{{ f.name }}<tool_sep>\n"
            + _EACH
            + "<arg_key>{{ key }}</arg_key>\n<arg_value>"
            + _RAW
            + "</arg_value>\n{% endfor %}</tool_call>\n",
            begin="<tool_calls>\n",
            end="</tool_calls>",
        ),
        "nemotron_json": Family(
            "think",
            "nemotron_json",
            _NAMED,
            thought="<think>\nTHOUGHT\n</think>\n",
            begin="<TOOLCALL>[",
            between=", ",
            end="]</TOOLCALL>",
            options=("trim",),
        ),
        "tool_calls_json": Family(
            "think",
            "tool_calls_json",
            _NAMED + "\n",
            begin="<tool_calls>\n",
            end="</tool_calls>",
        ),
        "granite": Family("think", "granite", _NAMED, begin="<tool_call>[", between=", ", end="]"),
        "phi4": Family(
            "plain", "phi4", _NAMED, thought="", begin="functools[", between=", ", end="]"
        ),
        "longcat": Family(
            "think", "longcat", "<longcat_tool_call>\n" + _NAMED + "\n</longcat_tool_call>\n"
        ),
        "internlm": Family(
            "plain",
            "internlm",
            "<|action_start|><|plugin|>" + _WITH_PARAMETERS + "<|action_end|>",
            thought="",
        ),
        "llama3_json": Family(
            "plain", "llama3_json", "<|python_tag|>" + _WITH_PARAMETERS, thought="", between=";"
        ),
        "olmo3": Family(
            "think",
            "olmo3",
            "{{ f.name }}("
            + _EACH
            + "{{ key }}={{ value | tojson }}{{ ', ' if not loop.last }}{% endfor %})\n",
            begin="<function_calls>\n",
            end="</function_calls>",
        ),
        "lfm2": Family(
            "think",
            "lfm2",
            "{{ f.name }}("
            + _EACH
            + "{{ key }}="
            + _PYTHON
            + "{{ ', ' if not loop.last }}{% endfor %})",
            begin="<|tool_call_start|>[",
            between=", ",
            end="]<|tool_call_end|>",
        ),
        "gemma4": Family(
            "gemma4",
            "gemma4",
            "<|tool_call>call:{{ f.name }}{{ said(f.arguments) }}<tool_call|>",
            thought="<|channel>thought\nTHOUGHT\n<channel|>",
            stop="<turn|>",
            macros=_GEMMA,
        ),
        "apertus": Family(
            "apertus",
            "apertus",
            '{"{{ f.name }}": ' + _JSON + "}",
            thought="<|inner_prefix|>THOUGHT<|inner_suffix|>",
            begin="<|tools_prefix|>[",
            between=", ",
            end="]<|tools_suffix|>",
            stop="<|assistant_end|>",
        ),
        "k2_horizon": Family(
            "k2_horizon",
            "k2_horizon",
            "<ifm|tool_call>{{ f.name }}"
            + _EACH
            + "<ifm|arg_key>{{ key }}</ifm|arg_key><ifm|arg_value>"
            + _RAW
            + "</ifm|arg_value>{% endfor %}</ifm|tool_call>",
            thought="<ifm|think>THOUGHT</ifm|think>",
            silent="<ifm|think></ifm|think>",
            prompt="<ifm|think>",
            begin="<ifm|tool_calls>",
            end="</ifm|tool_calls>",
            stop="<|ifm|im_end|>",
        ),
    }
)
"""Every family by the name of its calls' format."""
