"""The lines of standard input as records: kafka-console-producer's LineMessageReader and its properties."""

from __future__ import annotations

import codecs
import os
import re

from pykafkad.net.client import ClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pykafkad.hot.records import Headers

CHUNK_BYTES = 64 * 1024


class Lines:
    r"""Lines from chunks of bytes: UTF-8, ended by \n, \r or both, as Java's readers do it."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._after_return = False

    def feed(self, data: bytes) -> list[str]:
        """The lines that are complete now. Empty data means the end of the input."""
        text = self._decoder.decode(data, final=not data)
        if self._after_return and text:
            text = text.removeprefix("\n")
            self._after_return = False
        if text.endswith("\r"):
            self._after_return = True
        parts = (self._rest + text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = parts.pop()
        if not data and self._rest:
            parts.append(self._rest)
            self._rest = ""
        return parts


def read_chunk(descriptor: int) -> bytes:
    return os.read(descriptor, CHUNK_BYTES)


class LineReader:
    """Turns a line into key, value and headers, by the reader's properties."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._has_key = _is_true(properties.get("parse.key"))
        self._has_headers = _is_true(properties.get("parse.headers"))
        self._ignores_errors = _is_true(properties.get("ignore.error"))
        self._key_separator = properties.get("key.separator", "\t")
        self._headers_delimiter = properties.get("headers.delimiter", "\t")
        self._headers_separator = properties.get("headers.separator", ",")
        self._headers_key_separator = properties.get("headers.key.separator", ":")
        self._null_marker = properties.get("null.marker")
        self._line_number = 0
        self._check()
        try:
            self._split = re.compile(self._headers_separator)
        except re.error as problem:
            raise ClientError(f"headers.separator {self._headers_separator}: {problem}") from None

    def _check(self) -> None:
        """No two of the separators may be the same."""
        named = {
            "key.separator": self._key_separator,
            "headers.separator": self._headers_separator,
            "headers.delimiter": self._headers_delimiter,
            "headers.key.separator": self._headers_key_separator,
        }
        for first, second in (
            ("headers.delimiter", "headers.separator"),
            ("headers.delimiter", "headers.key.separator"),
            ("headers.separator", "headers.key.separator"),
        ):
            if named[first] == named[second]:
                raise ClientError(f"{first} and {second} may not be equal")
        for name, text in named.items():
            if text == self._null_marker:
                raise ClientError(f"null.marker and {name} may not be equal")

    def read(self, line: str) -> tuple[bytes | None, bytes | None, Headers]:
        self._line_number += 1
        headers, start = None, 0
        if self._has_headers:
            headers, start = self._until(line, start, self._headers_delimiter, "headers delimiter")
        key = None
        if self._has_key:
            key, start = self._until(line, start, self._key_separator, "key separator")
        found: list[tuple[str, bytes | None]] = []
        if headers is not None and headers != self._null_marker:
            found = list(self._headers(headers))
        return self._bytes(key), self._bytes(line[start:]), found

    def _until(self, line: str, start: int, separator: str, what: str) -> tuple[str | None, int]:
        """The text before the separator, and the position after it."""
        end = line.find(separator, start)
        if end >= 0:
            return line[start:end], end + len(separator)
        if self._ignores_errors:
            return None, start
        raise ClientError(f"No {what} found on line number {self._line_number}: '{line}'")

    def _headers(self, text: str) -> Iterator[tuple[str, bytes | None]]:
        parts = self._split.split(text)
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        for part in parts:
            key, separator, value = part.partition(self._headers_key_separator)
            if not separator:
                if not self._ignores_errors:
                    raise ClientError(
                        f"No header key separator found in pair '{part}' on line number {self._line_number}"
                    )
                yield part, None
                continue
            if key == self._null_marker:
                raise ClientError(
                    f"Header keys should not be equal to the null marker '{self._null_marker}' as they can't "
                    "be null"
                )
            yield key, self._bytes(value)

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self._null_marker else text.encode()


def _is_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() == "true"
