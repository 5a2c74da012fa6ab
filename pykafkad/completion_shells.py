"""The completion scripts of bash, zsh and fish.

Each is written from the same commands: the tables become cases, and the rest is the same few lines. Names that come from
a broker are never expanded or run by the shell.
"""

from __future__ import annotations

from pykafkad.tools.options import NONE, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.completion import Command
    from pykafkad.tools.options import Option

FILES = "files"
# the names of options whose values are names on the broker, and of which kind
LIVE = {"topic": "topics", "include": "topics", "topic-list": "topics", "group": "groups"}
FILE_WORDS = ("file", "directory", "dir")


def kind_of(option: Option) -> str:
    """What its value is: topics, groups, files, choices, something else, or nothing if it has none."""
    if option.argument == NONE:
        return ""
    if option.choices:
        return "choices"
    if option.name in LIVE and option.kind == STRING:
        return LIVE[option.name]
    words = f"{option.shown} {option.name}".lower().replace("-", " ").split()
    return FILES if any(word in FILE_WORDS for word in words) else "other"


def plain(help: str) -> str:
    """The first sentence, in ASCII and without what shells take for syntax."""
    first = help.partition(". ")[0].partition("; ")[0].rstrip(".").replace("…", "...")
    first = first.encode("ascii", "ignore").decode()
    return "".join(character for character in first if character not in "'\"`[]:$\\")


# -- bash

BASH = """\
# completion of pykafkad for bash: eval "$(pykafkad completion bash)"
_pykafkad_options() {
    case "$1" in
%(options)s    esac
}
_pykafkad_kind() {
    case "$1 $2" in
%(kinds)s        *) echo none ;;
    esac
}
_pykafkad() {
    local line="${COMP_LINE:0:COMP_POINT}" words kind="" name value="" server=() word i
    read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    local last=$((${#words[@]} - 1))
    local current="${words[last]}"
    COMPREPLY=()
    if ((last == 1)); then
        kind="words %(commands)s"
        value="$current"
    elif [[ "$current" == --*=* ]]; then
        kind=$(_pykafkad_kind "${words[1]}" "${current%%%%=*}")
        value="${current#*=}"
    else
        ((last > 2)) && kind=$(_pykafkad_kind "${words[1]}" "${words[last - 1]}")
        [[ -z "$kind" || "$kind" == none ]] && kind="words $(_pykafkad_options "${words[1]}")"
        value="$current"
    fi
    for ((i = 2; i < last; i++)); do
        [[ "${words[i]}" == --bootstrap-server ]] && server=(--bootstrap-server "${words[i + 1]}")
        [[ "${words[i]}" == --bootstrap-server=* ]] && server=(--bootstrap-server "${words[i]#*=}")
    done
    # what readline took for the beginning of the word that it replaces
    local before="${value%%"${COMP_WORDS[COMP_CWORD]}"}"
    [[ "${COMP_WORDS[COMP_CWORD]}" == "=" || "${COMP_WORDS[COMP_CWORD]}" == ":" ]] && before="$value"
    while IFS= read -r name; do
        [[ -n "$name" && "$name" == "$value"* ]] && COMPREPLY+=("${name#"$before"}")
    done < <(
        case "$kind" in
            topics|groups) "${words[0]}" completion "$kind" "${server[@]}" 2>/dev/null ;;
            files) compgen -f -- "$value" ;;
            words*) for word in ${kind#words}; do echo "$word"; done ;;
        esac
    )
    [[ "$kind" == files ]] && compopt -o filenames 2>/dev/null
    return 0
}
complete -F _pykafkad pykafkad
"""


def bash(commands: Sequence[Command]) -> str:
    options = ""
    kinds: dict[str, list[str]] = {}
    for command in commands:
        names = " ".join(f"--{option.name}" for option in command.options)
        options += f"        {command.name}) echo {' '.join(filter(None, (_words(command), names)))} ;;\n"
        for option in command.options:
            kind = kind_of(option)
            if kind == "choices":
                kind = "words " + " ".join(option.choices)
            if kind:
                kinds.setdefault(kind, []).append(f'"{command.name} --{option.name}"')
    cases = "".join(f'        {"|".join(where)}) echo "{kind}" ;;\n' for kind, where in kinds.items())
    named = " ".join(command.name for command in commands)
    return BASH % {"options": options, "kinds": cases, "commands": named}


def _words(command: Command) -> str:
    """The words that may follow a command."""
    if command.name == "completion":
        return "bash zsh fish"
    return " ".join(getattr(command.module, "COMMANDS", ()))


# -- zsh

ZSH = """\
#compdef pykafkad
# completion of pykafkad for zsh: eval "$(pykafkad completion zsh)"
_pykafkad_names() {
    local -a names server
    local at=${words[(I)--bootstrap-server]}
    ((at)) && server=(--bootstrap-server "${(Q)words[at + 1]}")
    names=("${(@f)$(pykafkad completion ${@[-1]} "${server[@]}" 2>/dev/null)}")
    names=(${names:#})
    ((${#names})) && compadd "${@[1,-2]}" -a names
}
_pykafkad() {
    local -a commands
    commands=(
%(commands)s    )
    if ((CURRENT == 2)); then
        _describe command commands
        return
    fi
    local command="$words[2]"
    shift words
    ((CURRENT--))
    case "$command" in
%(cases)s    esac
}
if [[ "${funcstack[1]-}" == _pykafkad ]]; then
    _pykafkad "$@"
else
    compdef _pykafkad pykafkad
fi
"""


def zsh(commands: Sequence[Command]) -> str:
    names = "".join(f"        '{command.name}:{plain(command.about)}'\n" for command in commands)
    cases = ""
    for command in commands:
        words = [f"'1:word:({_words(command)})'"] if _words(command) else []
        specs = " \\\n            ".join([*words, *map(_zsh_option, command.options)])
        files = " '*:file:_files'" if command.name in ("start", "open", "check") else ""
        if specs:
            cases += f"        {command.name})\n            _arguments {specs}{files} ;;\n"
    return ZSH % {"commands": names, "cases": cases}


def _zsh_option(option: Option) -> str:
    actions = {
        "topics": "_pykafkad_names topics",
        "groups": "_pykafkad_names groups",
        FILES: "_files",
        "choices": f"({' '.join(option.choices)})",
    }
    kind = kind_of(option)
    if not kind:
        return f"'--{option.name}[{plain(option.help)}]'"
    return f"'*--{option.name}=[{plain(option.help)}]:{option.name}:{actions.get(kind, ' ')}'"


# -- fish

FISH = """\
# completion of pykafkad for fish: pykafkad completion fish | source
function __pykafkad_names
    set -l words (commandline -opc)
    set -l server
    if set -l at (contains -i -- --bootstrap-server $words)
        set server --bootstrap-server $words[(math $at + 1)]
    end
    pykafkad completion $argv[1] $server 2>/dev/null
end
function __pykafkad_is
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test "$words[2]" = "$argv[1]"
end
function __pykafkad_is_first
    test (count (commandline -opc)) -eq 1
end
complete -c pykafkad -f
%(lines)s"""


def fish(commands: Sequence[Command]) -> str:
    lines = []
    for command in commands:
        lines.append(
            f"complete -c pykafkad -n __pykafkad_is_first -a {command.name} -d '{plain(command.about)}'"
        )
        here = f"complete -c pykafkad -n '__pykafkad_is {command.name}'"
        if _words(command):
            lines.append(f"{here} -a '{_words(command)}'")
        if command.name in ("start", "open", "check"):
            lines.append(f"{here} -F")
        lines += [f"{here} {_fish_option(option)}" for option in command.options]
    return FISH % {"lines": "".join(f"{line}\n" for line in lines)}


def _fish_option(option: Option) -> str:
    values = {
        "": "",
        "topics": " -x -a '(__pykafkad_names topics)'",
        "groups": " -x -a '(__pykafkad_names groups)'",
        FILES: " -r -F",
        "choices": f" -x -a '{' '.join(option.choices)}'",
        "other": " -x",
    }
    return f"-l {option.name}{values[kind_of(option)]} -d '{plain(option.help)}'"


SCRIPTS: dict[str, Callable[[Sequence[Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
