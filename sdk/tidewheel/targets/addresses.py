"""Which addresses a request may go to: those of the public internet, and what the worker's file allows beside them.

The table is our own: what Python calls global has changed between its versions, and never looked into addresses that
hold another one. An address that wraps another is as good as the one inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# RFC 6890 and its registry, the nearest first.
_REFUSED_4 = tuple(
    (IPv4Network(network), word)
    for network, word in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a carrier"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's own"),  # public by its number, answered by the host of a virtual machine
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "of documentation"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "of benchmarks"),
        ("198.51.100.0/24", "of documentation"),
        ("203.0.113.0/24", "of documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_GLOBAL_6 = IPv6Network("2000::/3")  # All else is none, or wraps another.
_REFUSED_6 = tuple(
    (IPv6Network(network), word)
    for network, word in (
        ("2001:2::/48", "of benchmarks"),
        ("2001:10::/28", "reserved"),
        ("2001:20::/28", "reserved"),
        ("2001:db8::/32", "of documentation"),
        ("3fff::/20", "of documentation"),
        ("::1/128", "loopback"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)
_MAPPED, _COMPATIBLE = IPv6Network("::ffff:0:0/96"), IPv6Network("::/96")
_NAT64, _SIX_TO_FOUR, _TEREDO = IPv6Network("64:ff9b::/96"), IPv6Network("2002::/16"), IPv6Network("2001::/32")
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})

_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.ASCII | re.IGNORECASE)


def refusal(address: Address, allowed: Iterable[Network]) -> str | None:
    """Why nothing may be sent to an address; None when it may."""
    if any(address in network for network in allowed):
        return None
    if isinstance(address, IPv4Address):
        return next((word for network, word in _REFUSED_4 if address in network), None)
    if address in _MAPPED:  # the same address in another dress: it may be allowed as itself
        return refusal(IPv4Address(int(address) & 0xFFFF_FFFF), allowed)
    if (word := next((word for network, word in _REFUSED_6 if address in network), None)) is not None:
        return word
    inner = list(_wrapped(address))
    if not inner and address not in _GLOBAL_6:
        return "reserved"
    return next((word for each in inner if (word := refusal(each, ())) is not None), None)


def _wrapped(address: IPv6Address) -> Iterator[IPv4Address]:
    """The addresses that one holds and that somebody on the way would send on to."""
    bits = int(address)
    if address in _COMPATIBLE or address in _NAT64:
        yield IPv4Address(bits & 0xFFFF_FFFF)
    if address in _SIX_TO_FOUR:
        yield IPv4Address(bits >> 80 & 0xFFFF_FFFF)
    if address in _TEREDO:
        yield IPv4Address(bits >> 64 & 0xFFFF_FFFF)
        yield IPv4Address(~bits & 0xFFFF_FFFF)
    if bits >> 32 & 0xFFFF_FFFF in _ISATAP:
        yield IPv4Address(bits & 0xFFFF_FFFF)


def literal(host: str) -> Address | None:
    """The address that a host is, where it is no name.

    ValueError for what a resolver would take for one though it is written oddly: `127.1`, `0x7f.1`, `2130706433`.
    """
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        if _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
            raise ValueError(f"{host!r} is a number that some take for an address: write the address") from None
        return None
