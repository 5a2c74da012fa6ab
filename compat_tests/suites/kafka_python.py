"""kafka-python's own integration tests, from its source distribution.

Owns: the environment they run in (build/suites/kafka-python, kept between runs). The installed package is the one under
test; of the distribution only its tests are used. The results are read from the report that the runner writes at its
end: a runner that crashes, or is stopped, has no results.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree

VERSION = "3.0.12"
SECONDS = 600
TEST_SECONDS = 60
ENDED = (0, 1)  # exit codes of a pytest that finished: all passed, or some failed
REPORT = "report.xml"
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

# the configs with which its fixtures would start brokers
CONFIG = {
    "node.id": "0",
    "num.partitions": "4",
    "group.min.session.timeout.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
}

PASSES = Path(__file__).with_suffix(".txt").read_text().splitlines()  # these, and no others
LATER = {
    "test_admin_integration.py::test_create_describe_delete_acls": "security",
}

# The distribution lacks test/service.py, of which its fixtures use this much if the broker is already running.
SERVICE = '''
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        """There already."""


SpawnedService = None
'''


def prepare(work: Path) -> None:
    """A virtual environment with the client and what its tests import, and the tests beside it."""
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
    """The outcome of each test: PASSED, FAILED, ERROR, SKIPPED. RuntimeError if the runner did not finish."""
    prepare(work)
    (work / REPORT).unlink(missing_ok=True)
    environment = {
        **os.environ,
        "KAFKA_URI": f"kafka://{bootstrap}",
        "KAFKA_VERSION": "4.3.1",
        "KAFKA_ROOT": str(work),  # must exist, and is not used
    }
    files = [f"test/integration/test_{name}_integration.py" for name in TESTS]
    (work / "pytest.ini").write_text("[pytest]\n")  # rather than that of the surrounding project
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
        f"--junitxml={REPORT}",
    ]
    with (work / "output.log").open("w") as log:
        done = subprocess.run(
            [str(work / "venv/bin/python"), "-m", "pytest", *options, "-k", selection, *files],
            cwd=work,
            env=environment,
            stdout=log,
            stderr=log,
            timeout=SECONDS,
            check=False,
        )
    return outcomes_in(work / REPORT, done.returncode)


def outcomes_in(report: Path, exit_code: int) -> dict[str, str]:
    if exit_code not in ENDED:
        raise RuntimeError(f"the runner ended with {exit_code}, and not as a run does that came to its end")
    if not report.exists():
        raise RuntimeError(f"the runner ended with {exit_code} and left no report")
    outcomes: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        module, *parts = case.get("classname", "").removeprefix("test.integration.").split(".")
        name = "::".join([f"{module}.py", *parts, case.get("name", "")])
        kinds = {each.tag for each in case} & {"failure", "error", "skipped"}
        outcome = (
            {"failure": "FAILED", "error": "ERROR", "skipped": "SKIPPED"}[min(kinds)] if kinds else "PASSED"
        )
        if outcomes.get(name) not in (
            "FAILED",
            "ERROR",
        ):  # a test that passes and fails in its teardown has two entries
            outcomes[name] = outcome
    return outcomes
