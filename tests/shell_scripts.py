"""Writes the completion scripts of ``completions/`` from the definitions of the commands.

The scripts ask errtriage through Typer's protocol (``_ERRTRIAGE_COMPLETE``). They are not Typer's own because

- its script for zsh offers nothing at the first TAB where zsh loads it from ``fpath``, and loses quotation marks;
- its script for bash does not complete ``--format=``, nor that for fish;
- its script for fish starts errtriage twice for a TAB, and all start it to find that a file name is wanted, also where
  none is;
- where help is wider than the terminal, its second line is offered as if it were a value.

After which words a file name is wanted is written into ours. PowerShell's is Typer's, but for the width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import typer
from typer._completion_shared import get_completion_script

from errtriage.cli import Commands, app, load

#: What stands for a file or a folder in an option's or an argument's help.
_FILES = {"FILE", "PATH", "FOLDER", "DIR", "DIRECTORY"}


class Place(NamedTuple):
    """A command in its group: the words that call it, its definition and its context."""

    words: tuple[str, ...]
    command: Any
    context: Any

    @property
    def name(self) -> str:
        """The words in one text."""
        return " ".join(self.words)

    @property
    def options(self) -> list[Any]:
        """The options that help shows."""
        return [each for each in self.command.get_params(self.context) if each.param_type_name == "option" and not each.hidden]

    @property
    def arguments(self) -> list[Any]:
        """The arguments that help shows."""
        return [each for each in self.command.get_params(self.context) if each.param_type_name == "argument" and not each.hidden]


def walk(command: Any = None, words: tuple[str, ...] = ("errtriage",), parent: Any = None) -> Iterator[Place]:
    """A command and all below it, in the order of the help; by default all of errtriage."""
    command = command or typer.main.get_command(app)
    context = command.context_class(command, info_name=words[-1], parent=parent, **command.context_settings)
    yield Place(words, command, context)
    if hasattr(command, "list_commands"):
        for name in command.list_commands(context):
            below = load(name) if isinstance(command, Commands) else command.get_command(context, name)
            if not below.hidden:
                yield from walk(below, (*words, name), context)


def is_file(parameter: Any, context: Any) -> bool:
    """Whether a parameter is the name of a file or folder, and knows no values of its own."""
    words = set(re.findall(r"[A-Z]+", parameter.make_metavar(ctx=context)))
    return parameter._custom_shell_complete is None and (bool(words & _FILES) or parameter.type.name in ("path", "file", "filename", "directory"))


class _Cases(NamedTuple):
    """What the scripts know of the commands: which there are, and after which words there is a file name or is none."""

    commands: list[str]
    file_options: list[str]
    other_options: list[str]
    file_arguments: list[str]


def _cases(command: Any) -> _Cases:
    cases = _Cases([], [], [], [])
    for place in walk(command):
        if len(place.words) > 1:
            cases.commands.append(place.name)
        for option in place.options:
            if not option.is_flag and not option.count:
                chosen = cases.file_options if is_file(option, place.context) else cases.other_options
                chosen += [f"{place.name} {spelling}" for spelling in option.opts]
        if any(is_file(argument, place.context) for argument in place.arguments):
            cases.file_arguments.append(place.name)
    # Only where a file name could be an argument has to be known that it is another option's value.
    cases.other_options[:] = [each for each in cases.other_options if each.rpartition(" ")[0] in cases.file_arguments]
    return cases


#: The place of the cursor, as the scripts name it: ``errtriage lint``, or ``errtriage lint --baseline`` for the value of
#: that option, or ``option`` for an option's name.
_HEAD = "# Completion of errtriage for @shell@. Written by pytest --regenerate from tests/shell_scripts.py: do not edit it here."

_BASH = r"""@head@

# Sets $place for the cursor at the end of $words: the command, and behind an option also the option.
_errtriage_place() {
    local current=${words[${#words[@]} - 1]} word behind= dashes=
    place=errtriage
    for word in "${words[@]:1:${#words[@]}-2}"; do
        if [[ $word == -- ]]; then
            dashes=1 behind=
        elif [[ $word == -* && ! $dashes ]]; then
            behind=" $word"
        else
            behind=
            case "$place $word" in
                @commands@)
                    place+=" $word"
                    ;;
            esac
        fi
    done
    if [[ $dashes || $current != -* ]]; then
        place+=$behind
    elif [[ $current == --*=* ]]; then
        place+=" ${current%%=*}"
    else
        place=option
    fi
}

# Whether a file name is wanted at $place.
_errtriage_file() {
    case $place in
        @file_options@)
            return 0
            ;;
        @other_options@)
            return 1
            ;;
        @file_arguments@)
            return 0
            ;;
    esac
    return 1
}

_errtriage_completion() {
    local program=$1 current=$2 rest=${COMP_LINE:0:COMP_POINT} place space word i
    local -a words=()
    # Bash splits words at = and at colons too. Here they are whole, and end at the cursor.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        space=${rest%%[![:space:]]*}
        rest=${rest#"$space"}
        word=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || word=$rest
        rest=${rest#"$word"}
        if [[ $space || $i == 0 ]]; then
            words+=("$word")
        else
            words[${#words[@]} - 1]+=$word
        fi
    done
    # Some codes are negative numbers. For Typer they are no options only behind --.
    if [[ ${words[${#words[@]} - 1]} == -[0-9]* ]]; then
        words=("${words[@]:0:${#words[@]}-1}" -- "${words[${#words[@]} - 1]}")
    fi
    COMPREPLY=()
    _errtriage_place
    if _errtriage_file; then
        return # having got nothing, bash completes a file name
    fi
    compopt +o default +o bashdefault 2> /dev/null # and here none; the bash of macOS is too old for that

    # What bash replaces is what stands behind the last = or colon.
    word=${words[${#words[@]} - 1]}
    [[ $word == --*=* ]] && word=${word#*=}
    word=${word%"$current"}
    [[ $word == *[:=] ]] || word=
    [[ $program == "~/"* ]] && program=$HOME/${program#"~/"}
    local IFS=$'\n' offer
    while read -r offer; do
        [[ $offer ]] && COMPREPLY+=("${offer#"$word"}")
    done < <(env _ERRTRIAGE_COMPLETE=complete_bash COMP_CWORD=$((${#words[@]} - 1)) COMP_WORDS="${words[*]}" "$program" 2> /dev/null)
    # What the shell would take apart is quoted, unless a quotation mark does so already.
    if [[ ${words[${#words[@]} - 1]} != *[\"\']* && ${#COMPREPLY[@]} -gt 0 ]]; then
        for i in "${!COMPREPLY[@]}"; do
            printf -v offer %q "${COMPREPLY[i]}"
            COMPREPLY[i]=$offer
        done
    fi
}

complete -o bashdefault -o default -F _errtriage_completion errtriage
"""

_ZSH = r"""#compdef errtriage
@head@

# Sets $place for the cursor at the end of $words: the command, and behind an option also the option.
_errtriage_place() {
    local word behind= dashes=
    place=errtriage
    for word in "${(@)words[2,CURRENT-1]}"; do
        if [[ $word == -- ]]; then
            dashes=1 behind=
        elif [[ $word == -* && -z $dashes ]]; then
            behind=" $word"
        else
            behind=
            case "$place $word" in
                @commands@)
                    place+=" $word"
                    ;;
            esac
        fi
    done
    if [[ -n $dashes || $current != -* ]]; then
        place+=$behind
    elif [[ $current == --*=* ]]; then
        place+=" ${current%%=*}"
    else
        place=option
    fi
}

# Whether a file name is wanted at $place.
_errtriage_file() {
    case $place in
        @file_options@)
            return 0
            ;;
        @other_options@)
            return 1
            ;;
        @file_arguments@)
            return 0
            ;;
    esac
    return 1
}

_errtriage() {
    local place current=$QIPREFIX$PREFIX program=${(Q)words[1]} reply value help
    local -a offers
    # Some codes are negative numbers. For Typer they are no options only behind --.
    [[ $current == -[0-9]* ]] && current="-- $current"
    _errtriage_place
    [[ $place != option && $PREFIX == --*=* ]] && compset -P 1 '*='
    if _errtriage_file; then
        _files
        return
    fi
    [[ $program == '~/'* ]] && program=$HOME/${program#'~/'}
    reply=$(env _ERRTRIAGE_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args TERMINAL_WIDTH=9999 \
        _TYPER_COMPLETE_ARGS="${(j: :)words[1,CURRENT-1]} $current" $program 2> /dev/null)
    for reply in ${(f)reply}; do
        reply=${reply//\\/\\\\}
        value=${reply%%$'\t'*}
        help=${reply#$value}
        offers+=("${value//:/\\:}${help:+:${help#$'\t'}}")
    done
    _describe -t values 'errtriage' offers
}

# Loaded from a folder of fpath, the file is the function and is being called; read by source, it only defines it.
if [[ $funcstack[1] == _errtriage ]]; then
    _errtriage "$@"
else
    compdef _errtriage errtriage
fi
"""

_FISH = r"""@head@

function __errtriage_place --description 'The command at the cursor, and behind an option also the option'
    set -l place errtriage
    set -l behind
    set -l dashes
    set -l current (commandline -ct)
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if test "$word" = --
            set dashes 1
            set behind
        else if string match -q -- '-*' $word; and not set -q dashes[1]
            set behind $word
        else
            set behind
            switch "$place $word"
                case @commands@
                    set place "$place $word"
            end
        end
    end
    if set -q dashes[1]; or not string match -q -- '-*' $current
        string join ' ' -- $place $behind
    else if string match -q -- '--*=*' $current
        string join ' ' -- $place (string replace -r '=.*' '' -- $current)
    else
        echo option
    end
end

function __errtriage_file --description 'Whether a file name is wanted at the cursor'
    switch (__errtriage_place)
        case @file_options@
            return 0
        case @other_options@
            return 1
        case @file_arguments@
            return 0
    end
    return 1
end

function __errtriage_offers --description 'What errtriage offers at the cursor'
    set -l current (commandline -ct)
    set -l words (commandline -opc)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    # Quoted for Python's shlex, which does not know fish's quoting.
    set -l line "'"(string replace -a "'" "'\"'\"'" -- $words)"'"
    # Some codes are negative numbers. For Typer they are no options only behind --.
    string match -qr -- '^-[0-9]' $current; and set current "-- $current"
    set -l option (string match -r -- '^--[^=]+=' $current)
    for offer in (env _ERRTRIAGE_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args TERMINAL_WIDTH=9999 \
            _TYPER_COMPLETE_ARGS="$line $current" $program 2> /dev/null)
        test -n "$offer"; and printf '%s\n' "$option$offer"
    end
end

complete --command errtriage --condition __errtriage_file --force-files
complete --command errtriage --condition 'not __errtriage_file' --no-files --arguments '(__errtriage_offers)'
"""


def scripts(command: Any = None) -> dict[str, str]:
    """Every script of a group of commands, by its name in ``completions/``; by default of errtriage."""
    cases = _cases(command)
    return {
        "errtriage.bash": _filled(_BASH, "bash", cases),
        "_errtriage": _filled(_ZSH, "zsh", cases),
        "errtriage.fish": _filled(_FISH, "fish", cases),
        "errtriage.ps1": _powershell(),
    }


def _filled(template: str, shell: str, cases: _Cases) -> str:
    """A script with its cases, one a line. Within quotation marks * is a pattern for fish alone."""
    script = template.replace("@head@", _HEAD.replace("@shell@", shell))
    patterns = cases._asdict()
    # An argument's place may be behind a flag.
    patterns["file_arguments"] = [each for place in cases.file_arguments for each in (place, f"{place} -*")]
    for name, values in patterns.items():
        quoted = [f"'{each}'" if shell == "fish" else f"'{each.rstrip('*')}'{'*' * each.endswith('*')}" for each in values]
        indent = re.search(rf"^( *).*@{name}@", script, re.MULTILINE)
        assert indent
        between = f" \\\n{indent[1]}    " if shell == "fish" else f" | \\\n{indent[1]}"
        script = script.replace(f"@{name}@", between.join(quoted))
    return script


def _powershell() -> str:
    """Typer's script, with a width at which no help is wrapped."""
    script = get_completion_script(prog_name="errtriage", complete_var="_ERRTRIAGE_COMPLETE", shell="powershell")  # noqa: S604 - a name
    lines = script.splitlines()
    for value, anchor in (("9999", '$Env:_ERRTRIAGE_COMPLETE = "complete_powershell"'), ("", '$Env:_ERRTRIAGE_COMPLETE = ""')):
        (at,) = (number for number, line in enumerate(lines) if line.strip() == anchor)
        lines.insert(at, f'    $Env:TERMINAL_WIDTH = "{value}"')
    return "\n".join(lines) + "\n"
