"""Functions of URLs. What a URL does not have is null."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, quote_plus, unquote, unquote_plus, urlsplit

from pykafkad.pipelines.expressions.numbers import EvaluationError
from pykafkad.pipelines.functions.registry import scalar

CATEGORY = "URL"


_NO_URI = re.compile(r"[\s<>\"{}|\\^`]|%(?![0-9a-fA-F]{2})")


def _parts(url: str) -> SplitResult:
    if _NO_URI.search(url):
        raise EvaluationError(f"{url} is no URI")
    return urlsplit(url)


@scalar("URL_ENCODE_PARAM", CATEGORY, "(STRING) STRING")
def encode(text: str) -> str:
    """Text as it is written in a parameter of a URL."""
    return quote_plus(text, safe="*").replace("~", "%7E")


@scalar("URL_DECODE_PARAM", CATEGORY, "(STRING) STRING")
def decode(text: str) -> str:
    """What the text of a URL's parameter stands for."""
    return unquote_plus(text)


@scalar("URL_EXTRACT_PROTOCOL", CATEGORY, "(STRING) STRING")
def protocol(url: str) -> str | None:
    """The protocol of a URL."""
    return _parts(url).scheme or None


@scalar("URL_EXTRACT_HOST", CATEGORY, "(STRING) STRING")
def host(url: str) -> str | None:
    """The host of a URL."""
    netloc = _parts(url).netloc.rpartition("@")[2]
    return netloc.partition(":")[0] or None


@scalar("URL_EXTRACT_PORT", CATEGORY, "(STRING) INTEGER")
def port(url: str) -> int | None:
    """The port that a URL names."""
    return _parts(url).port


@scalar("URL_EXTRACT_PATH", CATEGORY, "(STRING) STRING")
def path(url: str) -> str:
    """The path of a URL."""
    return unquote(_parts(url).path)


@scalar("URL_EXTRACT_QUERY", CATEGORY, "(STRING) STRING")
def query(url: str) -> str | None:
    """The query of a URL, decoded."""
    return unquote(_parts(url).query) or None


@scalar("URL_EXTRACT_FRAGMENT", CATEGORY, "(STRING) STRING")
def fragment(url: str) -> str | None:
    """The fragment of a URL, decoded."""
    return unquote_plus(_parts(url).fragment) or None


@scalar("URL_EXTRACT_PARAMETER", CATEGORY, "(STRING, STRING) STRING")
def parameter(url: str, name: str) -> str | None:
    """The value of a parameter of a URL, decoded."""
    for pair in _parts(url).query.split("&"):
        key, said, value = pair.partition("=")
        if said and unquote_plus(key) == name:
            return unquote_plus(value)
    return None
