"""Where a request may go: every answer of a name is judged, in whatever dress it comes, and what was judged is used."""

import asyncio
import socket
from ipaddress import ip_address, ip_network

import httpcore
import pytest

from tidewheel.targets import addresses, signing
from tidewheel.targets.network import AddressRefused, Guarded

REFUSED = [
    ("0.0.0.0", "this network"),
    ("10.1.2.3", "private"),
    ("100.64.0.1", "shared by a carrier"),
    ("100.100.100.200", "shared by a carrier"),  # a cloud's metadata
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("168.63.129.16", "a cloud's own"),
    ("169.254.169.254", "link-local"),  # metadata of most clouds
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.0.0.192", "reserved"),
    ("192.0.2.1", "of documentation"),
    ("192.168.1.1", "private"),
    ("198.18.0.1", "of benchmarks"),
    ("224.0.0.1", "multicast"),
    ("255.255.255.255", "reserved"),
    ("::", "this network"),
    ("::1", "loopback"),
    ("::127.0.0.1", "loopback"),
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:169.254.169.254", "link-local"),
    ("64:ff9b::7f00:1", "loopback"),  # NAT64
    ("64:ff9b::a9fe:a9fe", "link-local"),
    ("64:ff9b:1::1", "reserved"),
    ("2002:7f00:1::", "loopback"),  # 6to4
    ("2002:a00:1::1", "private"),
    ("2001:0:a00:1::1", "private"),  # Teredo, by its server
    ("2001:0:102:304::80ff:fffe", "loopback"),  # and by its client, which stands there inverted
    ("2600::5efe:a00:1", "private"),  # ISATAP
    ("2001:db8::1", "of documentation"),
    ("fc00::1", "private"),
    ("fd00:ec2::254", "private"),  # a cloud's metadata
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("fec0::1", "private"),
    ("ff02::1", "multicast"),
    ("100::1", "reserved"),
    ("4000::1", "reserved"),
]


@pytest.mark.parametrize(("text", "word"), REFUSED)
def test_what_is_no_public_address_is_refused_in_a_word(text, word):
    assert addresses.refusal(ip_address(text), ()) == word


@pytest.mark.parametrize(
    "text",
    [
        "1.1.1.1",
        "11.0.0.1",
        "172.32.0.1",
        "193.0.0.1",
        "2606:4700::1111",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "2002:101:101::",
    ],
)
def test_a_public_address_is_good_also_in_another_dress(text):
    assert addresses.refusal(ip_address(text), ()) is None


def test_what_the_file_allows_may_be_called_and_nothing_that_only_wraps_it():
    allowed = (ip_network("10.1.0.0/16"),)
    assert addresses.refusal(ip_address("10.1.2.3"), allowed) is None
    assert addresses.refusal(ip_address("::ffff:10.1.2.3"), allowed) is None
    assert addresses.refusal(ip_address("10.2.0.1"), allowed) == "private"
    assert addresses.refusal(ip_address("2002:a01:203::1"), allowed) == "private"


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.1.", "1", "0x", "a.1"])
def test_a_number_that_some_resolvers_take_for_an_address_is_refused_as_a_host(host):
    with pytest.raises(ValueError, match="some take for an address"):
        addresses.literal(host)


@pytest.mark.parametrize("host", ["example.org", "1.example.org", "xn--bcher-kva.example", "localhost"])
def test_a_name_is_no_address(host):
    assert addresses.literal(host) is None


# --- connections ---


def connect(guarded: Guarded, host: str, port: int) -> str:
    """The address that a connection went to."""

    async def connected() -> str:
        stream = await guarded.connect_tcp(host, port)
        address = str(stream.get_extra_info("server_addr")[0])
        await stream.aclose()
        return address

    return asyncio.run(connected())


class Names:
    """A resolver that answers differently each time it is asked."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return self.answers.pop(0)


@pytest.fixture
def listening():
    """A port of this machine that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


HERE = ip_network("127.0.0.1/32")


def test_a_name_is_asked_for_once_and_what_was_checked_is_connected_to(listening):
    """Whoever owns the name may answer otherwise a moment later."""
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    assert connect(Guarded((HERE,), names), "rebind.example.org", listening) == "127.0.0.1"
    assert names.asked == ["rebind.example.org"]


@pytest.mark.parametrize(
    "answers", [["127.0.0.1", "10.0.0.1"], ["1.1.1.1", "::ffff:10.0.0.1"], ["fe80::1%2", "127.0.0.1"]]
)
def test_one_answer_that_is_refused_refuses_the_name(listening, answers):
    with pytest.raises(AddressRefused, match=r"mixed\.example\.org leads to an address that is"):
        connect(Guarded((HERE,), Names(answers)), "mixed.example.org", listening)


def test_where_one_address_does_not_answer_the_next_is_tried(listening):
    allowed = (ip_network("127.0.0.0/8"),)
    assert connect(Guarded(allowed, Names(["127.0.0.2", "127.0.0.1"])), "two.example.org", listening) == "127.0.0.1"


def test_a_name_without_an_address_cannot_be_reached(listening):
    with pytest.raises(httpcore.ConnectError, match="has no address"):
        connect(Guarded((), Names([])), "none.example.org", listening)


# --- signatures ---


def test_a_signature_is_the_one_of_the_published_example():
    """Of the specification of Standard Webhooks, and of the tests of its libraries."""
    key = signing.key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert signing.headers((key,), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}') == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_!!!!", "whsec_" + "QUFB" * 30])
def test_a_secret_that_is_none_is_refused_without_being_told(secret):
    with pytest.raises(ValueError, match="must be whsec_ and the base64 of 24-64 random bytes") as refused:
        signing.key_of(secret)
    assert not secret.removeprefix("whsec_") or secret not in str(refused.value)
