"""The switch of a network of namespaces: a process that carries the packets of each to the others, or does not.

    python -m compat_tests.cluster.network_switch COUNT

makes COUNT network namespaces, each with one device whose packets come here (TUN) and the address 10.77.0.(1 + number);
then says READY and its process id. How others enter them: /proc/ITS_PID/fd/NUMBER, as the same line says for each. A line
of JSON at its standard input replaces the rules: rows of [from, to, lost, delay_ms], where lost is a part of 1. At the
end of its input it ends, and its namespaces with their last process.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
DEVICE = "wire"
MTU = 65000  # few large packets: each costs this process the same
PACKETS_AT_ONCE = 64
SOURCE, DESTINATION = 15, 19  # the last bytes of an IPv4 header's two addresses

Rules = dict[
    tuple[int, int], tuple[float, float]
]  # from, to -> the part that is lost, milliseconds until it is there


def address(number: int) -> str:
    return f"10.77.0.{number + 1}"


def unshare() -> None:
    """From now on this thread is in a new network namespace."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace can be made")


def enter(descriptor: int) -> None:
    """From now on this thread, and what it starts, is in that network namespace."""
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "the network namespace cannot be entered")


def make_namespace(number: int) -> tuple[int, int]:
    """Descriptors of a new namespace and of its device."""
    unshare()
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    for words in (
        ["link", "set", "lo", "up"],
        ["address", "add", f"{address(number)}/24", "dev", DEVICE],
        ["link", "set", DEVICE, "mtu", str(MTU), "up"],
    ):
        subprocess.run(["ip", *words], check=True)
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY), device


class Switch:
    def __init__(self, devices: list[int]) -> None:
        self._devices = devices
        self._rules: Rules = {}
        self._late: list[
            tuple[float, int, int, bytes]
        ] = []  # when it is due, its number, to whom, the packet
        self._count = 0
        self._unread = b""

    def run(self) -> None:
        poll = select.epoll()
        poll.register(0, select.EPOLLIN)
        for device in self._devices:
            poll.register(device, select.EPOLLIN)
        while True:
            for descriptor, _ in poll.poll(self._wait_s()):
                if descriptor == 0:
                    if not self._obey():
                        return
                else:
                    self._carry(descriptor)
            self._deliver_late()

    def _wait_s(self) -> float:
        return max(0.0, self._late[0][0] - time.monotonic()) if self._late else -1

    def _obey(self) -> bool:
        data = os.read(0, 1 << 16)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._rules = {
                (source, target): (lost, delay_ms) for source, target, lost, delay_ms in json.loads(line)
            }
            print("OBEYED", flush=True)
        return bool(data)

    def _carry(self, device: int) -> None:
        for _ in range(PACKETS_AT_ONCE):
            try:
                packet = os.read(device, MTU + 100)
            except BlockingIOError:
                return
            target = packet[DESTINATION] - 1
            if packet[0] >> 4 != 4 or not 0 <= target < len(self._devices):
                continue  # what systems say of themselves, by IPv6 or to all
            lost, delay_ms = self._rules.get((packet[SOURCE] - 1, target), (0.0, 0.0))
            if lost and random.random() < lost:
                continue
            if delay_ms:
                self._count += 1
                due = time.monotonic() + delay_ms / 1000
                heapq.heappush(self._late, (due, self._count, target, packet))
            else:
                self._deliver(target, packet)

    def _deliver(self, target: int, packet: bytes) -> None:
        try:
            os.write(self._devices[target], packet)
        except OSError:
            pass  # its queue is full: lost, as on any network

    def _deliver_late(self) -> None:
        now = time.monotonic()
        while self._late and self._late[0][0] <= now:
            _, _, target, packet = heapq.heappop(self._late)
            self._deliver(target, packet)


def main() -> None:
    made = [make_namespace(number) for number in range(int(sys.argv[1]))]
    print("READY", os.getpid(), *(namespace for namespace, _ in made), flush=True)
    Switch([device for _, device in made]).run()


if __name__ == "__main__":
    main()
