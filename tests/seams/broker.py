"""A broker whose listener's bytes travel through a transport of seam_kit.py: `broker.py KIND DATA PORT LOOP`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
kind, data, port, loop = sys.argv[1:]
if loop == "plain":
    sys.modules["pykafkad.hot.reactor"] = None  # type: ignore[assignment]

from pykafkad.config import BrokerConfig  # noqa: E402
from pykafkad.server import Broker, serve  # noqa: E402
from tests.seam_kit import transport  # noqa: E402

config = BrokerConfig.from_sources(
    {
        "log.dirs": data,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
    }
)
broker = Broker(config)
broker.listeners.transports["PLAINTEXT"] = transport(broker.reactor, kind)
listen = broker.listeners.listen
broker.listeners.listen = lambda *arguments: (listen(*arguments), print(broker.listeners.endpoints[0].port))  # type: ignore[assignment, method-assign]
sys.exit(serve(broker))
