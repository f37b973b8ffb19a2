"""Operations table: the API that answers each operation, and operations that are no generation."""

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_chaos.vendor.answers.conversation import Conversation
from smg_chaos.vendor.apis.anthropic.messages import MessagesApi
from smg_chaos.vendor.apis.bedrock.converse import ConverseApi, InvokeApi
from smg_chaos.vendor.apis.body_checks import texts
from smg_chaos.vendor.apis.call import Api, Call
from smg_chaos.vendor.apis.google.contents import ContentsApi
from smg_chaos.vendor.apis.openai.chat import ChatApi
from smg_chaos.vendor.apis.openai.responses import ResponsesApi
from smg_chaos.vendor.apis.openai.small import CompletionsApi, embeddings
from smg_chaos.vendor.errors.vendor_error import invalid
from smg_chaos.vendor.hostings.hosting import Route
from smg_chaos.vendor.hostings.operations import Operation
from smg_chaos.vendor.listings import listed, one
from smg_chaos.vendor.reply import Reply, json_reply
from smg_chaos.vendor.settings import VendorSettings


class EmbeddingsApi(CompletionsApi):
    """Embeddings; only read: the answer is made from the request alone."""

    def read(self, call: Call) -> Conversation:
        """Return the texts as a prompt."""
        inputs = texts(call.body.get("input"))
        if not inputs:
            raise invalid("'$.input' is invalid.", "input")
        conversation = Conversation(model=call.model)
        for text in inputs:
            conversation.add(text.encode())
        return conversation


class CountConverseApi(ConverseApi):
    """Token counts of Bedrock: of a Converse request, or of an invocation's body in base64."""

    def __init__(self, invoke: InvokeApi) -> None:
        self._invoke = invoke

    def read(self, call: Call) -> Conversation:
        """Return what the request inside says."""
        given = call.body.get("input") or {}
        if "converse" in given:
            return super().read(call._replace(body=given["converse"]))
        try:
            body = msgspec.json.decode(b64decode(given["invokeModel"]["body"]))
        except (KeyError, ValueError) as error:
            raise invalid("input: must be converse or invokeModel", "input") from error
        inner = call._replace(body=body, operation=Operation.INVOKE)
        return self._invoke.read(inner)


class Apis:
    """The APIs of one stand-in; of them only Responses keeps anything."""

    def __init__(self) -> None:
        self.chat = ChatApi()
        self.responses = ResponsesApi()
        self.completions = CompletionsApi()
        self.embeddings = EmbeddingsApi()
        self.messages = MessagesApi()
        self.contents = ContentsApi()
        self.converse = ConverseApi()
        self.invoke = InvokeApi()
        self.count_converse = CountConverseApi(self.invoke)


API_OF: Final[Mapping[Operation, Callable[[Apis], Api]]] = {
    Operation.CHAT: lambda apis: apis.chat,
    Operation.RESPONSES: lambda apis: apis.responses,
    Operation.COMPLETIONS: lambda apis: apis.completions,
    Operation.EMBEDDINGS: lambda apis: apis.embeddings,
    Operation.MESSAGES: lambda apis: apis.messages,
    Operation.COUNT_TOKENS: lambda apis: apis.messages,
    Operation.RAW_PREDICT: lambda apis: apis.messages,
    Operation.STREAM_RAW_PREDICT: lambda apis: apis.messages,
    Operation.COUNT_RAW: lambda apis: apis.messages,
    Operation.GENERATE: lambda apis: apis.contents,
    Operation.STREAM_GENERATE: lambda apis: apis.contents,
    Operation.COUNT_CONTENTS: lambda apis: apis.contents,
    Operation.CONVERSE: lambda apis: apis.converse,
    Operation.CONVERSE_STREAM: lambda apis: apis.converse,
    Operation.COUNT_CONVERSE: lambda apis: apis.count_converse,
    Operation.INVOKE: lambda apis: apis.invoke,
    Operation.INVOKE_STREAM: lambda apis: apis.invoke,
}


def counted(call: Call, conversation: Conversation) -> dict[str, Any] | None:
    """Return the answer of an operation that only counts or embeds; None for all others."""
    tokens, operation = conversation.prompt_tokens, call.operation
    if operation in (Operation.COUNT_TOKENS, Operation.COUNT_RAW):
        return {"input_tokens": tokens}
    if operation is Operation.COUNT_CONTENTS:
        details = [{"modality": "TEXT", "tokenCount": tokens}]
        return {"totalTokens": tokens, "promptTokensDetails": details}
    if operation is Operation.COUNT_CONVERSE:
        return {"inputTokens": tokens}
    if operation is Operation.EMBEDDINGS:
        return embeddings(call, texts(call.body.get("input")), tokens)
    return None


def small_reply(
    apis: Apis, route: Route, method: str, settings: VendorSettings, models: Sequence[str]
) -> Reply | None:
    """Return the reply to what needs no model: listings and stored responses; None for all others."""
    if route.operation is Operation.MODELS:
        return json_reply(listed(route.style, settings.kind, models))
    if route.operation is Operation.MODEL:
        return json_reply(one(route.style, models, route.names["model"]))
    if route.operation is Operation.STORED_RESPONSE:
        return json_reply(apis.responses.stored(route.names["id"], remove=method == "DELETE"))
    return None
