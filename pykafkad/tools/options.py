"""The options of the tools, as Kafka's tools read and explain them.

Owns the rules of the library that Kafka's tools are written with: `--name value`, `--name=value` and `-name value` are
the same, an option may be given again, a value may begin with a dash, arguments that are no options are ignored (with a
warning here), `--` ends the options; and its error messages. The explanations are ours, and so are: --help and -h on
standard output with exit code 0, the brokers where none are named, the nearest name for one that is misspelt, and --json.
A tool is a table of options and a body, and everything else derives from the table: what is read, what is explained,
completion (pykafkad/completion.py) and docs/tools.md.
"""

from __future__ import annotations

from pykafkad.tools import failures, output
from pykafkad.tools.names import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

FOLLOWS_KAFKA = "4.3.1"  # what `--version` prints: the release whose tools these are like

NONE, OPTIONAL, REQUIRED, MANY = range(
    4
)  # whether an option takes an argument; many: all up to the next option
STRING, SHORT, INTEGER, LONG, DOUBLE = "String", "Short", "Integer", "Long", "Double"
RANGES = {SHORT: 1 << 15, INTEGER: 1 << 31, LONG: 1 << 63}
WIDTH, GAP = 80, 2  # width of the explanation's two columns


class OptionError(Exception):
    """A mistake in the command line; str() is the message for it."""

    kind = "USAGE"  # what --json calls it


class Usage(Exception):
    """A mistake in how options are combined, which bodies let pass."""

    kind = "USAGE"


class Exit(Exception):
    """The tool ends with this code; all messages have been printed."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Option:
    """One option: its argument and its meaning. `shown` is how the argument is described, `choices` what completion
    offers for it."""

    __slots__ = (
        "argument",
        "available_with",
        "choices",
        "default",
        "help",
        "kind",
        "name",
        "needed",
        "separator",
        "shown",
    )

    def __init__(
        self,
        name: str,
        help: str,
        *,
        argument: int = NONE,
        shown: str = "",
        kind: str = STRING,
        default: str | None = None,
        available_with: tuple[str, ...] = (),
        separator: str | None = None,
        needed: bool = False,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.help = help
        self.argument = argument
        self.shown = shown
        self.kind = kind
        self.default = default
        self.available_with = available_with
        self.separator = separator
        self.needed = needed
        self.choices = choices


def flag(name: str, help: str, *, available_with: tuple[str, ...] = ()) -> Option:
    return Option(name, help, available_with=available_with)


def value(
    name: str,
    shown: str,
    help: str,
    *,
    kind: str = STRING,
    default: str | None = None,
    available_with: tuple[str, ...] = (),
    separator: str | None = None,
    needed: bool = False,
    choices: tuple[str, ...] = (),
) -> Option:
    return Option(
        name,
        help,
        argument=REQUIRED,
        shown=shown,
        kind=kind,
        default=default,
        available_with=available_with,
        separator=separator,
        needed=needed,
        choices=choices,
    )


def optional(
    name: str,
    shown: str,
    help: str,
    *,
    kind: str = STRING,
    default: str | None = None,
    available_with: tuple[str, ...] = (),
    choices: tuple[str, ...] = (),
) -> Option:
    return Option(
        name,
        help,
        argument=OPTIONAL,
        shown=shown,
        kind=kind,
        default=default,
        available_with=available_with,
        choices=choices,
    )


def bootstrap(more: str = "") -> Option:
    return value(
        "bootstrap-server",
        "host:port,...",
        "Brokers to start from; by default those of $KAFKA_BOOTSTRAP_SERVERS, or else localhost:9092." + more,
    )


def json_flag(*available_with: str) -> Option:
    help = "One JSON document on standard output, also for an error."
    if available_with:
        help = f"With {' or '.join('--' + name for name in available_with)}: {help[0].lower()}{help[1:]}"
    return flag("json", help, available_with=available_with)


def many(name: str, shown: str, help: str) -> Option:
    return Option(name, help, argument=MANY, shown=shown)


HELP = flag("help", "Explain the options.")
VERSION = flag("version", "Show the version of Kafka whose tool this is like.")
COMMON = (HELP, VERSION)  # that every tool has


class Options:
    """A command line that was read."""

    def __init__(self, known: Sequence[Option], arguments: Sequence[str]) -> None:
        self.known = {option.name: option for option in (*known, *COMMON)}
        self.arguments = list(arguments)
        self._given: dict[str, list[str]] = {}
        self.order: list[str] = []  # the options as they were given
        self.ignored: list[str] = []  # arguments that are no options
        _Reader(self.known, self._given, self.order, self.ignored).read(self.arguments)
        self._check()

    def _check(self) -> None:
        if "help" in self._given:
            return
        missing = [name for name, option in self.known.items() if option.needed and name not in self._given]
        if missing:
            raise OptionError(f"Missing required option(s) [{', '.join(missing)}]")
        unavailable = [
            name
            for name in self._given
            if self.known[name].available_with
            and not any(other in self._given for other in self.known[name].available_with)
        ]
        if unavailable:
            raise OptionError(
                f"Option(s) [{', '.join(unavailable)}] are unavailable given other options on the command line"
            )

    def has(self, name: str) -> bool:
        return name in self._given

    def values(self, name: str) -> list[str]:
        """All values that were given, or the default one."""
        given = self._given.get(name)
        default = self.known[name].default
        if given:
            return [_converted(self.known[name], text) for text in given]
        return [default] if default is not None else []

    def value(self, name: str) -> str | None:
        """The only value, or the default."""
        if len(self._given.get(name, ())) > 1:
            raise OptionError(f"Found multiple arguments for option {name}, but you asked for only one")
        found = self.values(name)
        return found[0] if found else None

    def text(self, name: str) -> str:
        """The only value of an option that has one."""
        found = self.value(name)
        assert found is not None, name
        return found

    def number(self, name: str) -> int | None:
        found = self.value(name)
        return None if found is None else int(found)

    def integer(self, name: str) -> int:
        """The only value of a numeric option that has one."""
        return int(self.text(name))

    def has_any(self, names: Iterable[str]) -> bool:
        return any(name in self._given for name in names)

    # -- rules that many tools share

    def require(self, *names: str) -> None:
        for name in names:
            if name not in self._given:
                raise Usage(f'Missing required argument "[{name}]"')

    def exclude(self, name: str, others: Iterable[str]) -> None:
        """The option cannot be used together with the others."""
        if name in self._given:
            for other in others:
                if other in self._given:
                    raise Usage(f'Option "[{name}]" can\'t be used with option "[{other}]"')

    def one_of(self, *names: str) -> None:
        if sum(name in self._given for name in names) != 1:
            shown = ", ".join(f"[{name}]" for name in names)
            raise Usage(f"Exactly one of the following arguments is required: {shown}")


class _Reader:
    """Reads arguments into `given`."""

    def __init__(
        self,
        known: dict[str, Option],
        given: dict[str, list[str]],
        order: list[str],
        ignored: list[str],
    ) -> None:
        self._known = known
        self._given = given
        self._order = order
        self._ignored = ignored

    def read(self, arguments: Sequence[str]) -> None:
        rest = list(reversed(arguments))
        while rest:
            argument = rest.pop()
            if argument == "--":
                self._ignored += reversed(rest)
                return
            if argument == "-h":
                argument = "--help"
            if argument.startswith("--"):
                name, equals, text = argument[2:].partition("=")
                self._take(name, text if equals else None, rest)
            elif len(argument) > 1 and argument.startswith("-"):
                name, equals, text = argument[1:].partition("=")
                # an option of several letters may have one dash; otherwise it would be several short options, of which
                # there are none
                self._take(name if name in self._known else name[0], text if equals else None, rest)
            else:
                self._ignored.append(argument)

    def _take(self, name: str, given: str | None, rest: list[str]) -> None:
        option = self._known.get(name)
        if option is None:
            raise OptionError(f"{name} is not a recognized option{nearest(name, self._known, '--')}")
        found = self._given.setdefault(name, [])
        self._order.append(name)
        if option.argument == NONE:
            return
        if given is None:
            given = self._next(option, rest)
        if given is not None:
            found += given.split(option.separator) if option.separator else [given]
        while option.argument == MANY and rest and not rest[-1].startswith("-"):
            found.append(rest.pop())

    @staticmethod
    def _next(option: Option, rest: list[str]) -> str | None:
        if option.argument in (REQUIRED, MANY):
            if not rest:
                raise OptionError(f"Option {option.name} requires an argument")
            return rest.pop()
        if not rest:
            return None
        following = rest[-1]
        looks_like_option = following.startswith("-") and following != "-"
        if option.kind != STRING:
            return rest.pop() if _is_number(following, option.kind) else None
        return None if looks_like_option else rest.pop()


def _is_number(text: str, kind: str) -> bool:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()):
        return False
    return -RANGES[kind] <= int(text) < RANGES[kind]


def _is_decimal(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False


def _converted(option: Option, text: str) -> str:
    fits = (
        _is_decimal(text) if option.kind == DOUBLE else option.kind == STRING or _is_number(text, option.kind)
    )
    if not fits:
        raise OptionError(f"Cannot parse argument '{text}' of option {option.name}")
    return text


def check_address(text: str | None) -> None:
    """What some tools check of --bootstrap-server before they use it."""
    if text is None or not text.strip():
        raise Usage("Error while validating the bootstrap address\n")
    for entry in text.split(","):
        host, colon, port = entry.rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit()):
            raise Usage("Please provide valid host:port like host1:9091,host2:9092\n")


# -- running a tool


def run(
    known: Sequence[Option],
    arguments: Sequence[str],
    about: str,
    body: Callable[[Options], int],
    *,
    as_json: Callable[[Options], object] | None = None,
    alone: bool = False,
    read: Callable[[Sequence[Option], Sequence[str]], Options] = Options,
) -> int:
    """Read the command line and run `body`, or explain the options if that is asked for. A mistake in them is told in
    Kafka's words. `as_json`: what --json shows. `alone`: whether the tool does something without any argument. `read`:
    by which rules the command line is read."""
    wants_json = as_json is not None and "--json" in arguments
    try:
        if not arguments and not alone:
            output.error(f"{about}\n{explanation(known)}")
            return 1
        options = read(known, arguments)
        if options.has("help"):
            output.text(f"{about}\n{explanation(known)}")
            return 0
        if options.has("version"):
            output.line(FOLLOWS_KAFKA)
            return 0
        for argument in options.ignored:
            output.error(
                f"WARN ignored, as it is no option: {argument}{nearest(argument, options.known, '--')}"
            )
        if as_json is None or not wants_json:
            return body(options)
        output.json_document(as_json(options))
        return 0
    except Exit as end:
        return end.code
    except (OptionError, Usage) as problem:
        output.error(f"{str(problem).strip()}\n--help explains the options.")
        if wants_json:
            output.json_document(failures.as_json(problem))
    except Exception as problem:
        if not wants_json or isinstance(problem, output.Unwritable):
            raise
        output.error(failures.message_of(problem))
        output.json_document(failures.as_json(problem))
    return 1


# -- explaining


def explanation(known: Sequence[Option]) -> str:
    """The options in two columns, first those that are required, then by name."""
    options = sorted((*known, *COMMON), key=lambda option: (not option.needed, option.name))
    title = "Option (* = required)" if options[0].needed else "Option"
    rows = [(title, "Description"), ("-" * len(title), "-----------")]
    rows += [(_option_display(option), _help_display(option)) for option in options]
    left = min((WIDTH - GAP) // 2, max(len(row[0]) for row in rows))
    lines = []
    for name, help in rows:
        names, helps = _fitted(name, left), _fitted(help, WIDTH - left - GAP)
        for at in range(max(len(names), len(helps))):
            first = names[at] if at < len(names) else ""
            second = helps[at] if at < len(helps) else ""
            lines.append(f"{first:<{left}}{' ' * GAP}{second}".rstrip() + "\n")
    return "".join(lines)


def _option_display(option: Option) -> str:
    star = "* " if option.needed else ""
    shown = option.kind + (f": {option.shown}" if option.shown else "")
    return f"{star}--{option.name}" + ("", f" [{shown}]", f" <{shown}>", f" <{shown}>...")[option.argument]


def _help_display(option: Option) -> str:
    return option.help + (f" (default: {option.default})" if option.default is not None else "")


def _fitted(text: str, width: int) -> list[str]:
    """The text in lines of at most `width`, if its words allow that; continued lines are indented."""
    lines = []
    for natural in text.split("\n"):
        current = ""
        for word in natural.split(" "):
            wider = f"{current} {word}" if current else word
            if current and len(wider) > width:
                lines.append(current)
                current = "  " + word
            else:
                current = wider
        lines.append(current)
    return lines
