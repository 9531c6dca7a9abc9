"""Which files are read: what was named, what a folder holds, what is left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from errtriage.paths import expand


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("x")


def listed(*names: str) -> list[str]:
    """The files behind some names, with / between folders."""
    return [file.replace(os.sep, "/") for file in expand(list(names)).files]


def test_a_folder_gives_what_may_hold_captures_in_order(folder: Path) -> None:
    make("d/b.json", "d/a.jsonl", "d/c.NDJSON", "d/sub/h.har", "d/x.log", "d/x.log.1", "d/x.log.2.gz", "d/t.txt.zst", "d/j.json.bz2", "d/k.log.xz")
    make("d/readme.md", "d/data.csv", "d/json", "d/a.json.bak", "d/a.py", "d/a.zip")
    assert folder
    want = ["a.jsonl", "b.json", "c.NDJSON", "j.json.bz2", "k.log.xz", "t.txt.zst", "x.log", "x.log.1", "x.log.2.gz", "sub/h.har"]
    assert listed("d") == [f"d/{name}" for name in want]


def test_hidden_folders_and_files_are_left_out_unless_named(folder: Path) -> None:
    make("d/.git/a.json", "d/.cache/b.json", "d/.c.json", "d/d.json")
    assert folder
    assert listed("d") == ["d/d.json"]
    assert listed("d/.cache", "d/.c.json") == ["d/.cache/b.json", "d/.c.json"]


def test_what_gitignore_excludes_is_left_out_unless_named(folder: Path) -> None:
    make("r/.git/config", "r/a/keep.json", "r/a/no.log", "r/a/yes.log", "r/build/x.json", "r/a/build/y.json", "r/out/z.json", "r/a/b/deep.json", "r/mine.json")
    (folder / "r" / ".gitignore").write_text("*.log\n/build/\nout\n")
    (folder / "r" / "a" / ".gitignore").write_text("!yes.log\nb/\n")
    (folder / "r" / ".git" / "info").mkdir()
    (folder / "r" / ".git" / "info" / "exclude").write_text("mine.json\n")
    want = ["r/a/keep.json", "r/a/yes.log", "r/a/build/y.json"]
    assert listed("r") == want
    assert listed("r/a") == want  # the rules above it count too
    assert listed("r/a/no.log", "r/build") == ["r/a/no.log", "r/build/x.json"]
    os.chdir("r/a")
    assert listed(".") == ["keep.json", "yes.log", "build/y.json"]


def test_globs_files_and_standard_input_in_any_order_each_once(folder: Path) -> None:
    make("a/1.json", "a/2.json", "a/b/3.json", "a/notes.md")
    assert folder
    assert listed("a/2.json", "a/*.json", "-", "a/**/*.json", "a", "-") == ["a/2.json", "a/1.json", "-", "a/b/3.json"]
    assert listed("a/*.md") == ["a/notes.md"]
    assert listed("*") == ["a/1.json", "a/2.json", "a/b/3.json"]


def test_a_name_with_a_bracket_is_a_file_first(folder: Path) -> None:
    make("a[1].json")
    assert folder
    assert listed("a[1].json") == ["a[1].json"]


def test_a_link_to_the_same_file_is_the_same_file(folder: Path) -> None:
    make("a.json")
    (folder / "b.json").symlink_to("a.json")
    assert listed(".") == ["a.json"]


def test_what_is_not_there_is_said(folder: Path) -> None:
    (folder / "empty").mkdir()
    make("file")
    listing = expand(["gone.json", "*.nothing", "empty", "file/below", "a\0b"])
    assert listing.files == []
    assert listing.empty == ["empty"]
    assert listing.missing == [
        ("gone.json", "there is no such file or folder"),
        ("*.nothing", "nothing matches it"),
        ("file/below", "there is no such file or folder"),
        ("a\0b", "it is no name of a file"),
    ]


def test_a_line_of_gitignore_that_says_nothing_is_passed_over(folder: Path) -> None:
    make("r/.git/config", "r/a.json", "r/b.json", "r/foo.json")
    (folder / "r" / ".gitignore").write_text("!\n\\\nfoo\\\n[z-a]\n\n# words\nb.json\n")
    assert listed("r") == ["r/a.json", "r/foo.json"]


def test_an_excluded_folder_that_is_named_is_walked(folder: Path) -> None:
    make("r/.git/config", "r/caps/a.json", "r/caps/b.log")
    (folder / "r" / ".gitignore").write_text("caps\n*.log\n")
    (folder / "r" / "caps" / ".gitignore").write_text("b.log\n")
    assert listed("r") == []
    assert listed("r/caps") == ["r/caps/a.json"]
