"""python -m compat_tests.cluster torment --faults all --seconds 600   a cluster under one of the sets of faults
python -m compat_tests.cluster torment --every                      all sets, one after the other
python -m compat_tests.cluster torment --every --controllers 3      beside so many controllers of Kafka 4.3.1

Those of the network (cut, cut-one-way, bad-network, network) need root's rights: brokers are in network namespaces.
Beside controllers there is only one of them then.

BROKER=kafka for real brokers, --kinds ours,kafka,ours for both. Exit code 1: something was lost, or seen that cannot be.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compat_tests.cluster.brokers import KAFKA, OURS, MixedCluster, chosen
from compat_tests.cluster.kraft import KraftCluster
from compat_tests.cluster.kraft_network import NetworkKraftCluster, NetworkKraftNemesis
from compat_tests.cluster.kraft_torment import CONFIG as KRAFT_CONFIG
from compat_tests.cluster.kraft_torment import KRAFT_FAULTS, KraftNemesis
from compat_tests.cluster.network import Network, NetworkCluster, why_not
from compat_tests.cluster.network_torment import NETWORK_FAULTS, NetworkNemesis
from compat_tests.cluster.torment import CONFIG, FAULTS, torment
from compat_tests.history.workload import Report


class Options(argparse.Namespace):
    seed: int
    seconds: float
    wait: float
    faults: str
    every: bool
    kinds: str
    controllers: int


def parse() -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m compat_tests.cluster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run = parser.add_subparsers(required=True).add_parser("torment")
    run.add_argument(
        "--seed", type=int, default=int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 31)))
    )
    run.add_argument("--seconds", type=float, default=600, help="for each set of faults")
    run.add_argument("--wait", type=float, default=5.0, help="seconds between two faults, at most")
    run.add_argument(
        "--faults", choices=dict.fromkeys([*FAULTS, *NETWORK_FAULTS, *KRAFT_FAULTS]), default="all"
    )
    run.add_argument("--every", action="store_true")
    run.add_argument("--kinds", default="", help="ours,kafka,ours for example")
    run.add_argument("--controllers", type=int, default=0, help="0: a cluster on ZooKeeper")
    return parser.parse_args(namespace=Options())


def main() -> int:
    options = parse()
    if options.controllers:
        return run_beside_controllers(options)
    if options.faults == "isolate" and not options.every and (options.kinds or chosen() != OURS):
        raise SystemExit("real Kafka brokers cannot be cut off: --faults isolate is for pykafkad's alone")
    kinds = options.kinds.split(",") if options.kinds else [chosen()] * 3
    every = [faults for faults in FAULTS if faults != "isolate" or set(kinds) == {OURS}]
    if missing := why_not():
        print(f"no faults of the network: {missing}", flush=True)
    else:
        every += NETWORK_FAULTS
    codes = [run_one(options, faults, kinds) for faults in (every if options.every else [options.faults])]
    return max(codes)


def run_beside_controllers(options: Options) -> int:
    kinds = options.kinds.split(",") if options.kinds else [KAFKA, OURS, OURS]
    every = [*KRAFT_FAULTS, *([] if why_not() else NETWORK_FAULTS)]
    return max(run_one(options, faults, kinds) for faults in (every if options.every else [options.faults]))


def run_one(options: Options, faults: str, kinds: list[str]) -> int:
    directory = Path(tempfile.mkdtemp(prefix="torment-"))
    print(f"SEED={options.seed}, faults {faults}, {','.join(kinds)}, in {directory}", flush=True)
    if options.controllers and faults in KRAFT_FAULTS:
        with KraftCluster(kinds, options.controllers, KRAFT_CONFIG) as kraft:
            actions = KRAFT_FAULTS[faults]
            report = torment(
                kraft, directory, options.seed, options.seconds, actions, options.wait, KraftNemesis
            )
    elif faults in NETWORK_FAULTS:
        report = run_network(options, NETWORK_FAULTS[faults], kinds, directory)
    else:
        with MixedCluster(kinds, config=CONFIG) as cluster:
            report = torment(cluster, directory, options.seed, options.seconds, FAULTS[faults], options.wait)
    print(report.text(), flush=True)
    if report.faults or report.problems:
        return 1
    shutil.rmtree(directory)
    return 0


def run_network(options: Options, faults: Sequence[str], kinds: list[str], directory: Path) -> Report:
    if missing := why_not():
        raise SystemExit(missing)
    if options.controllers:
        with Network() as network, NetworkKraftCluster(network, kinds, KRAFT_CONFIG) as kraft:
            return torment(
                kraft, directory, options.seed, options.seconds, faults, options.wait, NetworkKraftNemesis
            )
    with (
        tempfile.TemporaryDirectory(prefix="torment-cluster-") as home,
        Network() as network,
        NetworkCluster(network, Path(home), kinds, CONFIG) as cluster,
    ):
        return torment(
            cluster, directory, options.seed, options.seconds, faults, options.wait, NetworkNemesis
        )


if __name__ == "__main__":
    sys.exit(main())
