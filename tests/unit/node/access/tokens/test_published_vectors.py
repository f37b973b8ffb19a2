"""Examples of the standards: their keys are read as they stand there, and their signatures verified by them.

RFC 7515 A.2 and A.3 (signatures), RFC 7517 A.1 (a key set), RFC 8037 A.2 and A.4 (Ed25519).
"""

import json
from typing import Any

import pytest

from smg_node.access.tokens.key_set import SkippedKey, read_key_set
from smg_node.access.tokens.token_head import read_token

CLAIMS = (
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
)
RSA_KEY = {
    "kty": "RSA",
    "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZ"
    "S-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2Ca"
    "pHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h"
    "4FRWyuXpoQ",
    "e": "AQAB",
}
RSA_TOKEN = (
    f"eyJhbGciOiJSUzI1NiJ9.{CLAIMS}.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5Y"
    "Kt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0Gar"
    "ZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWk"
    "WywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
)
EC_KEY = {
    "kty": "EC",
    "crv": "P-256",
    "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
}
EC_TOKEN = (
    f"eyJhbGciOiJFUzI1NiJ9.{CLAIMS}"
    ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
)
OKP_KEY = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
OKP_TOKEN = (
    "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
    ".hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
)
KEY_SET = {
    "keys": [
        {
            "kty": "EC",
            "crv": "P-256",
            "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
            "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
            "use": "enc",
            "kid": "1",
        },
        {
            "kty": "RSA",
            "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCi"
            "FV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d"
            "0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-cs"
            "FCur-kEgU8awapJzKnqDKgw",
            "e": "AQAB",
            "alg": "RS256",
            "kid": "2011-04-29",
        },
    ]
}


@pytest.mark.parametrize(
    ("key", "algorithm", "token"),
    [
        (RSA_KEY, "RS256", RSA_TOKEN),
        (EC_KEY, "ES256", EC_TOKEN),
        (OKP_KEY, "EdDSA", OKP_TOKEN),
        (OKP_KEY, "Ed25519", OKP_TOKEN),
    ],
)
def test_a_published_signature_is_good_and_a_changed_one_is_not(
    key: dict[str, Any], algorithm: str, token: str
) -> None:
    (mine,) = read_key_set(json.dumps({"keys": [key]}).encode()).candidates("", algorithm)
    signed, _, _ = token.rpartition(".")
    # What RFC 8037 signs are no claims, so it is the head of another token that tells the bytes.
    carrier = f"{signed.partition('.')[0]}.{CLAIMS}.{token.rpartition('.')[2]}"
    signature = read_token(carrier).signature
    assert mine.verify(algorithm, signed.encode(), signature)
    assert not mine.verify(algorithm, signed.encode() + b"x", signature)
    assert not mine.verify(algorithm, signed.encode(), signature[::-1])


def test_the_published_key_set_has_one_key_for_signatures() -> None:
    found = read_key_set(json.dumps(KEY_SET).encode())
    assert [(key.kid, key.algorithms) for key in found.keys] == [("2011-04-29", ("RS256",))]
    assert found.skipped == (SkippedKey("1", "EC P-256", "not_for_signatures"),)
