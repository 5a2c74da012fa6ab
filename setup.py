"""Builds ext/*.pyx into pykafkad/hot/. EXT=name builds one door alone, EXT=none none;
SANITIZE=1 builds with ASAN and UBSAN, DEBUG=1 without optimisation and with symbols, for a debugger.

Every door has its own Cython file and lists the C files it is linked with; C files know no Python. Where no C compiler
works, one line says so before anything is begun.
"""

import glob
import os
import sys
import tempfile

from setuptools import Extension, setup

# The commands that compile.
BUILDS = {"bdist_wheel", "build", "build_ext", "develop", "editable_wheel", "install"}

RECORDS = ["batch_records.c", "batch_stream.c", "batch_rewrite.c", "batch_sink.c"]

# door -> C files in ext/c
DOORS = {
    "wire": ["wire_out.c", "wire_text.c"],
    "records": ["crc32c.c", "batch.c", "snappy_block.c", *RECORDS],
    "segment": ["crc32c.c", "batch.c", "segment.c", "segment_check.c", "new_directory.c"],
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


NO_COMPILER = """\
pykafkad: {lack}. To have it: apt-get install build-essential python3-dev (Debian, Ubuntu), \
dnf install gcc python3-devel (Fedora), apk add build-base python3-dev (Alpine), xcode-select --install (macOS)
"""


def wanted_doors() -> list[str]:
    chosen = os.environ.get("EXT", "")
    if chosen == "none" or not BUILDS & set(sys.argv):
        return []
    wanted = chosen.split() or list(DOORS)
    if sys.platform != "linux":  # the reactor stands on epoll; net/plain_loop.py serves elsewhere
        wanted = [name for name in wanted if name != "reactor"]
    return wanted


def what_is_missing() -> str | None:
    """Whether the compiler can be run, and finds the headers of the C library and of Python, by trying."""
    from distutils.ccompiler import new_compiler  # setuptools brings it
    from distutils.errors import CompileError
    from distutils.sysconfig import customize_compiler, get_python_inc

    compiler = new_compiler()
    customize_compiler(compiler)  # CC, CFLAGS
    command = " ".join(compiler.compiler_so[:1])
    with tempfile.TemporaryDirectory() as directory:
        for header, lack in [
            ("stdlib.h", f"a C compiler is needed, and {command!r} does not compile"),
            ("Python.h", "the C headers of this Python (Python.h) are needed"),
        ]:
            probe = os.path.join(directory, "probe.c")
            with open(probe, "w") as file:
                file.write(f"#include <{header}>\n")
            try:
                compiler.compile([probe], output_dir=directory, include_dirs=[get_python_inc()])
            except CompileError:
                return lack
    return None


def extensions(wanted: list[str]) -> list[Extension]:
    compile_args = ["-O3", "-std=c11", "-D_GNU_SOURCE", "-fno-strict-aliasing"]
    link_args = []
    if os.environ.get("DEBUG"):
        compile_args += ["-Og", "-g"]
    else:  # most Pythons ask for debug information, which is most of a file's size
        compile_args += ["-g0"]
        link_args += ["-Wl,-x" if sys.platform == "darwin" else "-Wl,--strip-all"]
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


def ext_modules() -> list[Extension]:
    if not (wanted := wanted_doors()):
        return []
    if lack := what_is_missing():
        sys.exit(NO_COMPILER.format(lack=lack).rstrip())
    from Cython.Build import cythonize

    directives = {
        "boundscheck": False,
        "wraparound": False,
        "initializedcheck": False,
        "cdivision": True,
        "embedsignature": False,
    }
    doors = extensions(wanted)
    return cythonize(doors, language_level=3, build_dir="build/cython", compiler_directives=directives)


setup(ext_modules=ext_modules())
