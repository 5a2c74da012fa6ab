"""Java's key stores: those that keytool made are read, and whatever is changed in them is refused."""

from __future__ import annotations

import base64
import contextlib
import ssl
from pathlib import Path

import pytest

from pykafkad.errors import StartupError
from pykafkad.zookeeper.java_stores import StoreError, in_memory, read_store
from pykafkad.zookeeper.settings import java_store

# keytool -genkeypair -keyalg EC -storetype JKS, and its certificate alone, as -importcert makes it of both types.
KEYS = base64.b64decode(
    "/u3+7QAAAAIAAAABAAAAAQAGYnJva2VyAAABofYaLF4AAAB/MH0wDgYKKwYBBAEqAhEBAQUABGvtUQLZSmCPO1wzIe96MEvbn3bw"
    "PrvCc1/zTJuuwsbZnmktQWrWmqGdr2uZMAX/Wvp4JUiE4YXrjbrVAmKzhd/LQqWl8bfV15aAEKcRGbXYBkUeamEF9lPO1EweXeLo"
    "lYzpZW/6dsAXc9v3KAAAAAEABVguNTA5AAABPjCCATowgeKgAwIBAgIJAJrWDp1j46MkMAoGCCqGSM49BAMCMBExDzANBgNVBAMT"
    "BmJyb2tlcjAgFw0yNjExMTkyMzE3NTJaGA8yMTI2MTAyNjIzMTc1MlowETEPMA0GA1UEAxMGYnJva2VyMFkwEwYHKoZIzj0CAQYI"
    "KoZIzj0DAQcDQgAEGhDZmaHf149i3wnBo3GfyZluiqlVSagnZ4EMNv9N2JnRrrZFquRvbOGLdjMPSNdu2xBuGZdEi1t8RLUpWT9e"
    "/KMhMB8wHQYDVR0OBBYEFF7l3siNhWmmR/sy5vx6vHcZzJF9MAoGCCqGSM49BAMCA0cAMEQCIA1xA6TlYc4A6UPYWX4esKyRhHhU"
    "m6vEmrgr1jPMuraTAiAaDWdv6HT10fTSII0ZwhBDkx+A+nn8yVR/Aj0GZFRYlLJ7tfXWSNJdFPLpRs/j6CBFCrmy"
)
TRUSTED = base64.b64decode(
    "/u3+7QAAAAIAAAABAAAAAgACY2EAAAGh9ho6LwAFWC41MDkAAAE+MIIBOjCB4qADAgECAgkAmtYOnWPjoyQwCgYIKoZIzj0EAwIw"
    "ETEPMA0GA1UEAxMGYnJva2VyMCAXDTI2MTExOTIzMTc1MloYDzIxMjYxMDI2MjMxNzUyWjARMQ8wDQYDVQQDEwZicm9rZXIwWTAT"
    "BgcqhkjOPQIBBggqhkjOPQMBBwNCAAQaENmZod/Xj2LfCcGjcZ/JmW6KqVVJqCdngQw2/03YmdGutkWq5G9s4Yt2Mw9I127bEG4Z"
    "l0SLW3xEtSlZP178oyEwHzAdBgNVHQ4EFgQUXuXeyI2FaaZH+zLm/Hq8dxnMkX0wCgYIKoZIzj0EAwIDRwAwRAIgDXEDpOVhzgDp"
    "Q9hZfh6wrJGEeFSbq8SauCvWM8y6tpMCIBoNZ2/odPXR9NIgjRnCEEOTH4D6efzJVH8CPQZkVFiUE+a1u/c+/yUAhGnINTri2bTH"
    "kw4="
)
PKCS12 = base64.b64decode(
    "MIICogIBAzCCAkwGCSqGSIb3DQEHAaCCAj0EggI5MIICNTCCAjEGCSqGSIb3DQEHBqCCAiIwggIeAgEAMIICFwYJKoZIhvcNAQcB"
    "MGYGCSqGSIb3DQEFDTBZMDgGCSqGSIb3DQEFDDArBBQksy3bqFbCTlgPjXZw0ElDnwfSHgICJxACASAwDAYIKoZIhvcNAgkFADAd"
    "BglghkgBZQMEASoEEGVktvtwarXyvGnUI4vg0QKAggGgQI1onPx0W+ljq3ahCzDm70FflOw8FZyC+P/l+cT6Hq98EStLTnYYmYgx"
    "QxCn7bB/yDblm1yWtWBcNYyAFzfJF8OaikGiWdnGAQyteA+aSVvzP/zfjXc/1gkp4LPCrw8lDbxKqfxvatAmlILPtf1OojAsHYhR"
    "QshnlAi1ixP2nxsXeribGHbwycecLq7drrJcnMWf4Ptl/xOo3R2tZrFkbnd1NLfdWrWKbrPqbD8SKZJ5WARviAZEWBJeupeAps/J"
    "lXOKrqXaNIEAP46ocbn5BhnDgEjKl24H9uaImxEIeFOVPSWlTFEywdS2PBHxN4JDiBnPD5LBQ7cltOhoe8vJW53wYQVAkkmIghQg"
    "J5brA7m4lgEijPH3rxqtpjeBmOrsZg7w+WfISQOsO88eZtNcl7T+PpJG1wdfaCgoYClyjHEyR1/URHzwXEhogT2FThbzcFbzEAQg"
    "wpu7PwySAWEzVu5rdlD4K6NJXPO3o9+Bl89Dn0UYQ4tjYFDh8g0kK4vZnQwC6hyDuqVrgMMVjZebYx3NTv6IPsTDAxvpyEQWhT4w"
    "TTAxMA0GCWCGSAFlAwQCAQUABCAkeyKlVmP1Lsm2RRskNZiq4D8PfJpFDXUxN/ecyaoBCwQUQGlXRTYRUfPznC9I58Ac94/pXXcC"
    "AicQ"
)
PASSWORD = "sesamé1"


def test_what_keytool_made_is_read() -> None:
    found = read_store(KEYS, PASSWORD)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(in_memory(found.key))  # which tells whether key and certificate belong together
    trusted = read_store(TRUSTED, "trusted")
    assert trusted.trusted in found.key and not trusted.key and not found.trusted
    context.load_verify_locations(in_memory(trusted.trusted))
    assert context.cert_store_stats()["x509"] == 1


def test_certificates_need_no_password_and_keys_do() -> None:
    assert read_store(TRUSTED, None) == read_store(TRUSTED, "trusted")
    with pytest.raises(StoreError, match="password is needed"):
        read_store(KEYS, None)


@pytest.mark.parametrize("data", [KEYS, TRUSTED], ids=["keys", "trusted"])
def test_another_password_and_any_change_are_noticed(data: bytes) -> None:
    password = PASSWORD if data is KEYS else "trusted"
    with pytest.raises(StoreError, match="another one, or it is damaged"):
        read_store(data, "other")
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises(StoreError):
            read_store(bytes(changed), password)
        with pytest.raises(StoreError):
            read_store(data[:place], password)


def test_without_a_password_nothing_worse_happens_than_a_refusal() -> None:
    for place in range(len(TRUSTED)):
        for value in (0, 0x7F, 0xFF):
            changed = bytearray(TRUSTED)
            changed[place] = value
            with contextlib.suppress(StoreError):
                assert read_store(bytes(changed), None).trusted.isascii()


def test_of_pkcs12_it_is_said_how_to_convert_it(tmp_path: Path) -> None:
    path = tmp_path / "t.jks"
    path.write_bytes(PKCS12)
    with pytest.raises(StartupError, match=r"t\.jks: it is no JKS store.*openssl pkcs12"):
        java_store("zookeeper.ssl.truststore.location", str(path), "trusted", "truststore")


def test_a_store_that_has_not_what_is_wanted_of_it(tmp_path: Path) -> None:
    path = tmp_path / "t.jks"
    path.write_bytes(TRUSTED)
    with pytest.raises(StartupError, match="no key in it"):
        java_store("zookeeper.ssl.keystore.location", str(path), "trusted", "keystore")
    with pytest.raises(StartupError, match="No such file"):
        java_store("zookeeper.ssl.keystore.location", str(path) + "x", "trusted", "keystore")
