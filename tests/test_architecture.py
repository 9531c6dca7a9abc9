"""Imports go one way, heavy packages stay where they belong, and every module says what it is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGE = ROOT / "src" / "errtriage"
MODULES = sorted(PACKAGE.rglob("*.py"))

#: Which modules of ours each module may import. The page that is the program is ``verdicts``.
ALLOWED = {
    "model": set(),
    "pointers": set(),
    "jsontext": set(),
    "redact": set(),
    "wording": set(),
    "delays": set(),
    "errortext": set(),
    "cuts": set(),
    "literals": {"cuts", "jsontext"},
    "carriers": set(),
    "search": {"cuts", "jsontext", "literals"},
    "boundaries": {"carriers", "redact"},
    "rawhttp": {"boundaries", "challenges", "model", "search"},
    "inputs": {"model", "remote"},
    "har": {"challenges", "model"},
    "packs": {"model", "redact"},
    "completion": {"model", "packs"},
    "contracts": {"cuts", "model", "packs"},
    "challenges": set(),
    "proof": {"contracts", "facts", "model", "packs", "pointers", "redact", "safety", "violations", "wording"},
    "safety": {"contracts", "pointers", "redact"},
    "overlay": {"model", "packs", "proof", "safety"},
    "remote": set(),
    "cluster": {"model"},
    "coverage": {
        "audit",
        "conduct",
        "contracts",
        "jsontext",
        "judge",
        "knowledge",
        "model",
        "packs",
        "payloads",
        "pointers",
        "proof",
        "regions",
        "render.jsonl",
        "safety",
        "scan",
        "traffic",
        "verdicts",
    },
    "payloads": {"model", "carriers", "errortext", "jsontext", "rawhttp", "redact", "search"},
    "absence": {"jsontext", "search", "wording"},
    "paths": {"inputs", "remote"},
    "places": {"model"},
    "reports": {"wording"},
    "executors": set(),
    "settings": {"contracts", "model"},
    "baseline": {"model", "reports"},
    "wrappers": {"model", "carriers", "cuts", "errortext", "har", "payloads"},
    "violations": {"model", "contracts", "cuts", "pointers"},
    "facts": {"model", "challenges", "contracts", "cuts", "delays", "payloads", "pointers"},
    "rules": {"model", "contracts", "cuts", "facts", "pointers", "redact", "wording"},
    "verdicts": {"model", "contracts", "cuts", "delays", "facts", "jsontext", "payloads", "pointers", "redact", "rules", "violations", "wording", "wrappers"},
    "render.words": {"model", "wording"},
    "render.jsonl": {"model"},
    "render.terminal": set(),
    "render.text": {"contracts", "model", "redact", "render.terminal", "render.tree_text", "render.words"},
    "render.contracts_text": {"facts", "contracts", "coverage", "packs", "render.terminal", "wording"},
    "render.lint_text": {"render.terminal", "reports", "wording"},
    "render.lint_json": {"reports"},
    "render.audit_json": {"audit", "conduct", "connections", "moments", "render.lint_json"},
    "render.audit_text": {"audit", "conduct", "connections", "delays", "model", "moments", "render.lint_text", "render.terminal", "render.words", "wording"},
    "render.sarif": {"", "reports"},
    "render.junit": {"reports"},
    "render.github": {"reports"},
    "render.codes_text": {"knowledge", "render.terminal", "render.words"},
    "render.tree_graph": {"contracts", "model", "wording"},
    "render.tree_text": {"contracts", "model", "render.terminal", "render.tree_graph", "render.words"},
    "render.scan_csv": {"survey"},
    "render.scan_json": {"survey"},
    "render.scan_html": {"model", "render.words", "survey"},
    "render.scan_text": {"model", "render.terminal", "render.words", "survey", "wording"},
    "render.rules_text": {"render.lint_text", "render.terminal"},
    "render.markdown": {"contracts", "model", "redact", "render.tree_graph", "render.words"},
    "": {"contracts", "inputs", "model", "overlay", "verdicts"},
    "render": set(),
    "markers": {"contracts"},
    "signatures": {"contracts", "delays", "pointers"},
    "tally": {"model"},
    "moments": {"delays", "model", "tally", "wrappers"},
    "regions": {"boundaries", "inputs", "markers", "remote"},
    "scan": {
        "boundaries",
        "contracts",
        "inputs",
        "markers",
        "model",
        "moments",
        "packs",
        "payloads",
        "pointers",
        "regions",
        "signatures",
        "tally",
        "verdicts",
        "wrappers",
    },
    "traffic": {
        "carriers",
        "boundaries",
        "contracts",
        "cuts",
        "inputs",
        "jsontext",
        "judge",
        "markers",
        "messages",
        "model",
        "moments",
        "payloads",
        "places",
        "pointers",
        "regions",
        "wrappers",
    },
    "messages": {"model", "moments"},
    "judge": {"contracts", "messages", "model", "packs", "verdicts"},
    "connections": {"messages", "moments"},
    "conduct": {"connections", "contracts", "delays", "messages", "moments", "wording"},
    "audit": {"conduct", "connections", "inputs", "judge", "messages", "moments", "redact", "reports", "traffic", "wording", "wrappers"},
    "slices": {"boundaries", "inputs", "regions", "remote"},
    "merge": {"inputs", "model", "redact", "scan", "tally", "wrappers"},
    "knowledge": {"contracts", "model", "verdicts"},
    "follow": {"boundaries", "inputs", "merge", "model", "regions", "scan"},
    "survey": {"merge", "model", "moments", "tally"},
    "lint": {
        "absence",
        "contracts",
        "inputs",
        "model",
        "packs",
        "payloads",
        "places",
        "pointers",
        "redact",
        "reports",
        "rules",
        "search",
        "verdicts",
        "wording",
    },
    "findings": {
        "baseline",
        "completion",
        "console",
        "contracts",
        "model",
        "paths",
        "redact",
        "render.github",
        "render.junit",
        "render.sarif",
        "reports",
        "rules",
        "settings",
        "wording",
    },
    "console": {"", "contracts", "model", "overlay", "packs", "redact"},
    "commands": set(),
    "commands.explain": {
        "absence",
        "completion",
        "console",
        "contracts",
        "inputs",
        "model",
        "render.jsonl",
        "render.markdown",
        "render.text",
        "verdicts",
        "wording",
    },
    "commands.lint": {
        "completion",
        "console",
        "contracts",
        "executors",
        "findings",
        "lint",
        "redact",
        "render.lint_json",
        "render.lint_text",
        "reports",
        "rules",
        "wording",
    },
    "commands.audit": {
        "audit",
        "completion",
        "console",
        "contracts",
        "executors",
        "findings",
        "judge",
        "model",
        "render.audit_json",
        "render.audit_text",
        "reports",
        "rules",
        "slices",
        "traffic",
        "wording",
    },
    "commands.rules": {"completion", "console", "contracts", "render.rules_text", "rules", "settings"},
    "commands.codes": {"completion", "console", "contracts", "knowledge", "model", "render.codes_text", "render.jsonl", "verdicts"},
    "commands.contracts": {"completion", "console", "contracts", "coverage", "model", "overlay", "packs", "redact", "render.contracts_text"},
    "commands.tree": {"completion", "console", "contracts", "render.tree_graph", "render.tree_text"},
    "commands.scan": {
        "cluster",
        "completion",
        "console",
        "contracts",
        "executors",
        "follow",
        "inputs",
        "merge",
        "model",
        "moments",
        "packs",
        "paths",
        "render.jsonl",
        "render.scan_csv",
        "render.scan_html",
        "render.scan_json",
        "render.scan_text",
        "scan",
        "slices",
        "survey",
        "wording",
    },
    "shells": set(),
    "cli": {"", "shells"},  # and the commands, by name
    "__main__": {"cli"},
}
#: Packages that only these modules may import.
HEAVY = {
    "rich": {
        "render.terminal",
        "render.text",
        "render.audit_text",
        "render.lint_text",
        "render.rules_text",
        "render.scan_text",
        "render.codes_text",
        "render.tree_text",
        "render.contracts_text",
        "commands.scan",
    },
    "jinja2": {"render.scan_html"},
    "hyperscan": {"markers"},
    "pathspec": {"paths"},
    "jsonschema": {"violations"},
    "referencing": {"proof", "violations"},
    "jsonschema_specifications": {"proof"},
    "platformdirs": {"packs"},
    "fsspec": {"remote"},
    "distributed": {"cluster"},
    "typer": {
        "cli",
        "shells",
        "console",
        "findings",
        "commands.audit",
        "commands.explain",
        "commands.lint",
        "commands.rules",
        "commands.scan",
        "commands.codes",
        "commands.tree",
        "commands.contracts",
    },
    "backports": {"inputs"},
    "jsonschema_rs": {"contracts", "proof"},
}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    """Every module that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = {f"{node.module}.{alias.name}" for alias in node.names}
            ours = {module for module in modules if (PACKAGE / (module.replace(".", "/").removeprefix("errtriage/") + ".py")).is_file()}
            found |= ours or {node.module}
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_what_it_may(path: Path) -> None:
    ours = {module.removeprefix("errtriage").lstrip(".") for module in imports(path) if module.split(".")[0] == "errtriage"}
    assert ours <= ALLOWED[name_of(path)]


def test_the_table_of_imports_has_no_cycle() -> None:
    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path
        for each in ALLOWED[name]:
            visit(each, (*path, name))

    for name in ALLOWED:
        visit(name, ())


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_packages_stay_where_they_belong(path: Path) -> None:
    used = {module.split(".")[0] for module in imports(path)} & HEAVY.keys()
    assert all(name_of(path) in HEAVY[package] for package in used)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_class_and_public_function_says_what_it_means(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            around = [other for other in ast.walk(tree) if other is not node and node in ast.walk(other)]
            private = any(isinstance(other, ast.FunctionDef) or (isinstance(other, ast.ClassDef) and other.name.startswith("_")) for other in around)
            assert private or ast.get_docstring(node), f"{path.name}: {node.name}"


def loaded_by(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_is_cheap() -> None:
    assert not {"typer", "rich", "jsonschema", "jsonschema_rs", "orjson", "re"} & (loaded_by("import errtriage") - loaded_by("pass"))


def test_a_plain_verdict_needs_neither_the_explaining_validator_nor_rich_nor_the_search() -> None:
    loaded = loaded_by("import errtriage; errtriage.triage({'isError': True, 'content': []})")
    heavy = {"typer", "rich", "jsonschema", "backports.zstd", "email.parser"}
    readers = {f"errtriage.{name}" for name in ("search", "literals", "carriers", "rawhttp", "har", "violations")}
    assert not (heavy | readers) & loaded


def test_help_needs_none_of_the_work() -> None:
    code = "import sys; sys.argv = ['errtriage', 'explain', '--help']\nfrom errtriage.cli import app\ntry: app()\nexcept SystemExit: pass"
    assert not {"rich", "jsonschema", "jsonschema_rs", "orjson", "errtriage.commands.lint", "fsspec", "distributed"} & loaded_by(code)
