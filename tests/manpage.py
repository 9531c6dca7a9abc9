"""Writes the manual page ``completions/errtriage.1`` from the definitions of the commands."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from shell_scripts import Place, walk

from errtriage import __version__, console
from errtriage.model import ACTION_EXIT, UNRECOGNISED_EXIT

#: The environment variables that errtriage reads, besides those of options.
ENVIRONMENT = {
    "NO_COLOR": "Set to anything, it turns colours off. `--color` is stronger.",
    "FORCE_COLOR": "Set to anything but 0 and false, it turns colours on, also where standard output is no terminal. `NO_COLOR` is stronger.",
    "COLUMNS": "The width to wrap text at. By default it is the terminal's, and in a pipe text is not wrapped.",
    "TERM": "Where it is `dumb`, nothing is coloured unless asked for.",
}

FILES = {
    "errtriage.toml": "What a project sets for `errtriage lint`: `select`, `ignore`, `fail-on` and `contract`. "
    "It is sought from the current folder upward, and options are stronger.",
    "pyproject.toml": "May set the same in its table `[tool.errtriage]`.",
}

#: How any command may end.
EXITS = {
    "2": "Wrong usage, or something that could not be read or written.",
    str(console.BUG): "A bug of errtriage, which says so.",
    str(console.INTERRUPTED): "Interrupted.",
    str(console.READER_GONE): "The reader of the output went away.",
}

SEE_ALSO = ("jq", "grep", "journalctl")


def page(command: Any = None) -> str:
    """The manual page of a group of commands; by default of errtriage."""
    first, *places = walk(command)
    title = first.command.help.partition(":")[0]
    lines = [
        r".\" Written by pytest --regenerate from tests/manpage.py: do not edit it here.",
        f'.TH ERRTRIAGE 1 "" "errtriage {__version__}" "User Commands"',
        ".nh\n.ad l",
        ".SH NAME",
        rf"errtriage \- {_text(title[0].lower() + title[1:])}",
        ".SH SYNOPSIS",
        "\n.br\n".join(_usage(place) for place in (first, *places) if place is first or not _is_group(place)),
        ".SH DESCRIPTION",
        *_paragraphs(first.command.help)[1:],
        ".SH OPTIONS",
        *_parameters(first),
        ".SH COMMANDS",
    ]
    for place in places:
        lines += [f".SS {_bold(place.name)}", *([] if _is_group(place) else [_usage(place), ".PP"]), *_paragraphs(_help(place)[0])[1:], *_parameters(place)]
    lines += [".SH EXIT STATUS", "The codes of each command, and those with which all may end:"]
    for place in places:
        if exits := _help(place)[1]:
            lines += [".PP", _bold(place.name), *_codes(dict(each.split(" ", 1) for each in re.split(r", (?=\d)", exits.removesuffix("."))))]
    lines += [".PP", "all commands", *_codes(EXITS)]
    lines += _paragraphs("With `--exit-code`, `errtriage explain` ends by what is to be done. Of several payloads the highest counts.")
    by_action = {str(code): str(action) for action, code in ACTION_EXIT.items()}
    lines += _codes({**by_action, str(UNRECOGNISED_EXIT): "an answer that is not recognised"})
    lines += [".SH ENVIRONMENT", *_described(ENVIRONMENT)]
    for place in (first, *places):
        for option in place.options:
            for name in [option.envvar] if isinstance(option.envvar, str) else option.envvar or ():
                lines += _described({name: f"Stands in for `{option.opts[0]}` of `{place.name}`."})
    lines += [".SH FILES", *_described(FILES), ".SH SEE ALSO"]
    lines.append(", ".join(f"{_bold(each)}(1)" for each in SEE_ALSO))
    return "\n".join(lines) + "\n"


def _is_group(place: Place) -> bool:
    return hasattr(place.command, "list_commands")


def _help(place: Place) -> tuple[str, str]:
    """What a command's help says, and apart from it the paragraph about its exit codes."""
    paragraphs = inspect.cleandoc(place.command.help or "").split("\n\n")
    exits = [each for each in paragraphs if each.startswith("Exit:")]
    return "\n\n".join(each for each in paragraphs if each not in exits), " ".join(exits).removeprefix("Exit:").strip()


def _usage(place: Place) -> str:
    """How a command is called, in bold what is typed so, and in italics what stands for something."""
    pieces = re.sub(r"\{(.+?)\}", r"\1", " ".join(place.command.collect_usage_pieces(place.context)))
    return f"{_bold(place.name)} " + re.sub(r"[A-Z]+", lambda found: _italic(found[0]), _text(pieces))


def _parameters(place: Place) -> list[str]:
    """The arguments and options of a command as ``--help`` has them, with all their choices."""
    lines = []
    for parameter in (*place.arguments, *place.options):
        names, about = parameter.get_help_record(place.context)
        # Help has <str> where nothing says what a value is, and a value's choices in the same brackets.
        names = re.sub(r"<([^<>|]+)>", (parameter.metavar or parameter.name).upper(), names)
        names = re.sub(r"<(.+)>", r"\1", names)
        # Where it names a kind of value, its parser still knows the choices.
        choices = parameter.type.name.split("|")
        if not all(choice in f"{names} {about}" for choice in choices[1:]):
            about += f" It is one of {', '.join(choices)}."
        words = re.sub(r"(?<![\w-])(--?[a-zA-Z][\w-]*)|([^-\s/,].*)", lambda found: _bold(found[1]) if found[1] else _italic(found[2]), names)
        # At a | a long line may be broken.
        lines += [".TP", words.replace("|", r"|\:"), *_paragraphs(re.sub(r"  +", " ", about))[1:]]
    return lines


def _codes(codes: Mapping[str, str]) -> list[str]:
    """Exit codes, each on a line."""
    return [".RS", ".PD 0", *_described(codes, ".TP 5"), ".PD", ".RE"]


def _described(names: Mapping[str, str], head: str = ".TP") -> list[str]:
    return [line for name, about in names.items() for line in (head, _bold(name), *_paragraphs(about)[1:])]


def _paragraphs(text: str) -> list[str]:
    """Paragraphs of text."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        lines.append(".PP")
        lines += map(_text, textwrap.wrap(" ".join(paragraph.split()), 70, break_long_words=False, break_on_hyphens=False))
    return lines


def _bold(text: str) -> str:
    return rf"\fB{_text(text)}\fR"


def _italic(text: str) -> str:
    return rf"\fI{_text(text)}\fR"


#: What troff would take for something else, or set as another character.
_ESCAPES: dict[str, Any] = {"\\": r"\e", "^": r"\(ha", "~": r"\(ti", "`": r"\(ga", '"': r"\(dq"}


def _text(text: str) -> str:
    """Text for troff: as it is, with the hyphens of options as they are typed, and what is in backquotes bold."""
    escaped = "".join(_ESCAPES.get(each, each if each.isascii() else rf"\[u{ord(each):04X}]") for each in text)
    escaped = re.sub(r"(?<![\w\\])--?(?=[\w])|(?<=\w)-(?=-)", lambda found: found[0].replace("-", r"\-"), escaped)
    escaped = re.sub(r"\\\(ga(.+?)\\\(ga", r"\\fB\1\\fR", escaped)
    return re.sub(r"^(?=[.'])", r"\\&", escaped)
