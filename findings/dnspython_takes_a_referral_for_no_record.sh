#!/usr/bin/env bash
# dnspython 2.9.2 (2026), knot 3.2: a server that only says who else might know is taken for one that says "there is none".
# Expected: a referral (no answer, no SOA, but NS records of a zone below: RFC 2308, 2.1 and 2.2) is none, so that the next
# server is asked, or an error says so; and the same for an alias that leads out of what the server knows.
# Seen: both are NoAnswer, the error of a name that has no such record; the server after it, which has the address, is not
# asked; and with raise_on_no_answer=False both are an empty answer, that may be believed for 300 seconds.
# Needs knotd, or apt-get to fetch it (Debian, Ubuntu).
set -euo pipefail
folder=$(mktemp -d)
trap 'kill $(cat "$folder"/*/pid) 2>/dev/null || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check dnspython==2.9.2
knotd=$(command -v knotd || true)
if [ -z "$knotd" ]; then
  mkdir "$folder/packages"
  names=$(apt-get install --simulate --no-install-recommends -qq knot | sed -n 's/^Inst \([^ ]*\) .*/\1/p')
  # shellcheck disable=SC2086
  (cd "$folder/packages" && apt-get download -q $names >/dev/null 2>&1)
  for package in "$folder"/packages/*.deb; do dpkg -x "$package" "$folder/system"; done
  export LD_LIBRARY_PATH
  LD_LIBRARY_PATH=$(echo "$folder"/system/usr/lib/*-linux-gnu "$folder"/system/lib/*-linux-gnu | tr ' ' :)
  knotd=$folder/system/usr/sbin/knotd
fi
serve() { # NAME PORT ZONE, and its records on stdin
  mkdir "$folder/$1"
  { printf '$ORIGIN %s.\n$TTL 60\n@ SOA ns mail 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n' "$3"; cat; } >"$folder/$1/zone"
  cat >"$folder/$1/knot.conf" <<CONF
server:
    rundir: "$folder/$1"
    listen: 127.0.0.1@$2
database:
    storage: "$folder/$1/database"
zone:
  - domain: $3
    storage: "$folder/$1"
    file: zone
CONF
  "$knotd" -c "$folder/$1/knot.conf" >"$folder/$1/log" 2>&1 &
  echo $! >"$folder/$1/pid"
}
serve parent 25301 example <<'ZONE'
pool NS ns.pool
ns.pool A 127.0.0.1
alias CNAME engine.pool
ZONE
serve child 25302 pool.example <<'ZONE'
engine A 10.0.0.1
ZONE
sleep 2
cat >"$folder/ask.py" <<'PY'
import dns.nameserver
import dns.rdatatype
import dns.resolver


def ask(name, *ports, strict=True):
    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers = [dns.nameserver.Do53Nameserver("127.0.0.1", port) for port in ports]
    try:
        answer = resolver.resolve(name, "A", raise_on_no_answer=strict)
    except dns.resolver.NoAnswer as error:
        kinds = {dns.rdatatype.to_text(one.rdtype) for one in error.kwargs["response"].authority}
        return "NoAnswer", sorted(kinds)
    return [row.address for row in answer.rrset or ()], answer.chaining_result.minimum_ttl


print("the server that has it:          ", ask("engine.pool.example.", 25302))
print("the one above it:                ", ask("engine.pool.example.", 25301))
print("the one above it, then it:       ", ask("engine.pool.example.", 25301, 25302))
print("not strict:                      ", ask("engine.pool.example.", 25301, strict=False))
print("an alias of it, at the one above:", ask("alias.example.", 25301))
assert ask("engine.pool.example.", 25302) == (["10.0.0.1"], 60)
assert ask("engine.pool.example.", 25301) == ("NoAnswer", ["NS"])
assert ask("engine.pool.example.", 25301, 25302) == ("NoAnswer", ["NS"])
assert ask("engine.pool.example.", 25301, strict=False) == ([], 300)
PY
"$folder/venv/bin/python" "$folder/ask.py"
