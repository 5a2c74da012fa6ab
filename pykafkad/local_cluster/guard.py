"""Ends a cluster on one machine when whoever started it is gone, however that came.

A shell waits for the end of its standard input, whose other end the starter holds; only then this module is run. The
starter that ends the cluster itself dismisses the shell first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from pykafkad.local_cluster import home as homes
from pykafkad.local_cluster.cluster import LocalCluster

WAIT = 'read -r line; exec "$0" -m pykafkad.local_cluster.guard "$@"'
REMOVE = "--remove"


class Guard:
    def __init__(self, directory: str, *, remove: bool) -> None:
        """`remove`: the directory goes with the cluster."""
        command = ["/bin/sh", "-c", WAIT, sys.executable, directory, *([REMOVE] if remove else [])]
        self._shell = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def dismiss(self) -> None:
        self._shell.kill()
        self._shell.communicate()

    def let_go(self) -> None:
        """In a fork of the starter: it would hold the other end, too."""
        assert self._shell.stdin is not None
        self._shell.stdin.close()


def main(directory: str, *options: str) -> None:
    if homes.exists(directory):
        LocalCluster(homes.load(directory)).kill()
    if REMOVE in options:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    os.chdir("/")
    main(*sys.argv[1:])
