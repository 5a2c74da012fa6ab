"""kafka-python's own integration tests, out of its source distribution.

Owns: the environment they run in (build/suites/kafka-python, kept between runs). The installed package is the one under
test; of the distribution only its tests are used.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

VERSION = "3.0.12"
SECONDS = 600
TEST_SECONDS = 60
PYTHON_PACKAGES = [
    "pytest",
    "pytest-timeout",
    "pytest-mock",
    "py",
    "lz4",
    "zstandard",
    "python-snappy",
    "crc32c",
]
TESTS = ["admin", "consumer", "producer"]

# what its fixtures would start brokers with
CONFIG = {
    "node.id": "0",
    "num.partitions": "4",
    "group.min.session.timeout.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
}

LATER = {
    "test_admin_integration.py::test_create_describe_delete_acls": "security",
    "test_producer_integration.py::test_transactional_producer_messages": "transactions",
    "test_producer_integration.py::test_transactional_producer_offsets": "transactions",
}

# The distribution leaves out test/service.py, of which its fixtures use this much where the broker is there already.
SERVICE = '''
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        """There already."""


SpawnedService = None
'''


def prepare(work: Path) -> None:
    """A virtual environment with the client and what its tests import; its tests beside it."""
    done = work / f"prepared-{VERSION}"
    if done.exists():
        return
    shutil.rmtree(work, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(work / "venv")], check=True)
    pip = [str(work / "venv/bin/pip"), "-q", "--disable-pip-version-check"]
    client = f"kafka-python=={VERSION}"
    subprocess.run([*pip, "install", client, *PYTHON_PACKAGES], check=True)
    subprocess.run(
        [*pip, "download", "--no-deps", "--no-binary", ":all:", "-d", str(work), client], check=True
    )
    (archive,) = work.glob("kafka_python-*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(work, filter="data")
    (folder,) = (path for path in work.glob("kafka_python-*") if path.is_dir())
    (folder / "test").rename(work / "test")
    (work / "test/__init__.py").touch()
    (work / "test/service.py").write_text(SERVICE)
    done.touch()


def run(bootstrap: str, work: Path, selection: str = "") -> dict[str, str]:
    """The outcome of each test: PASSED, FAILED, ERROR, SKIPPED."""
    prepare(work)
    environment = {
        **os.environ,
        "KAFKA_URI": f"kafka://{bootstrap}",
        "KAFKA_VERSION": "4.3.1",
        "KAFKA_ROOT": str(work),  # must be there, and is not used
    }
    files = [f"test/integration/test_{name}_integration.py" for name in TESTS]
    (work / "pytest.ini").write_text("[pytest]\n")  # rather than the one of the project around it
    options = [
        "-v",
        "-c",
        "pytest.ini",
        "-p",
        "no:cacheprovider",
        "--timeout",
        str(TEST_SECONDS),
        "--timeout-method",
        "signal",
    ]
    with (work / "output.log").open("w+") as log:
        subprocess.run(
            [str(work / "venv/bin/python"), "-m", "pytest", *options, "-k", selection, *files],
            cwd=work,
            env=environment,
            stdout=log,
            stderr=log,
            timeout=SECONDS,
            check=False,
        )
        log.seek(0)
        line = re.compile(r"test/integration/(\S+\.py::.+?) (PASSED|FAILED|ERROR|SKIPPED)\b")
        return {found[1]: found[2] for found in map(line.match, log) if found}
