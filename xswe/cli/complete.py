"""Shell completion of verbs, settings, choices of a setting, and file names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from xswe.cli.verbs import VERBS
from xswe.face import spelling

# The scripts that register the completion. They call this command; a completion that ends in a blank is a whole word.
SCRIPTS = {
    "bash": r"""_xswe() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <("$1" --complete bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -o nospace -F _xswe xswe""",
    "zsh": r"""#compdef xswe
_xswe() {
    local -a found
    found=("${(@f)$("${(Q)words[1]}" --complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -S '' -- "${(@M)found:#*[^ ]}"
    compadd -- "${(@)${(@M)found:#* }% }"
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _xswe xswe""",
    "fish": r"""function __xswe
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l before $words[1]
    set -e words[1]
    $before --complete fish $words "$current" 2>/dev/null
end
complete -c xswe -f -a '(__xswe)'""",
}
_OPTIONS = ("--help ", "--help-all ", "--cfg ", "--multirun ", "--config-dir ", "--info ")
_FILE_KINDS = ("", "text", "list", "mapping")  # kinds of settings that may name a file


def completed(shell: str, words: list[str]) -> list[str]:
    """Return the completions of the last word, in the form that the shell expects.

    ``words`` has the line up to the cursor for ``bash``, and for other shells the words after the command, unquoted.
    """
    if shell == "fish":  # adds blanks itself, and shows descriptions
        return [f"{word.rstrip()}\t{what}" for word, what in _offered(words)]
    if shell == "zsh":
        return [word for word, _ in _offered(words)]
    words, is_quoted = _split(words[0])
    start = max(words[-1].rfind("="), words[-1].rfind(":")) + 1  # bash replaces only the text after these
    found = ((word[start:].rstrip(), word.endswith(" ")) for word, _ in _offered(words[1:]))
    escaped = (
        (word if is_quoted else re.sub(r"""([\s'"\\()&;|<>`$*?!])""", r"\\\1", word), whole) for word, whole in found
    )
    return [f"{word} " if whole and not is_quoted else word for word, whole in escaped]


def _split(line: str) -> tuple[list[str], bool]:
    """Split a line into words as bash does, the last possibly empty; also return whether the line ends within quotes."""
    words, quote, is_escaped = [""], "", False
    for letter in line:
        if is_escaped or (quote and letter != quote):
            words[-1] += letter
            is_escaped = False
        elif letter == "\\":
            is_escaped = True
        elif letter in "'\"":
            quote = "" if quote else letter
        elif letter == " ":
            words += [""] if words[-1] else []
        else:
            words[-1] += letter
    return words, bool(quote)


def _offered(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the completions of the last word, with a blank after whole words, and their descriptions."""
    verb, current = words[0], words[-1]
    firsts = {
        **{name: one.what for name, one in VERBS.items()},
        "help": "of a verb",
        "version": "",
        "completion": "of a shell",
    }
    if len(words) == 1:
        yield from ((f"{name} ", what) for name, what in firsts.items() if name.startswith(current))
    elif verb in ("help", "completion") and len(words) == 2:
        yield from ((f"{name} ", "") for name in (VERBS if verb == "help" else SCRIPTS) if name.startswith(current))
    elif current.startswith("-"):
        yield from ((option, "") for option in _OPTIONS if option.startswith(current) and verb in VERBS)
    elif verb in VERBS:
        yield from _of_verb(verb, words[1:-1], current)


def _of_verb(verb: str, before: list[str], current: str) -> Iterator[tuple[str, str]]:
    """Yield settings, each up to its next dot, or the values of the setting in the current word."""
    from xswe.cli.help import settings

    found = {one.name: one for one in settings(verb)}
    key, sign, value = current.partition("=")
    if sign and (one := found.get(spelling(key.lstrip("+")))):
        start = max(value.rfind("["), value.rfind(",")) + 1 if value.startswith("[") else 0
        for choice in _values(one.name, one.kind, value[start:]):
            yield f"{key}={value[:start]}{choice.rstrip() if start else choice}", ""
    elif not sign:
        given, sections, start = {word.partition("=")[0] for word in before}, set(), len(spelling(current))
        for name, one in found.items():
            if name.startswith(spelling(current)) and name not in given:
                if (dot := name.find(".", start) + 1) and name[:dot] not in sections:
                    sections.add(name[:dot])
                    yield current + name[start:dot], f"settings of {name[: dot - 1]}"
                elif not dot:
                    yield f"{current}{name[start:]}=", one.meaning
        if verb == "corpus" and not before:
            yield from ((f"{action} ", "") for action in found["action"].kind.split(", ") if action.startswith(current))


def _values(name: str, kind: str, value: str) -> Iterator[str]:
    """Yield the values of a setting: its choices, models of this package, languages, or file names."""
    from xswe.io.resources import resource

    choices = kind.split(", ") if re.fullmatch(r"[\w./-]+(, [\w./'-]+)+", kind) else []
    if name == "pair":
        taken = value.split("-")[:-1]
        codes = dict.fromkeys(re.findall(r"\b[a-z]{2}\b(?=,| and| in)", kind))
        choices = ["-".join([*taken, code]) for code in codes if code not in taken]
    elif name == "model":
        choices = sorted(path.name for path in resource("pretrained").glob("*/"))
    yield from (f"{choice} " for choice in choices if choice.startswith(value))
    if kind in _FILE_KINDS:
        folder, start = os.path.split(value)
        try:
            entries = sorted(os.scandir(os.path.expanduser(folder) or "."), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            if entry.name.startswith(start) and (start or not entry.name.startswith(".")):
                yield os.path.join(folder, entry.name) + ("/" if entry.is_dir() else " ")
