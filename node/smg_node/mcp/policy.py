"""Policy of runs: whether a tool may run for a request, must be allowed by a person first, or may not, and by which rule.

    the operator   1. the tool's own `approval`   2. the first pattern of `rules` that fits   3. `trust`
                   but a tool that is not as it was pinned is asked about, whatever would allow it
    the request    4. its `require_approval`

The operator's first rule that speaks counts. A request makes that stricter and never looser. Pure.
"""

from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from smg_node.core.generation.tool_serving import ApprovalRule
from smg_node.mcp.catalog.hints import Hints, fits
from smg_node.mcp.server_spec import ServerSpec, Verdict

DEFAULT_RULE: Final = "default"
PINNED: Final = "pin: not as it was pinned"
_STRICTNESS: Final[dict[Verdict, int]] = {"allow": 0, "ask": 1, "deny": 2}


class Decision(NamedTuple):
    """A verdict and the rule that decided. `by_request`: it is the request's own wish, and no operator's."""

    verdict: Verdict
    rule: str
    by_request: bool = False


def decide(
    spec: ServerSpec,
    tool: str,
    hints: Hints,
    wish: ApprovalRule | None,
    *,
    changed: bool = False,
) -> Decision:
    """Return whether a server's tool may run; `wish` is what the request says, None for nothing.

    `changed`: the tool is not as the operator pinned it.
    """
    said = _operators(spec, tool, hints)
    if changed and said.verdict == "allow":
        said = Decision("ask", PINNED)
    wished = None if wish is None else _requests(wish, tool, hints)
    if wished is None:
        return said
    stricter = _STRICTNESS[wished.verdict] - _STRICTNESS[said.verdict]
    return wished if stricter > 0 or (not stricter and said.rule == DEFAULT_RULE) else said


def _operators(spec: ServerSpec, tool: str, hints: Hints) -> Decision:
    own = spec.rule(tool).approval
    if own is not None:
        return Decision(own, f"tools.{tool}.approval")
    for pattern, verdict in spec.rules:
        if fnmatchcase(tool, pattern) or fnmatchcase(f"{spec.name}/{tool}", pattern):
            return Decision(verdict, f"rules: {pattern}")
    rule = f"trust: {spec.trust}"
    match spec.trust:
        case "trusted":
            return Decision("allow", rule)
        case "untrusted" if not hints.read_only:
            return Decision("ask", rule)
        case "sandboxed" if not (hints.read_only and hints.closed_world):
            return Decision("deny", rule)
        case _:
            return Decision("allow", DEFAULT_RULE)


def _requests(wish: ApprovalRule, tool: str, hints: Hints) -> Decision:
    rule = "require_approval"
    if wish.always is not None and fits(wish.always, tool, hints):
        return Decision("ask", f"{rule}.always", by_request=True)
    if wish.never is not None and fits(wish.never, tool, hints):
        return Decision("allow", f"{rule}.never", by_request=True)
    verdict: Verdict = "ask" if wish.otherwise == "always" else "allow"
    return Decision(verdict, rule, by_request=True)
