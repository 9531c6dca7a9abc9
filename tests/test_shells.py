"""The completion scripts in real shells: installed where the wheel puts them, asked with the TAB key on a terminal."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import shell_scripts
import typer
from conftest import ROOT

#: How many seconds a shell may take to answer. It takes far fewer; only a test that fails waits so long.
PATIENCE = 50
#: The key that has a shell print its line, which is easier to read than a screen, and what it prints around it.
PRINT, LEFT, RIGHT = "\x18p", "<[", "]>"
PRINTED = re.escape(LEFT) + "(.*)" + re.escape(RIGHT)
READY = "ready> "

#: The package bash-completion, which loads a script when its command is first completed.
LOADER = Path("/usr/share/bash-completion/bash_completion")

#: What starts each shell, its own file in the home folder, and what is in it.
STARTS = {
    "bash": (["bash", "--noprofile", "--rcfile", ".bashrc", "-i"], ".bashrc"),
    "zsh": (["zsh", "-d", "-i"], ".zshrc"),
    "fish": (["fish", "-i"], ".config/fish/config.fish"),
}
SETTINGS = {
    "bash": rf"""
        PS1='{READY}'
        for setting in 'enable-bracketed-paste off' 'bell-style none' 'show-all-if-ambiguous on' 'page-completions off'; do
            bind "set $setting"
        done
        bind 'set completion-query-items 0'
        printed() {{ printf '{LEFT}%s{RIGHT}' "$READLINE_LINE"; }}
        bind -x '"\C-xp": printed'
    """,
    "zsh": rf"""
        PS1='{READY}' LISTMAX=10000
        unsetopt beep prompt_sp list_ambiguous
        printed() {{ print -rn -- "{LEFT}$BUFFER{RIGHT}" > $TTY }}
        zle -N printed
        bindkey '^Xp' printed
    """,
    "fish": rf"""
        set -g fish_greeting
        set -g fish_autosuggestion_enabled 0
        function fish_prompt; printf '{READY}'; end
        bind \cxp 'printf "{LEFT}%s{RIGHT}" (commandline)'
    """,
}
COMPINIT = "autoload -Uz compinit; compinit -D -u\n"
#: How the script comes into the shell; ``SHARE`` is the folder ``share`` of an installed wheel.
LOADED = {
    "bash": "source SHARE/bash-completion/completions/errtriage\n",
    "bash-completion": f"source {LOADER}\n",
    "zsh": "fpath=(SHARE/zsh/site-functions $fpath)\n" + COMPINIT,
    "zsh by source": COMPINIT + "source SHARE/zsh/site-functions/_errtriage\n",
    "fish": "",
}
SHELLS = list(STARTS)

ERRTRIAGE = f'#!/bin/sh\nexec "{sys.executable}" -m errtriage "$@"\n'
#: In place of errtriage: offers what a test wants offered, and prints what arrives.
STUB = f"""#!/bin/sh
case $_ERRTRIAGE_COMPLETE in
    complete_bash) cut -f 1 "$HOME/offers" ;;
    complete_fish) cat "$HOME/offers" ;;
    *) shift; printf '{LEFT}%s{RIGHT}' "$*" ;;
esac
"""


class Shell:
    """A shell on a terminal of its own, which is wide enough that nothing is wrapped."""

    def __init__(self, command: list[str], env: dict[str, str], folder: Path) -> None:
        self.terminal, self.theirs = os.openpty()
        # The first terminal that the leader of a session opens becomes the session's; shells want one.
        code = 'exec < "$0" > "$0" 2>&1; stty rows 100 columns 200; exec "$@"'
        leader = ["sh", "-c", code, os.ttyname(self.theirs), *command]
        self.process = subprocess.Popen(leader, env=env, cwd=folder, start_new_session=True)

    def keys(self, keys: str, wanted: str) -> re.Match[str]:
        """Press keys, and wait until the shell has written what is wanted: a regular expression."""
        os.write(self.terminal, keys.encode())
        end = time.monotonic() + PATIENCE
        raw = b""
        while True:
            text = plain(raw)
            if found := re.search(wanted, text, re.DOTALL):
                return found
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            assert ready, f"waited for {wanted!r}, and got {text!r}"
            raw += os.read(self.terminal, 1 << 16)

    def line(self, keys: str) -> str:
        """The line as it stands after some keys."""
        return self.keys(keys + PRINT, PRINTED)[1]

    def end(self) -> None:
        """Hang up."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        os.close(self.terminal)
        os.close(self.theirs)


def plain(raw: bytes) -> str:
    """What a terminal shows, with a space for each code that moves, and nothing for one that colours."""
    text = re.sub(r"\x1b\[[0-9;]*m|\x1b\].*?(\x07|\x1b\\)|\x1b[()].|\x1b[=>]", "", raw.decode(errors="replace"))
    return re.sub(r"\x1b\[[0-9;?<>=]*[A-Za-z]|\r", " ", text)


Start = Callable[..., Shell]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """What starts a shell with the script, in a folder with some files, with errtriage or what stands in for it on its path."""
    started = []
    share = tmp_path / "installed" / "share"
    shared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    for source, place in shared.items():
        target = share.parent / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, target)
    for file in ("answer.json", "my folder/an answer.log"):
        path = tmp_path / "captures" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    def start(way: str, *, program: str = ERRTRIAGE, commands: Any = None, offers: str = "") -> Shell:
        shell = re.split("[ -]", way)[0]
        command, file = STARTS[shell]
        if shutil.which(shell) is None:
            pytest.skip(f"no {shell} is installed (on Debian: apt install {shell})")
        if way == "bash-completion" and not LOADER.exists():
            pytest.skip("no bash-completion is installed (on Debian: apt install bash-completion)")
        if commands:
            for source, place in shared.items():
                if script := shell_scripts.scripts(commands).get(Path(source).name):
                    (share.parent / place).write_text(script)
        home = tmp_path / "home"
        for name, text in ((file, LOADED[way].replace("SHARE", str(share)) + SETTINGS[shell]), ("offers", offers), ("bin/errtriage", program)):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
        (home / "bin/errtriage").chmod(0o755)
        env = {
            "HOME": str(home),
            "PATH": f"{home}/bin{os.pathsep}{os.environ['PATH']}",
            "TERM": "xterm",
            "LC_ALL": "C.UTF-8",
            "XDG_DATA_DIRS": f"{share}:/usr/local/share:/usr/share",
        }
        started.append(Shell([each.replace(".bashrc", f"{home}/.bashrc") for each in command], env, tmp_path / "captures"))
        started[-1].keys("", READY)
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("errtriage ex", "errtriage explain "),
        ("errtriage explain --form", "errtriage explain --format "),
        ("errtriage lint --write-", "errtriage lint --write-baseline "),
        ("errtriage explain --format mark", "errtriage explain --format markdown "),
        ("errtriage explain --format=mark", "errtriage explain --format=markdown "),
        ('errtriage explain --format "mark', 'errtriage explain --format "markdown" '),
        ("errtriage explain --contract cof", "errtriage explain --contract coffeechats "),
        ("errtriage tree mc", "errtriage tree mcp "),
        ("errtriage codes VERSION_", "errtriage codes VERSION_CONFLICT "),
        ("errtriage codes ovstorage/NotF", "errtriage codes ovstorage/NotFound "),
        ("errtriage codes -- -327", "errtriage codes -- -32700 "),
        ("errtriage codes -327", "errtriage codes -32700 "),
        ("errtriage codes -32600 -327", "errtriage codes -32600 -32700 "),
        ("errtriage rules MC104 ET00", "errtriage rules MC104 ET00"),
        ("LANG=C errtriage ex", "LANG=C errtriage explain "),
        ("~/bin/errtriage ex", "~/bin/errtriage explain "),
        ("true | errtriage codes VERSION_", "true | errtriage codes VERSION_CONFLICT "),
        # Files
        ("errtriage explain ans", "errtriage explain answer.json "),
        ("errtriage explain my", r"errtriage explain my\ folder/"),
        (r"errtriage explain my\ folder/a", r"errtriage explain my\ folder/an\ answer.log "),
        ("errtriage explain --format json --trace ans", "errtriage explain --format json --trace answer.json "),
        ("errtriage explain -- ans", "errtriage explain -- answer.json "),
        ("errtriage scan answer.json ans", "errtriage scan answer.json answer.json "),
        ("errtriage scan --output ans", "errtriage scan --output answer.json "),
        ("errtriage scan --output=ans", "errtriage scan --output=answer.json "),
        # and where none is wanted
        ("errtriage codes ans", "errtriage codes ans"),
        ("errtriage explain --tool ans", "errtriage explain --tool ans"),
        ("errtriage ans", "errtriage ans"),
    ],
)
def test_the_first_tab_completes_what_is_certain(start: Start, shell: str, typed: str, line: str) -> None:
    assert start(shell).line(typed + "\t") == line


@pytest.mark.parametrize("way", ["bash-completion", "zsh by source"])
def test_the_first_tab_completes_where_the_script_is_loaded_otherwise(start: Start, way: str) -> None:
    shell = start(way)
    assert shell.line("errtriage codes VERSION_\t") == "errtriage codes VERSION_CONFLICT "
    assert shell.line("\x15errtriage explain ans\t") == "errtriage explain answer.json "


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("errtriage rules HT", ["HT101", "HT102"]),
        ("errtriage codes -3260", ["-32600", "-32601", "-32602", "-32603"]),
        ("errtriage lint --fail-on ", ["error", "warning", "note"]),
        ("errtriage explain --", ["--format", "--contract", "--tool", "--header", "--no-trace", "--color", "--help"]),
        ("errtriage ", ["explain", "lint", "scan", "codes", "tree", "rules"]),
        ("errtriage explain ", ["answer.json", r"my(\\)? folder/"]),
    ],
)
def test_tab_offers_what_is_not_certain(start: Start, shell: str, typed: str, offered: list[str]) -> None:
    start(shell).keys(typed + "\t", "".join(rf"(?=.*\s{each}(\s|$))" for each in offered))


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("value", ["a:b:c", "a[1]", "it's", 'say "$HOME"', "back\\slash", "star*", "two words;&|", "x=y", "#1", "a%b", "é{x,y}"])
def test_a_value_arrives_as_it_is_whatever_a_shell_would_do_with_it(start: Start, shell: str, value: str) -> None:
    stub = start(shell, program=STUB, offers=f"{value}\t{value}\n")
    assert stub.keys(f"errtriage codes {'' if value[0] == '#' else value[0]}\t\r", PRINTED)[1].rstrip(" ") == value


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_help_is_shown_as_it_is(start: Start, shell: str) -> None:
    texts = ["today's “x” [default: text]", 'a "quoted": 50% of $HOME\\n', "`id` $(id) [tool.x] *"]
    stub = start(shell, program=STUB, offers="".join(f"a{number}:\t{text}\n" for number, text in enumerate(texts)))
    patterns = [re.escape(text).replace(r"\ ", r"\s+") for text in texts]
    stub.keys("errtriage codes a\t", "".join(f"(?=.*a{number}:.*{pattern})" for number, pattern in enumerate(patterns)))


@pytest.mark.parametrize("shell", SHELLS)
def test_the_second_line_of_a_long_help_is_not_offered(start: Start, shell: str) -> None:
    # Typer wraps help as for a terminal of 80 columns.
    long = f"""#!{sys.executable}
import typer
app = typer.Typer()
app.command("first", short_help="{"x" * 78} firm")(lambda: None)
app.command("third")(lambda: None)
app(prog_name="errtriage")
"""
    assert start(shell, program=long).line("errtriage fi\t") == "errtriage first "


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_that_fails_offers_nothing_and_says_nothing(start: Start, shell: str) -> None:
    broken = start(shell, program="#!/bin/sh\necho broken\\ install >&2\nexit 3\n")
    assert "broken install" not in broken.keys("errtriage ex\t" + PRINT, f".*{PRINTED}")[0]


GROUPS = f"""#!{sys.executable}
import typer
app, group = typer.Typer(), typer.Typer()
app.add_typer(group, name="group")
@app.command()
def alone(): ...
@group.command()
def new(file: str = typer.Argument(metavar="FILE"), name: str = "", into: str = typer.Option("", metavar="FOLDER")): ...
@group.command()
def show(name: str = typer.Argument(autocompletion=lambda: ["one", "two"])): ...
if __name__ == "__main__":
    app(prog_name="errtriage")
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_may_stand_in_groups(start: Start, shell: str) -> None:
    names: dict[str, Any] = {}
    exec(GROUPS, names)
    grouped = start(shell, program=GROUPS, commands=typer.main.get_command(names["app"]))
    for typed, line in {
        "errtriage group ne": "errtriage group new ",
        "errtriage group new ans": "errtriage group new answer.json ",
        "errtriage group new --name ans": "errtriage group new --name ans",
        "errtriage group new --into my": r"errtriage group new --into my\ folder/",
        "errtriage group show on": "errtriage group show one ",
        "errtriage group show ans": "errtriage group show ans",
    }.items():
        assert grouped.line(f"\x15{typed}\t") == line
