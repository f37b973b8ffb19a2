"""Reply headers that name the vendor's account and its request, which a gateway must not pass on."""

from typing import Final

from smg_chaos.vendor.answers.answer import Cost
from smg_chaos.vendor.apis.call import Call

_MANTLE_QUOTA: Final = 1_000


def account_headers(call: Call, request_id: str) -> dict[str, str]:
    """Return the headers of an answer, by whose API and hosting it is."""
    hosting = call.hosting
    if hosting.family == "aws":
        return {"x-amzn-requestid": request_id}
    if "reservation" in call.quirks:
        quota = {
            "x-amzn-usage-reservation-quota": str(_MANTLE_QUOTA),
            "x-amzn-usage-reservation-remaining": str(_MANTLE_QUOTA - 1),
        }
        return {"x-amzn-requestid": request_id, **quota}
    if hosting.family == "azure" or hosting.gate == "azure":
        return {
            "apim-request-id": request_id,
            "x-request-id": request_id,
            "x-ms-region": "East US 2",
            "x-ms-deployment-name": call.model,
            "azureml-model-session": "d2026-stand-in",
        }
    if hosting.family == "anthropic":
        heads = {"request-id": request_id, "anthropic-organization-id": "org-stand-in"}
        return heads | {"cf-ray": "stand-in-FRA", "traceresponse": "00-stand-in-01"}
    if hosting.family == "google":
        return {"server-timing": "gfet4t7; dur=42", "vary": "X-Origin"}
    heads = {"x-request-id": request_id, "set-cookie": "__cf_bm=stand-in; path=/; HttpOnly"}
    if call.kind == "openai":
        heads |= {
            "openai-organization": "org-stand-in",
            "openai-project": "proj_standin",
            "openai-processing-ms": "42",
            "openai-version": "2020-10-01",
        }
    return heads


def invocation_headers(cost: Cost) -> dict[str, str]:
    """Return the headers that tell what a whole invocation at Bedrock cost."""
    return {
        "x-amzn-bedrock-input-token-count": str(cost.new),
        "x-amzn-bedrock-output-token-count": str(cost.answer),
        "x-amzn-bedrock-invocation-latency": "42",
    }
