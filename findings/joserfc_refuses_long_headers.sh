#!/usr/bin/env bash
# joserfc 1.8.0: a signed token whose header has more than 512 bytes is refused, whatever is in it.
# Expected: a token is read whose header brings its key's certificate (`x5c`, RFC 7515 4.1.6; one of RSA is a thousand
# bytes and more), as PyJWT 2.15.1 reads it.
# Seen: ExceededSizeError("Header size exceeds 512 bytes."); `jwt.decode` takes a registry of one's own with another
# `max_header_length`, and says nowhere that it is needed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check joserfc==1.8.0 pyjwt==2.15.1 cryptography
cat > "$folder/headers.py" <<'PY'
import base64
from datetime import datetime, timedelta, timezone

import jwt as pyjwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc import jws, jwt
from joserfc.errors import ExceededSizeError
from joserfc.jwk import RSAKey

private = rsa.generate_private_key(65537, 2048)
name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "sso.example")])
now = datetime.now(timezone.utc)
certificate = (
    x509.CertificateBuilder()
    .subject_name(name)
    .issuer_name(name)
    .public_key(private.public_key())
    .serial_number(1)
    .not_valid_before(now)
    .not_valid_after(now + timedelta(days=1))
    .sign(private, hashes.SHA256())
)
chain = [base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()]
token = pyjwt.encode({"sub": "alice"}, private, "RS256", headers={"x5c": chain})
print(f"a header of {len(base64.urlsafe_b64decode(token.split('.')[0] + '=='))} bytes")
print("PyJWT:", pyjwt.decode(token, private.public_key(), ["RS256"]))
key = RSAKey.import_key(private.public_key())
try:
    jwt.decode(token, key, algorithms=["RS256"])
except ExceededSizeError as error:
    print("joserfc:", error)
else:
    raise SystemExit("joserfc reads it by now")
roomy = jws.JWSRegistry(algorithms=["RS256"])
roomy.max_header_length = 8192
print("joserfc with room:", jwt.decode(token, key, registry=roomy).claims)
PY
"$folder/venv/bin/python" "$folder/headers.py"
