"""The manual page is the generated one, says all that there is, and is shown without a complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import manpage
import pytest
import shell_scripts
import typer
from conftest import ROOT

PAGE = ROOT / "completions" / "errtriage.1"


def test_the_page_is_the_generated_one(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("regenerate"):
        PAGE.write_text(manpage.page())
    assert PAGE.read_text() == manpage.page()


def shown(page: str) -> str:
    """A page as a reader shows it, without bold and italics; the reader must have nothing to complain about."""
    if shutil.which("groff") is None:
        pytest.skip("no groff is installed (on Debian: apt install groff-base)")
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-P-cbou"], input=page, capture_output=True, encoding="utf-8", check=True)
    assert done.stderr == ""
    return done.stdout


def test_every_command_and_option_is_in_it() -> None:
    sections = dict(re.findall(r"^   (errtriage .*)\n((?:       .*\n|\n)*)", shown(PAGE.read_text()), re.MULTILINE))
    places = list(shell_scripts.walk())
    assert list(sections) == [place.name for place in places[1:]]
    sections["errtriage"] = re.split(r"^OPTIONS|^COMMANDS", shown(PAGE.read_text()), flags=re.MULTILINE)[1]
    for place in places:
        words = sections[place.name].split()
        spelled = {each for option in place.options for each in (*option.opts, *option.secondary_opts)}
        assert spelled <= {word.rstrip(",") for word in words}
        for parameter in (*place.options, *place.arguments):
            assert " ".join((parameter.help or "").replace("`", "").split()) in " ".join(words)


def test_nothing_is_wider_than_a_terminal() -> None:
    assert max(map(len, shown(PAGE.read_text()).splitlines())) <= 80


def test_every_environment_variable_is_in_it() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r"""(?:environ(?:\.get\(|\[)|getenv\()["']([A-Z_]+)""", source))
    assert read
    section = shown(PAGE.read_text()).partition("\nENVIRONMENT")[2].partition("\nFILES")[0]
    assert read <= set(re.findall(r"^       ([A-Z_]+)\b", section, re.MULTILINE))


def test_commands_may_stand_in_groups() -> None:
    app, group, inner = (typer.Typer(rich_markup_mode=None, help=f"Group {number}: of some things.") for number in range(3))
    app.add_typer(group, name="contracts")
    group.add_typer(inner, name="inner")

    @group.command()
    def new(folder: str, name: str = typer.Option("x", envvar="SOME_NAME", help="It's .a\\n name - really: “--force” ^~.")) -> None:
        """Make one.

        .Not a macro, and 'not another.

        Exit: 0 made, 1 there is one.
        """

    @inner.command()
    def show() -> None:
        """Show it."""

    command: Any = typer.main.get_command(app)
    text = " ".join(shown(manpage.page(command)).split())
    for words in (
        "errtriage contracts new errtriage contracts new [OPTIONS] folder Make one. .Not a macro, and 'not another.",
        "errtriage contracts inner show [OPTIONS]",
        "contracts new 0 made 1 there is one",
        "It's .a\\n name - really: “--force” ^~.",
        "SOME_NAME Stands in for --name of errtriage contracts new.",
    ):
        assert words in text
