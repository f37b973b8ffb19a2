"""Domains that may be shown: names below them, paths in them, and no way around them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.builtin.domains import DomainRule, domain_rule, web_address


@pytest.mark.parametrize(
    ("domain", "url", "within"),
    [
        ("example.com", "https://example.com", True),
        ("example.com", "https://example.com/a?b#c", True),
        ("example.com", "http://www.Example.COM./a", True),
        ("example.com", "https://docs.example.com:8443/a", True),
        ("example.com", "https://notexample.com", False),
        ("example.com", "https://example.com.evil.org", False),
        ("example.com", "https://evil.org/example.com", False),
        ("example.com", "https://example.com@evil.org/", False),
        ("docs.example.com", "https://example.com", False),
        ("*.example.com", "https://docs.example.com", True),
        ("example.com/", "https://example.com/a", True),
        ("example.com/blog", "https://example.com/blog", True),
        ("example.com/blog", "https://example.com/blog/a", True),
        ("example.com/blog", "https://example.com/blogger", False),
        ("example.com/blog", "https://example.com/blog/../a", False),
        ("example.com/blog", "https://example.com/blog/%2E%2e/a", False),
        ("example.com/blog/", "https://example.com/blog/a", True),
        ("example.com/*", "https://example.com/a/b", True),
        ("example.com/*/articles", "https://example.com/en/articles/1", True),
        ("example.com/*/articles", "https://example.com/en/news", False),
        ("bücher.de", "https://xn--bcher-kva.de/a", True),
        ("xn--bcher-kva.de", "https://www.bücher.de/a", True),
        ("example.com", "https://ex%61mple.com/a", True),
        ("example.com", "https://example%2Ecom%2e/a", True),
        ("example.com", "https://example\u3002com\u3002/a", True),
        ("bücher.de", "https://b%C3%BCcher.de/a", True),
        ("fass.de", "https://fa\u00df.de/a", False),
        ("fa\u00df.de", "https://xn--fa-hia.de/a", True),
        ("xn--fa-hia.de", "https://www.FA\u1e9e.de/a", True),
        ("example.com", "https://exa\u200dmple.com/a", False),
        ("", "https://example.com", False),
        ("..", "https://example.com", False),
        ("a..b", "https://example.com", False),
    ],
)
def test_an_address_is_within_a_domain(domain: str, url: str, within: bool) -> None:
    assert DomainRule(allowed=(domain,)).allows(url) is within
    assert DomainRule(blocked=(domain,)).allows(url) is not within


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "/example.com",
        "ftp://example.com",
        "javascript:alert(1)//example.com",
        "https://",
        "https://evil.org\\@example.com",
        "https://example.com/a b",
        "https://example.com\n.evil.org",
        "https://example.com:port/",
        "https://[::1/",
        "https://evil.org%2f.example.com/",
        "https://evil.org%23.example.com/",
        "https://evil.org%ff.example.com/",
        "https://example.com/" + "a" * 3_000,
    ],
)
def test_what_is_no_address_is_shown_only_where_any_may(url: str) -> None:
    assert web_address(url) == ""
    assert not DomainRule(allowed=("example.com",)).allows(url)
    assert DomainRule(blocked=("example.com",)).allows(url)
    assert DomainRule().allows(url)


def test_what_is_blocked_is_blocked_though_it_is_allowed() -> None:
    rule = DomainRule(("example.com",), ("private.example.com",))
    assert rule.allows("https://example.com")
    assert not rule.allows("https://private.example.com")


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({}, DomainRule()),
        ({"filters": None}, DomainRule()),
        ({"allowed_domains": None, "blocked_domains": []}, DomainRule()),
        ({"filters": {"allowed_domains": ["a.org"]}}, DomainRule(("a.org",))),
        ({"allowed_domains": ["http://a.org", 3, " "]}, DomainRule(("a.org",))),
        (
            {"filters": {"allowed_domains": ["a.org"]}, "blocked_domains": ["b.org"]},
            DomainRule(("a.org",), ("b.org",)),
        ),
        ({"filters": {"type": "eq"}, "allowed_domains": "a.org"}, DomainRule()),
    ],
)
def test_both_apis_say_their_domains(settings: dict[str, Any], rule: DomainRule) -> None:
    assert domain_rule(settings) == rule


def test_an_address_is_taken_without_blanks_about_it() -> None:
    assert web_address(" https://a.org/ü?q=1 \n") == "https://a.org/ü?q=1"


@given(st.text(max_size=60), st.text(max_size=20))
def test_any_text_is_within_a_domain_or_not(url: str, domain: str) -> None:
    assert DomainRule((domain,)).allows(url) in (True, False)
    assert web_address(url) in (url.strip(), "")
