"""An upstream whose certificate expires: the client is told, nothing is sent, and the conversation goes on later."""

import asyncio
import contextlib
import ssl
import threading
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from refold.testing.provider import ScriptedProvider
from tests.gateway.scripted_upstream import call, chat
from tests.gateway.serving_process import serving

AUTHORITY = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of the tests")])
SERVER = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a server of the tests")])


def signed(folder, name, key, authority, days):
    """Write a certificate that is valid until so many days from now, and its key; return their path."""
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().issuer_name(AUTHORITY).public_key(key.public_key())
    builder = builder.subject_name(AUTHORITY if key is authority else SERVER)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=9))
    builder = builder.not_valid_after(now + timedelta(days=days))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False)
    builder = builder.add_extension(x509.BasicConstraints(ca=key is authority, path_length=None), critical=True)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / f"{name}.pem"
    file.write_bytes(builder.sign(authority, hashes.SHA256()).public_bytes(pem) + private)
    return str(file)


@contextlib.contextmanager
def encrypted(address, certificates):
    """A server that speaks TLS and forwards to another one; yields its address and a function that renews it.

    Its certificate is the first of a list, after a renewal the next, from the next connection on.
    """
    ready, place, open_connections = threading.Event(), {}, set()
    target = urlsplit(address)

    async def copy(reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader, writer):
        open_connections.add(writer)
        there, back = await asyncio.open_connection(target.hostname, target.port)
        await asyncio.gather(copy(reader, back), copy(there, writer))

    async def main():
        place["loop"], place["end"], place["renew"] = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        port = 0
        for file in certificates:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(file)
            server = await asyncio.start_server(serve, "127.0.0.1", port, ssl=context)
            port = place["port"] = server.sockets[0].getsockname()[1]
            place["renew"].clear()
            ready.set()
            await place["renew"].wait()
            server.close()
            for writer in open_connections:
                writer.transport.abort()
            open_connections.clear()
        await asyncio.sleep(0)

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    ready.wait()

    def renew():
        ready.clear()
        place["loop"].call_soon_threadsafe(place["renew"].set)
        assert ready.wait(5)

    try:
        yield f"https://127.0.0.1:{place['port']}", renew
    finally:
        place["loop"].call_soon_threadsafe(place["renew"].set)
        thread.join(5)


@pytest.fixture
def certificates(tmp_path):
    """An authority, and three certificates of a server: one that is valid, one that has expired, and a new one."""
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = signed(tmp_path, "root", authority, authority, 9)
    return root, [signed(tmp_path, f"server{days}", key, authority, days) for days in (1, -1, 2)]


def test_an_expired_certificate_is_told_to_the_client_and_the_conversation_goes_on_when_it_is_renewed(certificates):
    root, files = certificates
    options = ("--window", "16k", "--no-background", "--trigger", "0.8")
    with (
        ScriptedProvider(["ok"]) as provider,
        encrypted(provider.openai_url, files) as (url, renew),
        serving(f"{url}/v1", *options, SSL_CERT_FILE=root) as (_, address),
    ):
        status, first, _ = call(address, body=chat(9))
        assert (status, first["x-refold-done"]) == (200, "compacted")
        renew()  # to one that has expired
        for _ in range(2):
            status, headers, data = call(address, body=chat(10))
            assert (status, headers["x-refold-reason"]) == (502, "upstream_certificate")
            assert b"certificate has expired" in data
            assert b"127.0.0.1" not in data
        offer = {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": "k",
        }
        status, headers, data = call(address, "GET", "/v1/realtime?model=gpt-realtime", headers=offer)
        assert (status, headers["x-refold-reason"]) == (502, "upstream_certificate")
        assert len(provider.received) == 1, "nothing was sent"
        renew()
        status, headers, _ = call(address, body=chat(10))
        assert (status, headers["x-refold-plan"]) == (200, first["x-refold-plan"])
    assert len(provider.received) == 2
