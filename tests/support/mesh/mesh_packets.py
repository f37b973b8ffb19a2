"""Packets of the mesh as Hypothesis strategies: every value that a member could say."""

from ipaddress import IPv4Address, IPv6Address

from hypothesis import strategies as st

from smg_mesh.config import META_BYTES_MAX, NEWS_BYTES_MAX
from smg_mesh.swim import wire
from smg_mesh.swim.messages import (
    Accusation,
    Ack,
    Address,
    Claim,
    Gossip,
    Hello,
    Message,
    Nack,
    News,
    Packet,
    Ping,
    PingRequest,
    Rank,
)

names = st.from_regex(r"[a-z0-9._-]{1,63}", fullmatch=True)
boots = st.integers(0, 2**64 - 1)
incarnations = st.integers(0, 2**32 - 1)


def _is_host(address: IPv4Address | IPv6Address) -> bool:
    return not (address.is_multicast or address.is_unspecified)


hosts = st.ip_addresses().filter(_is_host).map(str)
addresses = st.builds(Address, hosts, st.integers(1, 65_535))
claims = st.builds(
    Claim,
    name=names,
    boot=boots,
    incarnation=incarnations,
    rank=st.sampled_from(Rank),
    address=st.none() | addresses,
    meta=st.none() | st.binary(max_size=META_BYTES_MAX),
    accuser=st.just("") | names,
)
news = st.builds(
    News,
    origin=names,
    kind=st.from_regex(r"[a-z0-9._-]{1,32}", fullmatch=True),
    key=st.text(max_size=128).filter(str.isprintable),
    seq=boots,
    content=st.binary(max_size=NEWS_BYTES_MAX),
)


def _hello(claim: Claim, address: Address, meta: bytes, answer: bool) -> Hello:
    mine = Claim(claim.name, claim.boot, claim.incarnation, claim.rank, address, meta)
    return Hello(mine, answer)


messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(Ping, boots, names, boots, st.none() | claims),
    st.builds(Ack, boots),
    st.builds(PingRequest, boots, names, boots, addresses),
    st.builds(Nack, boots),
    st.builds(Gossip),
    st.builds(Accusation, claims),
    st.builds(_hello, claims, addresses, st.binary(max_size=META_BYTES_MAX), st.booleans()),
)


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    """Any packet that fits."""
    message = draw(messages)
    name = message.claim.name if isinstance(message, Hello) else draw(names)
    left = wire.BODY_BYTES_MAX - wire.message_bytes(message)
    rumors = []
    for claim in draw(st.lists(claims, max_size=12)):
        left -= wire.claim_bytes(claim)
        if left >= 0:
            rumors.append(claim)
    heard = []
    for item in draw(st.lists(news, max_size=4)):
        left -= wire.news_bytes(item)
        if left >= 0:
            heard.append(item)
    return Packet(
        wire.sender_tag(name),
        draw(boots),
        draw(incarnations),
        draw(st.binary(min_size=16, max_size=16)),
        message,
        tuple(rumors),
        tuple(heard),
    )
