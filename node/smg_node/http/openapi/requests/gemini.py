"""Gemini schemas: generateContent in `/openapi.json`; keys may be spelled in snake_case as well."""

from collections.abc import Mapping
from typing import Final

from smg_node.dialects.gemini.parts import NAME_MAX
from smg_node.dialects.gemini.tools import NAME_CHARACTERS_MAX
from smg_node.dialects.options import ReaderOptions
from smg_node.http.openapi.requests.makers import (
    FLAG,
    NULL,
    OBJECT,
    TEXT,
    Schema,
    array,
    described,
    either,
    integer,
    keyed,
    number,
    optional,
    text,
)

_LIMITS: Final = ReaderOptions()
_PART: Final = keyed(
    text=TEXT,
    thought=FLAG,
    thoughtSignature=described(TEXT, "As it came with an answer."),
    inlineData=optional(keyed(("mimeType", "data"), mimeType=text(1, 256), data=text(1))),
    fileData=optional(keyed(("fileUri",), mimeType=text(1, 256), fileUri=text(1))),
    functionCall=optional(keyed(("name",), id=TEXT, name=text(1, NAME_MAX), args=OBJECT)),
    functionResponse=optional(keyed(("name",), id=TEXT, name=text(1, NAME_MAX), response=OBJECT)),
)
_CONTENT: Final = keyed(
    ("parts",),
    role={"enum": ["user", "model", "function", None]},
    parts=array(_PART, high=_LIMITS.parts_max, required=True),
)
_FUNCTION: Final = keyed(
    ("name",),
    name={"type": "string", "pattern": f"^[A-Za-z0-9_.:-]{{1,{NAME_CHARACTERS_MAX}}}$"},
    description=TEXT,
    parameters=described(OBJECT, "A schema with types in capitals."),
    parametersJsonSchema=described(OBJECT, "A JSON Schema; instead of `parameters`."),
)
# Whatever else a tool is, nothing here executes it.
_TOOL: Final = {
    **keyed(
        functionDeclarations=array(_FUNCTION, high=_LIMITS.tools_max),
        function_declarations=array(_FUNCTION, high=_LIMITS.tools_max),
    ),
    "additionalProperties": NULL,
}
_CALLING: Final = keyed(
    mode=described(TEXT, "AUTO, ANY, NONE or VALIDATED."),
    allowedFunctionNames=array({"type": "string"}),
)
_CONFIG: Final = keyed(
    temperature=number(0, 2),
    topP=number(0, 1),
    topK=integer(0),
    candidateCount=integer(1, _LIMITS.n_max),
    maxOutputTokens=integer(1),
    stopSequences=array(text(1, _LIMITS.stop_max_bytes, required=True), high=_LIMITS.stop_max),
    seed=integer(-(2**63), 2**63 - 1),
    presencePenalty=number(-2, 2),
    frequencyPenalty=number(-2, 2),
    responseMimeType={"enum": ["text/plain", "application/json", "text/x.enum", None]},
    responseSchema=described(OBJECT, "A schema with types in capitals."),
    responseJsonSchema=described(OBJECT, "A JSON Schema; instead of `responseSchema`."),
    responseModalities=array({"enum": ["TEXT"]}),
    responseLogprobs=FLAG,
    logprobs=described(integer(0, 20), "Only with `responseLogprobs`."),
    thinkingConfig=optional(
        keyed(
            includeThoughts=FLAG,
            thinkingBudget=described(integer(-1), "-1 leaves it to the model, 0 asks for none."),
            thinkingLevel=described(TEXT, "MINIMAL, LOW, MEDIUM, HIGH or XHIGH."),
        )
    ),
)
_REQUEST: Final = keyed(
    ("contents",),
    contents=array(_CONTENT, 1, _LIMITS.messages_max, required=True),
    systemInstruction=optional(_CONTENT),
    tools=array(_TOOL, high=_LIMITS.tools_max),
    toolConfig=optional(keyed(functionCallingConfig=optional(_CALLING))),
    generationConfig=optional(_CONFIG),
    safetySettings=described(
        array(keyed(category=TEXT, threshold=TEXT)), "Refused where one asks to block."
    ),
)

GEMINI_SCHEMAS: Final[Mapping[str, Schema]] = {
    "GenerateContentRequest": _REQUEST,
    "GenerateContentAnswer": either(
        keyed(
            ("candidates", "usageMetadata", "modelVersion", "responseId"),
            candidates={
                "type": "array",
                "items": keyed(
                    ("content", "index"),
                    content=_CONTENT,
                    finishReason={"enum": ["STOP", "MAX_TOKENS", "SAFETY"]},
                    index={"type": "integer"},
                ),
            },
            usageMetadata={"type": "object"},
            modelVersion={"type": "string"},
            responseId={"type": "string"},
        ),
        keyed(("totalTokens",), totalTokens={"type": "integer"}),
    ),
    "GoogleModel": keyed(
        ("name", "displayName", "supportedGenerationMethods"),
        name={"type": "string"},
        version={"type": "string"},
        displayName={"type": "string"},
        inputTokenLimit={"type": "integer"},
        outputTokenLimit={"type": "integer"},
        supportedGenerationMethods={"type": "array", "items": {"type": "string"}},
    ),
    "GoogleModelList": keyed(
        ("models",),
        models={"type": "array", "items": {"$ref": "#/components/schemas/GoogleModel"}},
        nextPageToken={"type": "string"},
    ),
}
"""By name, as routes have them."""
