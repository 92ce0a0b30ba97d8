"""Rules of the house that no linter knows. An exemption is a line here, with its reason."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.repository import PACKAGES, ROOT, name, sources

FUNCTION_LINES_MAX = 60  # What fits on a screen.
FILE_LINES_MAX = 500  # Beyond it a file tells two stories.

# "file" or "file:function" → why it may be longer.
LONG: dict[str, str] = {}

# What is hard to name is two things.
EMPTY_NAMES = re.compile(r"(^|_)(utils?|helpers?|managers?|base|common|misc)(_|$)")

PURE = ("scheduler", "dispatcher")
CODE = sources(*PACKAGES)
TESTS = sources("tests")


@pytest.mark.parametrize("path", CODE, ids=name)
def test_a_function_fits_on_a_screen(path):
    found = {
        f"{name(path)}:{function.name}": length
        for function in functions(path)
        if (length := lines_of(function)) > FUNCTION_LINES_MAX
    }
    assert {key: length for key, length in found.items() if key not in LONG} == {}


@pytest.mark.parametrize("path", [*CODE, *TESTS], ids=name)
def test_a_file_tells_one_story(path):
    assert len(text_of(path).splitlines()) <= FILE_LINES_MAX or name(path) in LONG


@pytest.mark.parametrize("path", CODE, ids=name)
def test_a_module_is_named_for_what_it_is(path):
    assert not EMPTY_NAMES.search(path.stem)


def test_an_exemption_ends_with_what_it_exempts():
    exempted = {f"{name(path)}:{function.name}" for path in CODE for function in functions(path)} | set(map(name, CODE))
    assert set(LONG) - exempted == set()


@pytest.mark.parametrize("path", sources(*PURE), ids=name)
def test_a_deciding_core_never_asks_what_time_it_is(path):
    asked = {
        f"line {node.lineno}: {ast.unparse(node.func)}()"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in {"now", "utcnow", "today"}
    }
    assert asked == set()


@pytest.mark.parametrize("path", TESTS, ids=name)
def test_a_test_waits_for_a_signal_and_replaces_nothing_and_always_runs(path):
    found = {
        f"line {number}: {line.strip()}"
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if re.search(
            r"\bsleep\((?!0\))|\bmock\b.*import|import.*\bmock\b|pytest\.(mark\.)?(skip|xfail)|importorskip", line
        )
        and path.parent != ROOT / "tests" / "house"
    }
    assert found == set()


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")
