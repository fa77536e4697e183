from pathlib import Path

import pytest

from service.access.exposure import refuse_exposure
from service.errors import StartupError
from service.settings import Settings


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1"])
def test_loopback_may_be_open(address):
    refuse_exposure(Settings(), "localhost", address)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.7", "fe80::1%eth0", "::ffff:7f00:2"])
def test_anything_else_may_not(address):
    with pytest.raises(StartupError, match="everyone who reaches here") as caught:
        refuse_exposure(Settings(), "here", address)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "settings",
    [
        Settings(open_access=True),
        Settings(token_file=Path("tokens")),
        Settings(tls_certificate=Path("a"), tls_client_ca=Path("b")),
    ],
)
def test_a_lock_or_the_word_of_the_operator_is_enough(settings):
    refuse_exposure(settings, "0.0.0.0", "0.0.0.0")


def test_a_certificate_alone_is_no_lock():
    with pytest.raises(StartupError):
        refuse_exposure(Settings(tls_certificate=Path("a")), "0.0.0.0", "0.0.0.0")
