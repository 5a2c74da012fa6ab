"""Builds ext/*.pyx into pykafkad/hot/. EXT=name builds one door alone, EXT=none none;
SANITIZE=1 builds with ASAN and UBSAN, DEBUG=1 without optimisation, for a debugger.

Every door has its own Cython file and lists the C files it is linked with; C files know no Python.
"""

import glob
import os
import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

RECORDS = ["batch_records.c", "batch_stream.c", "batch_rewrite.c", "batch_sink.c"]

# door -> C files in ext/c
DOORS = {
    "wire": ["wire_out.c", "wire_text.c"],
    "records": ["crc32c.c", "batch.c", *RECORDS],
    "segment": ["crc32c.c", "batch.c", "segment.c", "segment_check.c"],
    "index": ["index.c"],
    "cleaner": [
        *("crc32c.c", "batch.c", "batch_records.c", "batch_sink.c"),
        *("segment.c", "cleaner_map.c", "cleaner_producers.c", "cleaner_round.c", "cleaner_files.c"),
        *("cleaner_index.c", "cleaner_filter.c", "cleaner_build.c"),
    ],
    "reactor": [
        *("reactor_frames.c", "reactor_send.c", "reactor_timers.c", "reactor_transport.c", "reactor_wait.c"),
    ],
}


def extensions() -> list[Extension]:
    chosen = os.environ.get("EXT", "")
    wanted = [] if chosen == "none" else chosen.split() or list(DOORS)
    if sys.platform != "linux":  # the reactor stands on epoll; net/loop.py serves elsewhere
        wanted = [name for name in wanted if name != "reactor"]
    compile_args = ["-O3", "-std=c11", "-D_GNU_SOURCE", "-fno-strict-aliasing"]
    link_args = []
    if os.environ.get("DEBUG"):
        compile_args += ["-Og", "-g"]
    if os.environ.get("SANITIZE"):
        compile_args = [
            "-O1",
            "-g",
            "-std=c11",
            "-D_GNU_SOURCE",
            "-fno-omit-frame-pointer",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=undefined",
        ]
        link_args = ["-fsanitize=address,undefined"]
    return [
        Extension(
            f"pykafkad.hot.{name}",
            [f"ext/{name}.pyx", *(f"ext/c/{source}" for source in DOORS[name])],
            include_dirs=["ext/c"],
            depends=sorted([*glob.glob("ext/c/*.h"), *glob.glob("pykafkad/hot/*.pxd")]),
            extra_compile_args=compile_args,
            extra_link_args=link_args,
        )
        for name in wanted
    ]


setup(
    ext_modules=cythonize(
        extensions(),
        language_level=3,
        build_dir="build/cython",
        compiler_directives={
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "embedsignature": False,
        },
    ),
)
