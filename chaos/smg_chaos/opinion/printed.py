"""Printed answers of the formats that `spellings` does not have, as their models print them.

They call functions of `TOOLS`, which are declared like those that the parsers' transcripts call:
what fails here can be put there as it is.
"""

from typing import Any, Final

from smg_node.core.generation.request import Tool


def _tool(name: str, **properties: Any) -> Tool:
    return Tool(name, parameters={"type": "object", "properties": properties})


_STRING: Final = {"type": "string"}
TOOLS: Final = (
    _tool(
        "find_museum",
        city=_STRING,
        max={"type": "integer"},
        open={"type": "boolean"},
        note={"type": ["string", "null"]},
        tags={"type": "array", "items": _STRING},
    ),
    _tool("get_tide", port=_STRING),
    _tool("list_rooms"),
    _tool("write_file", path=_STRING, text=_STRING),
)

_MUSEUM: Final = '{"name": "find_museum", "arguments": {"city": "Ghent", "max": 3, "note": null}}'
_ROOMS: Final = '{"name": "list_rooms", "arguments": {}}'
_PAIRS: Final = "<arg_key>city</arg_key>\n<arg_value>Ghent</arg_value>\n<arg_key>max</arg_key>\n<arg_value>3</arg_value>\n"
_GCML: Final = (
    '<｜GCML｜tool_calls>\n<｜GCML｜invoke name="find_museum">\n<｜GCML｜parameter name="city" string="true">Ghent'
    '</｜GCML｜parameter>\n<｜GCML｜parameter name="max" string="false">3</｜GCML｜parameter>\n</｜GCML｜invoke>\n'
    '<｜GCML｜invoke name="list_rooms">\n</｜GCML｜invoke>\n</｜GCML｜tool_calls>'
)
_V41: Final = tuple(
    (word, f" {word.replace('tool_', '')}") for word in ("tool_calls", "invoke", "parameter")
)


def _v41(text: str) -> str:
    text = text.replace("GCML", "DSML")
    for word, spaced in _V41:
        text = text.replace(f"｜{word}", f"｜{spaced}")
    return text


CALLS: Final[dict[str, tuple[str, ...]]] = {
    "cofl": (
        '<cofl:tool_calls>\n<cofl:tool_call id="0" name="find_museum"><cofl:value name="city">Ghent</cofl:value>'
        '<cofl:value name="max" type="integer">3</cofl:value></cofl:tool_call>\n'
        '<cofl:tool_call id="1" name="list_rooms"></cofl:tool_call></cofl:tool_calls>',
    ),
    "dots": (
        '<dots_function_call>\n<invoke name="find_museum">\n<parameter name="city">Ghent</parameter>\n'
        '<parameter name="max">3</parameter>\n</invoke>\n<invoke name="list_rooms">\n</invoke>\n</dots_function_call>',
    ),
    "dsml_gcml": (_GCML,),
    "dsml_v41": (_v41(_GCML),),
    "functiongemma": (
        "<start_function_call>call:find_museum{city:<escape>Ghent<escape>,max:3}<end_function_call>"
        "<start_function_call>call:list_rooms{}<end_function_call><start_function_response>",
    ),
    "gemma4": (
        '<|tool_call>call:find_museum{city:<|"|>Ghent<|"|>,max:3,tags:[<|"|>art<|"|>,<|"|>x<|"|>]}<tool_call|>'
        "<|tool_call>call:list_rooms{}<tool_call|>",
        '<|tool_call>call:get_tide(port=<|"|>Brest<|"|>), call:write_file{"path":"a\\"b"}<tool_call|>',
    ),
    "gigachat3": (
        f"I look.<|message_sep|>\n\nfunction call<|role_sep|>\n{_MUSEUM}<|message_sep|>\n",
        f"<|function_call|>{_ROOMS}<|message_sep|><|function_call|>{_MUSEUM}",
    ),
    "granite": (
        f"<tool_call>[{_MUSEUM}, {_ROOMS}]<|end_of_text|>",
        f"<function_call> {_MUSEUM}\n<function_call> {_ROOMS}",
    ),
    "hunyuan_a13b": (f"<tool_calls>\n[{_MUSEUM},\n{_ROOMS}]\n</tool_calls>",),
    "hy_v3": (
        f"<tool_calls>\n<tool_call>find_museum<tool_sep>\n{_PAIRS}</tool_call>\n"
        "<tool_call>list_rooms<tool_sep></tool_call>\n</tool_calls>",
    ),
    "internlm": (f"<|action_start|><|plugin|>\n{_MUSEUM}<|action_end|>\n",),
    "lfm2": (
        "<|tool_call_start|>[find_museum(city='it\\'s', max=3), list_rooms()]<|tool_call_end|>",
        f"<|tool_call_start|>[{_MUSEUM}]<|tool_call_end|><|tool_call_start|>{_ROOMS}<|tool_call_end|>",
    ),
    "longcat": (
        f"<longcat_tool_call>\n{_MUSEUM}\n</longcat_tool_call>\n<longcat_tool_call>{_ROOMS}</longcat_tool_call>",
    ),
    "minicpm5": (
        '<function name="find_museum"><param name="city"><![CDATA[a & b]]></param><param name="max">3</param>'
        '</function>\n<function name="list_rooms"></function>',
    ),
    "minimax_m3": (
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="find_museum">]<]minimax[>[<city>Ghent]<]minimax[>[</city>'
        "]<]minimax[>[<max>3]<]minimax[>[</max>]<]minimax[>[<tags>]<]minimax[>[<item>a]<]minimax[>[</item>"
        "]<]minimax[>[</tags>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
    ),
    "nemotron_json": (f"<TOOLCALL>[{_MUSEUM}, {_ROOMS}]</TOOLCALL>",),
    "olmo3": (
        '<function_calls>\nfind_museum(city="Ghent", max=3, tags=[\'a\', "b"])\nlist_rooms()\n</function_calls>',
    ),
    "phi4": (
        f"<|tool_call|>[{_MUSEUM}, {_ROOMS}]<|/tool_call|>",
        f"functools[{_MUSEUM}, {_ROOMS}]",
    ),
    "plamo3": (
        "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>get_tide"
        "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>"
        '{"port":"Brest"}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>'
        "<|plamo:end_tool_requests:plamo|>",
    ),
    "sarashina": (
        "<|tool_calls|>[{'name': 'find_museum', 'arguments': {'city': 'it\\'s', 'max': 3, 'note': None}}, "
        "{'name': 'list_rooms', 'arguments': {}}]",
    ),
    "seed_oss": (
        "<seed:tool_call>\n<function=find_museum>\n<parameter=city>Ghent</parameter>\n<parameter=max>3</parameter>\n"
        "</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=list_rooms>\n</function>\n</seed:tool_call>",
    ),
    "tool_calls_json": (f"<tool_calls>\n{_MUSEUM}\n{_ROOMS}\n</tool_calls>",),
    "xlam": (
        f"[{_MUSEUM}, {_ROOMS}]",
        f"```json\n[{_MUSEUM}]\n```",
        f"[TOOL_CALLS][{_MUSEUM}] and <tool_call>[{_ROOMS}]</tool_call>",
    ),
    "json_array": ('[{"name": "find_museum", "parameters": {"city": "Ghent", "max": 3}}]',),
    "bare_arguments": ('{"city": "Ghent", "max": 3, "tags": ["a", {"b": null}]}',),
}
"""By format of calls; the last two are what a grammar forces."""

JOINT: Final[dict[str, tuple[str, ...]]] = {
    "apertus": (
        '<|inner_prefix|>I need tides.<|tools_prefix|>[{"get_tide": {"port": "Brest"}}, {"list_rooms": null}]'
        "<|tools_suffix|>\nWait.<|inner_suffix|>There.<|assistant_end|>",
    ),
    "harmony": (
        "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>Four.<|return|>",
        "<|start|>assistant<|channel|>commentary to=functions.get_tide <|constrain|>json<|message|>"
        '{"port":"Brest"}<|call|>',
        " to=functions.list_rooms<|channel|>commentary json<|message|>{}<|call|>",
        "<|channel|>analysis to=browser.search<|message|>{}<|call|><|start|>assistant<|channel|>commentary<|message|>"
        "I look.<|end|>",
    ),
    "inkling": (
        "<|content_thinking|>Leap?<|end_message|><|message_model|><|content_text|>I look.<|end_message|>"
        '<|message_model|>get_tide<|content_invoke_tool_json|>{"name":"get_tide","args":{"port":"Brest"}}'
        "<|end_message|><|content_model_end_sampling|>",
    ),
    "k2_horizon": (
        "I need tides.</ifm|think_fast><ifm|tool_calls>\n<ifm|tool_call>find_museum\n<ifm|arg_key>city</ifm|arg_key>"
        "<ifm|arg_type>string</ifm|arg_type><ifm|arg_value>Ghent</ifm|arg_value>\n</ifm|tool_call>\n"
        f"<ifm|tool_call>{_ROOMS}</ifm|tool_call>\n</ifm|tool_calls>That is all.<|ifm|im_end|>",
    ),
    "kimi_k3": (
        "Sum them.<|close|>think<|sep|><|open|>response<|sep|>42<|close|>response<|sep|><|close|>message<|sep|>",
        '<|open|>tools<|sep|><|open|>call tool="find_museum" index="1"<|sep|><|open|>argument key="max" type="number"'
        '<|sep|>3<|close|>argument<|sep|><|open|>argument key="city" type="string"<|sep|>a &quot; b<|close|>argument'
        '<|sep|><|close|>call<|sep|><|open|>call tool="list_rooms" index="2"<|sep|><|open|>json type="object"<|sep|>'
        "{}<|close|>json<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>",
    ),
    "muse": (
        " to=self<|message|>Rhyme with sea.<|eom|><|start|>assistant to=user<|message|>Free.<|eot|>",
        "<|start|>assistant to=find_museum<|message|><atem:function_calls>\n"
        '<atem:invoke name="find_museum">\n<atem:parameter name="city">a</atem:parameter>\n'
        '<atem:parameter name="max">3</atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eot|>',
    ),
}
"""By format of thoughts and calls in one."""
