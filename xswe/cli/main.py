"""``python -m xswe <verb> key=value …``: compose the settings with Hydra, and call the verb's function."""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, TextIO

from xswe.cli.verbs import VERBS
from xswe.face import FORMER, spelling

_STDOUT = ("-", "/dev/stdout")  # if the output goes there, the summary goes to standard error


def usage() -> str:
    """Return the text that ``python -m xswe --help`` prints."""
    verbs = "\n".join(f"  {verb:<13} {one.what}" for verb, one in VERBS.items())
    return (
        f"usage: python -m xswe <verb> key=value ...\n\n{verbs}\n\n"
        "python -m xswe <verb> --help      what it does, examples, and its settings\n"
        "python -m xswe <verb> --cfg job   the composed configuration\n"
        "python -m xswe completion bash    the completion script for bash; also for zsh and fish"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run a verb; return 0 on success, 2 for user errors, with a line on standard error that tells how to fix them."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):  # pipes on Windows have the local code page, which lacks most characters
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8")
    if arguments[:1] == ["help"] and arguments[1:2]:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        _print(usage(), sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version", "version"):
        from xswe.version import __version__

        _print(__version__)
        return 0
    if arguments[0] in ("completion", "--complete"):
        return _complete(arguments)
    verb, rest = arguments[0], arguments[1:]
    if verb not in VERBS:
        from xswe.io.settings import suggestion

        return _complain(f"unknown verb {verb!r}: the verbs are {', '.join(VERBS)}{suggestion(verb, VERBS)}")
    if asked := {"-h", "--help", "--help-all"} & set(rest):
        from xswe.cli.help import verb_help

        _print(verb_help(verb, "--help-all" in asked))
        return 0
    if any("neighbors" in argument for argument in rest):
        rest = [spelling(key) + sign + value for key, sign, value in (argument.partition("=") for argument in rest)]
    if mistake := next(filter(None, (_mistake(verb, argument) for argument in rest)), ""):
        return _complain(mistake)
    if verb == "corpus" and rest and rest[0].isalpha():
        rest[0] = f"action={rest[0]}"
    return _run_until_interrupted(verb, rest)


def _mistake(verb: str, argument: str) -> str:
    """Return the error in an argument, to be reported before Hydra sees it; "" if there is none."""
    key, sign, _ = argument.partition("=")
    former = (FORMER.get(call.partition(":")[2], {}).get(key.lstrip("+")) for call in VERBS[verb].calls.values())
    if sign and (new := next(filter(None, former), None)) and _setting(new, verb):
        return f"{key}= is now {new}="
    if argument.startswith("--") and (given := _setting(key[2:], verb)):
        return f"{argument}: write {given}=…, without dashes"
    if argument.startswith("~") and not argument.startswith("~hydra"):
        return f"{argument}: a setting always has a value: {key[1:]}=…; python -m xswe {verb} --help lists them"
    return ""


def _run_until_interrupted(verb: str, overrides: list[str]) -> int:
    """Run a verb; after Ctrl-C, report where the same command resumes."""
    from xswe.work.kept import begin, going_on

    begin()
    try:
        with _rare_collections():
            return _run(verb, overrides)
    except BaseException as error:
        if not _is_interrupt(error):
            raise
    where = going_on()
    kept = f"the same command goes on {where}" if where else "nothing was kept: the same command starts over"
    _complain(f"interrupted; {kept}")
    return 130


def _is_interrupt(error: BaseException | None) -> bool:
    """Return True if an error is Ctrl-C, or was caused by it within a library."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or _is_interrupt(error.__context__))


def _complete(arguments: list[str]) -> int:
    """Print the completion script of a shell or, when called by it, the completions of the last word."""
    from xswe.cli.complete import SCRIPTS, completed

    shell = "".join(arguments[1:2])
    if shell not in SCRIPTS:
        return _complain(
            f"completion for {shell or 'which shell'}: choose one of {', '.join(SCRIPTS)}, as in xswe completion bash"
        )
    _print(SCRIPTS[shell] if arguments[0] == "completion" else "\n".join(completed(shell, arguments[2:] or [""])))
    return 0


def _print(text: str, stream: TextIO | None = None) -> None:
    """Print a text; its reader, such as a pager, may close the pipe early."""
    try:
        print(text, file=stream or sys.stdout, flush=True)
    except BrokenPipeError:
        _hang_up()


def _hang_up() -> None:
    """Drop the buffered output that nobody reads: Python would complain about it at exit."""
    with contextlib.suppress(OSError):  # standard output is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _setting(name: str, verb: str) -> str:
    """Return the setting of a verb with this name, in which dashes count as underscores; "" if there is none."""
    from xswe.cli.help import settings

    return next((one.name for one in settings(verb) if one.name == name.replace("-", "_")), "")


def quoted(arguments: list[str], names: Collection[str] = ()) -> list[str]:
    """Quote values that are plain text but not valid in Hydra's grammar, mostly file names.

    Without quotes, ``input=日本.txt`` or ``input=a(1).txt`` would be a syntax error. Values that Hydra understands stay as
    they are, except that a comma is text unless several runs are allowed (``-m``), and a number is text in a setting of
    ``names`` (``queries=1984``). ``~/`` becomes the home folder, because not every shell expands it after ``=``.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import ValueType
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    several = any(a in ("-m", "--multirun") or a.lower() == "hydra.mode=multirun" for a in arguments)

    def is_understood(argument: str) -> bool:
        """Return True if Hydra parses an argument, and neither as a sweep without ``-m`` nor as a number for a name."""
        try:
            override = parser.parse_override(argument)
        except HydraException:
            return False
        if override.key_or_group in names:
            value = override.value()
            if any(isinstance(part, (int, float)) for part in (value if isinstance(value, list) else [value])):
                return False
        return several or override.value_type != ValueType.SIMPLE_CHOICE_SWEEP

    def quote(key: str, value: str) -> str:
        """Return a value in quotes if Hydra would otherwise not take it as text; each entry of a list by itself."""
        if is_understood(f"{key}={value}") or "${" in value or (several and "," in value):
            return value
        if value.startswith("[") and value.endswith("]") and not set(value[1:-1]) & set("[]{}'\""):
            return f"[{','.join(quote(key, part) for part in value[1:-1].split(','))}]"
        if value.startswith(("[", "{", "'", '"')):
            return value
        # Within quotes, a backslash is literal unless a quote follows.
        text = re.sub(r"(\\*)('|$)", lambda found: 2 * found[1] + ("\\'" if found[2] else ""), value)
        return f"'{text}'"

    home = os.path.expanduser("~").replace("\\", "/")
    pairs = [re.sub(r"(?<=[=\[,:])~(?=/)", lambda _: home, argument).partition("=") for argument in arguments]
    return [
        argument if argument.startswith("-") or not sign else f"{key}={quote(key, value)}"
        for argument, (key, sign, value) in zip(arguments, pairs, strict=True)
    ]


def _complain(message: str) -> int:
    for line in message.splitlines() or [""]:
        print(f"xswe: {' '.join(line.split())}", file=sys.stderr)  # noqa: T201
    return 2


def _explain(error: Exception, verb: str) -> str:
    """Convert Hydra's message to one line with a hint."""
    from xswe.errors import ConfigError
    from xswe.text.languages import check_languages

    message = " ".join(str(error).split())
    if group := re.search(r"Could not find '([\w/]+)/([^'/]+)'", message):
        name, value = group.groups()
        if "," in value:
            return f"{name}={value} names several: python -m xswe {verb} -m runs them one after the other"
        known = re.search(r"Available options in '[\w/]+': (.*?) Config search path", message)
        if name == "pair":
            try:
                check_languages(value.split("-"))
            except ConfigError as wrong:
                return str(wrong)
        return f"unknown {name} {value!r}: choose one of {', '.join(known.group(1).split()) if known else 'those in conf'}"
    if word := re.search(r"Error parsing override '(.*)' missing EQUAL at", message):
        return f"{word[1]}: a setting is key=value, as in output=a.tsv; python -m xswe {verb} --help lists them"
    if "override_grammar" in message:  # Hydra's page on its grammar does not help with file names
        found = message.partition(" See http")[0]
        hint = "quote names with brackets or commas within the quotes, as in \"tasks=['a [1].tsv',b.tsv]\""
        return f"cannot parse a setting ({found}): {hint}"
    if key := re.search(r"Could not override '([^']+)'", message):
        from xswe.cli.help import settings
        from xswe.io.settings import suggestion

        guess = suggestion(key.group(1), [setting.name for setting in settings(verb)])
        return f"there is no setting {key.group(1)!r}{guess or ';'} python -m xswe {verb} --help lists them"
    return f"{message}; see python -m xswe {verb} --help"


@contextlib.contextmanager
def _errors_let_through() -> Iterator[None]:
    """Make Hydra raise errors, which are reported here; restored at the end, so that later processes do not inherit it."""
    before = os.environ.get("HYDRA_FULL_ERROR")
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    finally:
        del os.environ["HYDRA_FULL_ERROR"]
        if before is not None:
            os.environ["HYDRA_FULL_ERROR"] = before


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage every 20,000 new objects, not 700: the imports of a run create some 100,000 that all stay."""
    before = gc.get_threshold()
    gc.set_threshold(20_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _run(verb: str, words: list[str]) -> int:
    """Run a verb with its settings, which Hydra composes unless the words are simple."""
    from xswe.cli.settings import simple

    trace = os.environ.get("HYDRA_FULL_ERROR", "0") != "0"
    if (values := simple(verb, words)) is not None:
        _call(verb, lambda: values, trace)
        return 0
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from xswe.cli import compose
    from xswe.cli.settings import names
    from xswe.io.resources import resource

    compose.register(verb, words)
    words = compose.overrides(quoted(words, names(verb)))
    try:
        if not any("hydra" in word or word.startswith("-") for word in words):
            config = compose.composed(verb, words)
            _call(verb, lambda: compose.plain(config), trace)
            return 0
        sys.argv = ["xswe", *words]
        run = hydra.main(version_base="1.3", config_path=str(resource("conf")), config_name=verb)
        with _errors_let_through():
            run(lambda config: _call(verb, lambda: compose.plain(config), trace, compose.has_log()))()
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        if trace or (isinstance(error, ValueError) and "Only one of --run" not in str(error)):
            raise
        return _complain(_explain(error, verb))
    return 0


def _call(verb: str, compose: Callable[[], dict[str, Any]], trace: bool, has_log: bool = False) -> None:
    """Call a verb's function with its settings, and print its summary."""
    from xswe.cli.run import run
    from xswe.cli.settings import as_keys, check_shape
    from xswe.errors import Unfinished, XsweError, no_room
    from xswe.io.inputs import watched
    from xswe.progress import LogHandler
    from xswe.work.folder import pipes_spooled

    if not has_log:
        logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", handlers=[LogHandler()], force=True)
    logging.getLogger("xswe").setLevel(logging.INFO)
    values: dict[str, Any] = {}
    try:
        values = check_shape(verb, compose())
        with watched(), pipes_spooled(values) as values:
            summary = run(verb, values)
        if summary:
            _print(summary, sys.stderr if values.get("output") in _STDOUT else sys.stdout)
    except Unfinished as error:  # other tasks go on: not a failure, though there is no result yet
        _complain(str(error))
    except XsweError as error:
        if trace:
            raise
        raise SystemExit(_complain(as_keys(str(error), values))) from None
    except BrokenPipeError:  # the reader closed the pipe
        _hang_up()
        raise SystemExit(0) from None
    except OSError as error:  # no permission, no space: user errors
        if trace:
            raise
        where = error.filename or values.get("output") or values.get("index") or verb
        hint = "; make room, and give the same command again" if no_room(error) else " (HYDRA_FULL_ERROR=1 shows where)"
        raise SystemExit(_complain(f"{where}: {error.strerror or error}{hint}")) from None
