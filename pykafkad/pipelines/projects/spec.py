"""spark-pipeline.yml: the keys that Spark 4.2 knows, checked as it checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pykafkad.tools.names import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE_NAMES = ("spark-pipeline.yml", "spark-pipeline.yaml")
KEYS = ("name", "storage", "catalog", "database", "schema", "configuration", "libraries")
MAGIC = frozenset("*?[")


class ProjectError(Exception):
    """A project that cannot be run as it is; str() says where and why."""


@dataclass(frozen=True, slots=True)
class Spec:
    directory: Path
    name: str
    storage: str
    """A URI, of which the checkpoints and tables are below."""
    catalog: str | None
    database: str | None
    configuration: Mapping[str, str]
    files: tuple[Path, ...]
    """The SQL files, in the order of the globs that found them."""


def load(directory: Path) -> Spec:
    found = [directory / name for name in FILE_NAMES if (directory / name).is_file()]
    if len(found) != 1:
        raise ProjectError(f"{directory}: {'two files' if found else 'no file'} spark-pipeline.yml")
    said = _yaml(found[0])
    for key in said:
        if key not in KEYS:
            raise ProjectError(f"{found[0]}: {key} is no key{nearest(str(key), KEYS)}")
    for key in ("name", "storage"):
        if not isinstance(said.get(key), str) or not said[key]:
            raise ProjectError(f"{found[0]}: {key} is missing, or no text")
    return Spec(
        directory,
        said["name"],
        _storage(said["storage"], directory),
        _text(said, "catalog", found[0]),
        _text(said, "database", found[0]) or _text(said, "schema", found[0]),
        _configuration(said.get("configuration") or {}, found[0]),
        tuple(_files(directory, said.get("libraries") or [], found[0])),
    )


def _yaml(file: Path) -> dict[str, Any]:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise ProjectError("projects need PyYAML: pip install pykafkad[pipelines]") from None
    try:
        said = yaml.safe_load(file.read_text())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise ProjectError(f"{file}: line {line}: {error.problem}") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ProjectError(f"{file}: {' '.join(str(error).split())}") from None
    if not isinstance(said, dict):
        raise ProjectError(f"{file}: keys and values are expected")
    return said


def _text(said: Mapping[str, Any], key: str, file: Path) -> str | None:
    value = said.get(key)
    if value is not None and not isinstance(value, str):
        raise ProjectError(f"{file}: {key} is no text")
    return value


def _storage(said: str, directory: Path) -> str:
    """A path without a scheme is one of this machine, below the project where it is relative."""
    return said.rstrip("/") if "://" in said else (directory.resolve() / said).as_uri()


def _configuration(said: Any, file: Path) -> dict[str, str]:
    if not isinstance(said, dict) or not all(isinstance(text, str) for pair in said.items() for text in pair):
        raise ProjectError(f"{file}: configuration has texts by texts: quote numbers and true")
    return said


def _files(directory: Path, libraries: Any, file: Path) -> list[Path]:
    """Of globs that are a file, or all that is in a directory: dir/**."""
    found: dict[Path, None] = {}
    for entry in libraries if isinstance(libraries, list) else [libraries]:
        try:
            pattern = entry["glob"]["include"]
            bare = pattern.removesuffix("/**")
        except (TypeError, KeyError, AttributeError):
            raise ProjectError(f"{file}: libraries are a list of glob: include: PATTERN") from None
        if MAGIC & set(bare):
            raise ProjectError(f"{file}: {pattern}: a file, or a directory with /** is expected")
        matching = sorted((directory / bare).rglob("*")) if bare != pattern else [directory / bare]
        found.update((path, None) for path in matching if path.is_file() and "__pycache__" not in path.parts)
    for path in found:
        if path.suffix != ".sql":
            raise ProjectError(f"{path}: only SQL files can be run here")
    if not found:
        raise ProjectError(f"{file}: its libraries name no file")
    return list(found)
