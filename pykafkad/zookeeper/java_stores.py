"""Java's key stores of the type JKS, as the PEM files that Python's ssl reads.

    0xFEEDFEED, version, count (int32 each)
    an entry   1: a key, or 2: a certificate that is trusted (int32), alias (int16 and text), time (int64), then
               of a key: length (int32), PKCS #8 EncryptedPrivateKeyInfo in Sun's own protection; count, certificates
               a certificate: type (int16 and text), length (int32), DER
    SHA-1 of the password (UTF-16), "Mighty Aphrodite" and all of the above

Sun's protection of a key: 20 bytes of salt, the key XOR a stream of SHA-1 (password, the 20 bytes before; the salt
first), and SHA-1 of the password and the key. Whatever is not so is a StoreError.

PKCS #12, which newer keytools write whatever the file's name, needs ciphers that Python's library has not: StoreError
says how to convert it.
"""

from __future__ import annotations

import base64
import os
from hashlib import sha1
from hmac import compare_digest
from typing import NamedTuple

MAGIC, VERSIONS = 0xFEEDFEED, (1, 2)
WHITENER = b"Mighty Aphrodite"
KEY, TRUSTED = 1, 2
DIGEST_BYTES = 20
SEQUENCE, OCTETS = 0x30, 0x04
DER_LENGTH_BYTES_MAX = 4
LINE = 64


class StoreError(ValueError):
    """A sentence about why a store is of no use."""


class Store(NamedTuple):
    """PEM texts."""

    key: str  # with its certificates; empty: there is none
    trusted: str


class Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        start = self._at
        self._at += size
        if size < 0 or self._at > len(self._data):
            raise StoreError("it ends too early")
        return self._data[start : self._at]

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self.take(size))

    def text(self) -> bytes:
        return self.take(self.number(2))

    @property
    def left(self) -> int:
        return len(self._data) - self._at


def read_store(data: bytes, password: str | None) -> Store:
    """Without a password, as in Java, certificates are believed unproved and keys cannot be read."""
    if len(data) < DIGEST_BYTES or int.from_bytes(data[:4]) != MAGIC:
        raise StoreError(
            "it is no JKS store, but PKCS #12 perhaps, which is not read here: openssl pkcs12 -in FILE -nodes -out"
            " store.pem  makes it PEM, the type that is to be set then"
        )
    body, proof = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    secret = None if password is None else password.encode("utf-16-be")
    if secret is not None and not compare_digest(sha1(secret + WHITENER + body).digest(), proof):
        raise StoreError("its password is another one, or it is damaged")
    reader = Reader(body[4:])
    if (version := reader.number()) not in VERSIONS:
        raise StoreError(f"its version {version} is not known")
    keys: list[str] = []
    trusted: list[str] = []
    for _ in range(reader.number()):
        kind = reader.number()
        reader.text()  # the alias
        reader.take(8)  # the time
        if kind == KEY:
            keys.append(read_key(reader, secret, version))
        elif kind == TRUSTED:
            trusted.append(read_certificate(reader, version))
        else:
            raise StoreError(f"an entry of type {kind} is not known")
    if reader.left:
        raise StoreError("something is behind its last entry")
    if len(keys) > 1:
        raise StoreError(f"it has {len(keys)} keys, and nothing says which of them is meant")
    return Store("".join(keys), "".join(trusted))


def read_key(reader: Reader, secret: bytes | None, version: int) -> str:
    protected = reader.take(reader.number())
    chain = "".join(read_certificate(reader, version) for _ in range(reader.number()))
    if secret is None:
        raise StoreError("its password is needed, for it has a key")
    return pem("PRIVATE KEY", unprotected(protected, secret)) + chain


def read_certificate(reader: Reader, version: int) -> str:
    if version > 1:
        reader.text()  # X.509
    return pem("CERTIFICATE", reader.take(reader.number()))


def unprotected(info: bytes, secret: bytes) -> bytes:
    """The PKCS #8 key in an EncryptedPrivateKeyInfo: a sequence of an algorithm and octets."""
    whole = Reader(element(Reader(info), SEQUENCE))
    element(whole, SEQUENCE)  # the algorithm: its proof says whether it is Sun's
    octets = Reader(element(whole, OCTETS))
    mask = octets.take(DIGEST_BYTES)
    size = octets.left - DIGEST_BYTES
    masked, proof = octets.take(size), octets.take(DIGEST_BYTES)
    key = bytearray()
    for start in range(0, size, DIGEST_BYTES):
        mask = sha1(secret + mask).digest()
        key += bytes(a ^ b for a, b in zip(masked[start : start + DIGEST_BYTES], mask, strict=False))
    if not compare_digest(sha1(secret + key).digest(), proof):
        raise StoreError("the password of its key is another one, or the key is protected otherwise")
    return bytes(key)


def element(reader: Reader, tag: int) -> bytes:
    """The contents of the next element in DER."""
    if reader.number(1) != tag:
        raise StoreError("its key cannot be read")
    length = reader.number(1)
    if length & 0x80:
        if length & 0x7F > DER_LENGTH_BYTES_MAX:
            raise StoreError("its key cannot be read")
        length = reader.number(length & 0x7F)
    return reader.take(length)


def pem(what: str, data: bytes) -> str:
    text = base64.b64encode(data).decode()
    lines = [text[at : at + LINE] for at in range(0, len(text), LINE)]
    return "\n".join([f"-----BEGIN {what}-----", *lines, f"-----END {what}-----", ""])


def in_memory(text: str) -> str:
    """The path of a file that is in this process's memory alone, for as long as it runs."""
    file = os.memfd_create("store")
    os.write(file, text.encode())
    return f"/proc/self/fd/{file}"
