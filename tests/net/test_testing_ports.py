"""The port of a test's broker can be used again after a restart."""

from __future__ import annotations

import socket

from pykafkad.testing import ports


def test_the_port_is_free_and_given_to_no_client() -> None:
    port = ports.lasting_port("127.0.0.1")
    assert ports.FIRST_PORT <= port < ports.first_client_port()
    assert ports.is_free("127.0.0.1", port)


def test_a_port_that_is_listened_on_is_not_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert not ports.is_free("127.0.0.1", taken.getsockname()[1])
