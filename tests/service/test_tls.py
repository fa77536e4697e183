import shutil
import ssl

import httpx
import pytest

from service.settings import Settings
from service.tls import ServerTls, TlsFiles, TlsFilesError
from tests.service.certificates import Authority, encrypt
from tests.service.live import live


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("other-ca"), "another-ca")


@pytest.fixture(scope="module")
def pair(authority):
    return authority.issue("server")


def trusting(authority, pair=None):
    context = ssl.create_default_context(cafile=authority.certificate)
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


def get(address, context):
    return httpx.get(f"{address}/readyz", verify=context, timeout=30)


def name_of_server(port, context):
    """Common name of the certificate that a new connection is shown."""
    import socket

    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        subject = secure.getpeercert()["subject"]
        assert secure.version() in ("TLSv1.2", "TLSv1.3")
    return dict(field for group in subject for field in group)["commonName"]


def test_https_is_served_and_said(authority, pair):
    with live(Settings(tls_certificate=pair.certificate, tls_key=pair.key)) as one:
        assert one.url == f"https://127.0.0.1:{one.port}"
        assert get(one.url, trusting(authority)).status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{one.port}/readyz", timeout=30)


def test_a_client_without_a_certificate_of_the_ca_is_refused(authority, stranger, pair):
    files = {"tls_certificate": pair.certificate, "tls_key": pair.key}
    with live(Settings(**files, tls_client_ca=authority.certificate)) as one:
        known = trusting(authority, authority.issue("client"))
        assert get(one.url, known).status_code == 200
        for context in (trusting(authority), trusting(authority, stranger.issue("client"))):
            with pytest.raises((httpx.TransportError, ssl.SSLError)):
                get(one.url, context)


def test_a_changed_certificate_is_shown_to_the_next_connection(authority, stranger, tmp_path):
    certificate, key, ca = tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt"

    def place(pair, client_ca):
        shutil.copy(pair.certificate, certificate)
        shutil.copy(pair.key, key)
        shutil.copy(client_ca, ca)

    place(authority.issue("before"), authority.certificate)
    files = {"tls_certificate": certificate, "tls_key": key, "tls_client_ca": ca}
    ours = trusting(authority, authority.issue("client"))
    with live(Settings(**files)) as one:
        assert name_of_server(one.port, ours) == "before"

        place(authority.issue("half"), authority.certificate)
        key.write_text("half written")
        one.run(one.app.state.reloads.look())
        assert name_of_server(one.port, ours) == "before"

        place(authority.issue("after"), stranger.certificate)
        one.run(one.app.state.reloads.look())
        theirs = trusting(authority, stranger.issue("client"))
        assert name_of_server(one.port, theirs) == "after"
        assert get(one.url, theirs).status_code == 200
        with pytest.raises((httpx.TransportError, ssl.SSLError)):
            get(one.url, ours)


def test_one_file_may_hold_certificate_and_key(pair, tmp_path):
    both = tmp_path / "both.pem"
    both.write_text(pair.certificate.read_text() + pair.key.read_text())
    assert isinstance(ServerTls(TlsFiles(both)).context, ssl.SSLContext)


def test_a_key_of_another_certificate_is_told_as_such(authority, pair):
    other = authority.issue("other")
    with pytest.raises(TlsFilesError, match="does not belong to the certificate") as caught:
        ServerTls(TlsFiles(pair.certificate, other.key))
    assert str(other.key) in str(caught.value)


def test_a_key_under_a_passphrase_is_refused_without_asking(pair, tmp_path):
    key = tmp_path / "locked.key"
    encrypt(pair.key, key)
    with pytest.raises(TlsFilesError, match="without passphrase"):
        ServerTls(TlsFiles(pair.certificate, key))


@pytest.mark.parametrize(
    ("role", "setting"),
    [
        ("certificate", "RANCAST_TLS_CERTIFICATE"),
        ("key", "RANCAST_TLS_KEY"),
        ("client_ca", "RANCAST_TLS_CLIENT_CA"),
    ],
)
def test_a_file_that_is_missing_or_damaged_is_named_with_its_setting(pair, tmp_path, role, setting):
    sound = {"certificate": pair.certificate, "key": pair.key, "client_ca": pair.certificate}
    missing = tmp_path / "missing.pem"
    with pytest.raises(TlsFilesError, match=rf"missing.pem \({setting}\), but it cannot be read"):
        ServerTls(TlsFiles(**{**sound, role: missing}))
    damaged = tmp_path / "damaged.pem"
    damaged.write_text("-----BEGIN nothing-----")
    with pytest.raises(TlsFilesError, match=rf"damaged.pem \({setting}\)"):
        ServerTls(TlsFiles(**{**sound, role: damaged}))
