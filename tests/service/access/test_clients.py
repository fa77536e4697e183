import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.access.clients import client_of


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_addresses_of_one_network_are_one_client(network, first, second):
    base = network << 64
    names = {client_of(str(ipaddress.IPv6Address(base + host))) for host in (first, second)}
    assert len(names) == 1 or network == 0


@given(st.ip_addresses(v=6), st.ip_addresses(v=6))
def test_addresses_of_two_networks_are_two_clients(one, other):
    if int(one) >> 64 != int(other) >> 64:
        assert client_of(str(one)) != client_of(str(other))


@given(st.ip_addresses(v=4))
def test_an_address_within_the_other_family_is_itself(address):
    assert client_of(str(address)) == str(address)
    assert client_of(f"::ffff:{address}") == str(address)


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("fe80::1%eth0", "fe80::/64"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("unix:", "unix:"),
        ("::1\0", "::1\0"),
    ],
)
def test_what_an_address_may_look_like(address, client):
    assert client_of(address) == client
