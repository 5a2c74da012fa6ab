"""A schema registry by HTTP: what is asked of it, how its answers are read, and what happens where it is not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pykafkad.pipelines.formats.registry import HttpRegistry, RegisteredSchema, RegistryError

SCHEMA = RegisteredSchema("AVRO", '"long"')


class Answering(BaseHTTPRequestHandler):
    """Answers by a table from path to status and body, and keeps what it was asked."""

    answers: dict[str, tuple[int, Any]]
    asked: list[tuple[str, str, str | None]]

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.asked.append((f"{self.command} {self.path}", body, self.headers.get("Authorization")))
        status, said = self.answers.get(self.path, (404, {"error_code": 40401, "message": "not there"}))
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[Answering]]]:
    handler = type("Handler", (Answering,), {"answers": {}, "asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"127.0.0.1:{http.server_address[1]}", handler
        http.shutdown()
        thread.join(30)


def test_schemas_are_found_and_registered_and_asked_for_once(server: tuple[str, type[Answering]]) -> None:
    host, handler = server
    handler.answers.update(
        {
            "/schemas/ids/7": (200, {"schema": '"long"'}),
            "/subjects/a%2Fb-value/versions/latest": (200, {"id": 7, "schema": "{}", "schemaType": "JSON"}),
            "/subjects/t-key/versions": (200, {"id": 7}),
        }
    )
    registry = HttpRegistry(f"http://{host}/")
    assert registry.by_id(7) == registry.by_id(7) == SCHEMA
    assert registry.by_id(8) is None
    assert registry.latest("a/b-value") == RegisteredSchema("JSON", "{}")
    assert registry.latest("none") is None
    assert registry.register("t-key", SCHEMA) == registry.register("t-key", SCHEMA) == 7
    assert [what for what, _, _ in handler.asked] == [
        "GET /schemas/ids/7",
        "GET /schemas/ids/8",
        "GET /subjects/a%2Fb-value/versions/latest",
        "GET /subjects/none/versions/latest",
        "POST /subjects/t-key/versions",
    ]
    assert json.loads(handler.asked[-1][1]) == {"schema": '"long"', "schemaType": "AVRO"}


def test_user_and_password_of_the_url_are_said_and_never_shown(server: tuple[str, type[Answering]]) -> None:
    host, handler = server
    handler.answers["/schemas/ids/1"] = (401, {"message": "Unauthorized"})
    with pytest.raises(RegistryError, match="answers 401 to /schemas/ids/1: Unauthorized") as refused:
        HttpRegistry(f"http://user:pa%40ss@{host}").by_id(1)
    assert handler.asked[0][2] == "Basic dXNlcjpwYUBzcw=="
    assert "pa" not in str(refused.value).replace("/schemas", "")


def test_the_next_url_is_asked_where_one_does_not_answer(server: tuple[str, type[Answering]]) -> None:
    host, handler = server
    handler.answers["/schemas/ids/1"] = (200, {"schema": '"long"'})
    assert HttpRegistry(f"http://127.0.0.1:1, http://{host}").by_id(1) == SCHEMA
    with pytest.raises(RegistryError, match=r"no schema registry answers: http://127\.0\.0\.1:1: .*refused"):
        HttpRegistry("http://secret@127.0.0.1:1").by_id(1)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            (409, {"error_code": 409, "message": "incompatible"}),
            "answers 409 to /subjects/s/versions: incompatible",
        ),
        ((500, b"oops"), "answers 500 to /subjects/s/versions: no reason given"),
        ((200, b"oops"), "is no JSON object"),
        ((200, {"id": "x"}), "gave no id"),
    ],
)
def test_refusals_and_nonsense(
    server: tuple[str, type[Answering]], answer: tuple[int, Any], why: str
) -> None:
    host, handler = server
    handler.answers["/subjects/s/versions"] = answer
    with pytest.raises(RegistryError, match=why):
        HttpRegistry(f"http://{host}").register("s", SCHEMA)


def test_what_is_no_url() -> None:
    for url in ("registry:8081", "ftp://registry", "http://", ""):
        with pytest.raises(RegistryError):
            HttpRegistry(url).by_id(1)
