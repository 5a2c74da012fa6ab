"""How one config value is parsed and checked: Kafka's ConfigDef, with its types, validators and messages.

Owns the row type of the config tables (Key), the parsing of a text into a value of the key's type and the checks of one
value by itself. Relations between keys are in config_checks. Every message is the one that Kafka 4.3.1 gives, because
CreateTopics and AlterConfigs send it to clients.

Validators are short texts in the tables, parsed when a value is checked:
    1..  ..9  0..0.5     a range, bounds included              1..9|-1   a range, or that one number more
    in a|b               one of these                          icase A|B    the same, whatever the case
    list  list?          distinct, non-empty elements; with ? the list may be empty; may be followed by a|b
    nonempty  nonnull  throttled (topic replicas)  voters  bootstrap (KRaft quorum)  reset (share groups)
    release (of Kafka, up to 3.9)
"""

from __future__ import annotations

from pykafkad.pure import java, releases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Value = bool | int | float | str | list[str] | None

JAVA_BLANKS = java.BLANKS
BLANKS_BESIDE_COMMAS = " \t\n\v\f\r"  # the characters of \s in Java's regular expressions

INTEGER_PARSERS = {"SHORT": java.parse_short, "INT": java.parse_int, "LONG": java.parse_long}
SAID_OF_TYPE = {
    "BOOLEAN": "true or false",
    "SHORT": "a whole number",
    "INT": "a whole number",
    "LONG": "a whole number",
    "DOUBLE": "a number",
    "LIST": "a list, separated by commas",
    "CLASS": "a class name",
    "PASSWORD": "a text",
    "STRING": "a text",
}


class ConfigError(Exception):
    """A value that is not allowed. str() is Kafka's message; `allowed` says what would be.

    `told` is the message that Kafka sends to clients, where that is harder for a person to read.
    """

    def __init__(self, key: str, value: object, message: str, allowed: str = "", told: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.value = value
        self.message = message
        self.allowed = allowed
        self.told = told or message


class Key:
    """One row of a config table."""

    __slots__ = ("default", "importance", "internal", "name", "scope", "type", "validator")

    def __init__(
        self,
        name: str,
        type: str,
        default: Value,
        validator: str,
        importance: str,
        scope: str,
        internal: bool = False,
    ) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.validator = validator
        self.importance = importance
        self.scope = scope  # "" read-only, "broker" settable per broker, "cluster" per broker or for all
        self.internal = internal

    @property
    def sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.type == "PASSWORD"

    @property
    def update_mode(self) -> str:
        """When the value may change, in Kafka's words."""
        return {"": "read-only", "broker": "per-broker", "cluster": "cluster-wide"}[self.scope]

    def parse(self, text: str) -> Value:
        """The value of a text, checked; ConfigError with Kafka's message if it is not allowed."""
        value = _PARSERS[self.type](self, text)
        return _check(self, value) if self.validator else value

    def allowed(self) -> str:
        """The values that the key allows, in a few words."""
        return _said_of_validator(self) or SAID_OF_TYPE[self.type]

    def error(self, value: object, why: str) -> ConfigError:
        """Kafka's error for this key with that value."""
        shown = "[hidden]" if self.sensitive else show(value)
        message = f"Invalid value {shown} for configuration {self.name}: {why}"
        return ConfigError(self.name, shown, message, self.allowed())


def rows(table: Iterable[tuple[object, ...]]) -> dict[str, Key]:
    """A literal table as keys by name, in its order; defaults that are tuples become lists."""
    keys = {}
    for row in table:
        key = Key(*row)  # type: ignore[arg-type]  # the table's columns are Key's parameters
        if key.type == "LIST" and key.default is not None:
            key.default = list(key.default)  # type: ignore[arg-type]  # a tuple in the table
        keys[key.name] = key
    return keys


# --- showing values, as Java prints them ----------------------------------------------------------------


def show(value: object) -> str:
    """A value as Java's toString() shows it."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float):
        return show_double(value)
    if isinstance(value, list):
        return f"[{', '.join(map(show, value))}]"
    return str(value)


def to_text(value: Value) -> str | None:
    """A value as a client sees it, and could set it: lists without brackets."""
    if value is None:
        return None
    return ",".join(value) if isinstance(value, list) else show(value)


def show_double(value: float) -> str:
    """Java's Double.toString: plain between 0.001 and 10,000,000, else with an exponent."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else f"{value:f}".rstrip("0")
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        sign = "-" if value < 0 else ""
        digits = mantissa.lstrip("-").replace(".", "")
        point = mantissa.lstrip("-").index(".")
        leading = len(digits) - len(digits.lstrip("0"))
        digits = digits.strip("0")
        mantissa, exponent = f"{sign}{digits[0]}.{digits[1:] or '0'}", str(point - leading - 1)
    elif "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"


# --- parsing --------------------------------------------------------------------------------------------


def _parse_boolean(key: Key, text: str) -> bool:
    word = text.strip(JAVA_BLANKS).upper()
    if word not in ("TRUE", "FALSE"):
        raise key.error(text, "Expected value to be either true or false")
    return word == "TRUE"


def _parse_integer(key: Key, text: str) -> int:
    try:
        return INTEGER_PARSERS[key.type](text.strip(JAVA_BLANKS))
    except ValueError:
        raise key.error(text, f"Not a number of type {key.type}") from None


def _parse_double(key: Key, text: str) -> float:
    try:
        return java.parse_double(text)
    except ValueError:
        raise key.error(text, f"Not a number of type {key.type}") from None


def _parse_list(_key: Key, text: str) -> list[str]:
    trimmed = text.strip(JAVA_BLANKS)
    return [element.strip(BLANKS_BESIDE_COMMAS) for element in trimmed.split(",")] if trimmed else []


def _parse_text(_key: Key, text: str) -> str:
    return text.strip(JAVA_BLANKS)


_PARSERS: dict[str, Callable[[Key, str], Value]] = {
    "BOOLEAN": _parse_boolean,
    "SHORT": _parse_integer,
    "INT": _parse_integer,
    "LONG": _parse_integer,
    "DOUBLE": _parse_double,
    "LIST": _parse_list,
    "STRING": _parse_text,
    "CLASS": _parse_text,
    "PASSWORD": _parse_text,
}


# --- validators -----------------------------------------------------------------------------------------


def _check(key: Key, value: Value) -> Value:
    word, _, rest = key.validator.partition(" ")
    if ".." in word:
        assert isinstance(value, int | float)
        _check_range(key, value)
    elif word in ("list", "list?"):
        assert isinstance(value, list)
        return _check_list(key, value, rest.split("|") if rest else [], empty_allowed=word == "list?")
    elif word == "in":
        if value not in rest.split("|"):
            raise key.error(value, f"String must be one of: {rest.replace('|', ', ')}")
    elif word == "icase":
        if str(value).upper() not in rest.upper().split("|"):
            raise key.error(value, f"String must be one of (case insensitive): {rest.replace('|', ', ')}")
    elif word == "nonempty":
        if not value:
            raise key.error(value, "String must be non-empty")
    elif word in _SPECIAL:
        _SPECIAL[word](key, value)
    return value


def _range(validator: str) -> tuple[str, str, str]:
    """The lower bound, the upper bound and the extra number of a range, "" where there is none."""
    bounds, _, extra = validator.partition("|")
    low, _, high = bounds.partition("..")
    return low, high, extra


def _check_range(key: Key, value: float) -> None:
    low, high, extra = _range(key.validator)
    too_low = low != "" and value < float(low)
    too_high = high != "" and value > float(high)
    if extra:
        if (too_low or too_high) and value != float(extra):
            raise key.error(value, f"Value must be between {low} and {high} or equal to {extra}")
    elif too_low:
        raise key.error(value, f"Value must be at least {low}")
    elif too_high:
        raise key.error(value, f"Value must be no more than {high}")


def _check_list(key: Key, value: list[str], allowed: list[str], *, empty_allowed: bool) -> list[str]:
    if not value and not empty_allowed:
        said = f"[{', '.join(allowed)}]" if allowed else "any non-empty value"
        message = f"Configuration '{key.name}' must not be empty. Valid values include: {said}"
        raise ConfigError(key.name, show(value), message, key.allowed())
    for element in value:
        if not element:
            message = f"Configuration '{key.name}' values must not be empty."
            raise ConfigError(key.name, show(value), message, key.allowed())
        if allowed and element not in allowed:
            raise key.error(element, f"String must be one of: {', '.join(allowed)}")
    return list(dict.fromkeys(value))


_THROTTLED = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


def _check_throttled(key: Key, value: Value) -> None:
    assert isinstance(value, list)
    if "".join(value).strip(JAVA_BLANKS) == "*":
        return
    for pair in value:
        parts = pair.split(":")
        if pair and not (len(parts) == 2 and all(map(_is_digits, parts))):
            said = f"must be the literal '*' or a list of replicas in the following format: {_THROTTLED}"
            raise key.error(value, f"{key.name} {said}")


def _check_voters(key: Key, value: Value) -> None:
    form = "Each entry should be in the form `{id}@{host}:{port}`."
    assert isinstance(value, list)
    for entry in value:
        identity, at, address = entry.partition("@")
        if not at:
            message = f"Invalid configuration value for {key.name}. {form}"
            raise ConfigError(key.name, entry, message, "id@host:port")
        if not _is_a(java.parse_int, identity):
            message = f"Failed to parse voter ID as an integer from {identity}"
            raise ConfigError(key.name, entry, message, "id@host:port")
        if not _is_host_port(address):
            message = f"Failed to parse host name from entry {entry} for the configuration {key.name}. {form}"
            raise ConfigError(key.name, entry, message, "id@host:port")


def _check_bootstrap(key: Key, value: Value) -> None:
    assert isinstance(value, list)
    for entry in value:
        if not _is_host_port(entry):
            form = 'Each entry should be in the form "{host}:{port}"'
            message = f"Failed to parse host name from {entry} for the configuration {key.name}. {form}"
            raise ConfigError(key.name, entry, message, "host:port")


def _check_reset(key: Key, value: Value) -> None:
    text = str(value)
    kind, colon, duration = text.partition(":")
    if text in ("latest", "earliest") or (kind == "by_duration" and colon and _is_duration(duration)):
        return
    said = (
        f"Invalid value `{text}` for configuration {key.name}. The value must be either 'earliest', 'latest'"
    )
    raise key.error(value, f"{said} or of the format 'by_duration:<PnDTnHnMn.nS>'.")


def _check_release(key: Key, value: Value) -> None:
    if releases.full_name(str(value)) is None:
        raise key.error(value, f"Version {value} is not a valid version")


def _is_duration(text: str) -> bool:
    return _is_a(java.parse_duration, text) and java.parse_duration(text) >= 0


def _is_a(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_host_port(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    return bool(colon and host.strip("[]")) and _is_digits(port) and _is_a(java.parse_int, port)


_SPECIAL: dict[str, Callable[[Key, Value], None]] = {
    "throttled": _check_throttled,
    "voters": _check_voters,
    "bootstrap": _check_bootstrap,
    "reset": _check_reset,
    "release": _check_release,
}


def _said_of_validator(key: Key) -> str:
    word, _, rest = key.validator.partition(" ")
    if ".." in word:
        low, high, extra = _range(key.validator)
        said = SAID_OF_TYPE[key.type]
        said += (
            f" from {low} to {high}" if low and high else f" of {low} or more" if low else f" up to {high}"
        )
        return said + (f", or {extra}" if extra else "")
    if word in ("in", "icase"):
        return f"one of {rest.replace('|', ', ')}"
    if word == "list" and rest:
        return f"a list of {rest.replace('|', ', ')}"
    if word == "list?" and rest:
        return f"a list of {rest.replace('|', ', ')}, or nothing"
    return {
        "release": "a version of Kafka up to 3.9",
        "nonempty": "a text that is not empty",
        "list": "a list that is not empty, separated by commas",
    }.get(word, "")
