"""The size check sees what is too large, and nothing else."""

from __future__ import annotations

from pathlib import Path

from tools.check_sizes import (
    KERNEL_LINES,
    WITH_LIBRARIES_LINES,
    code_lines,
    offences,
)


def plant(root: Path, path: str, source: str) -> list[str]:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source, encoding="utf-8")
    return list(offences(root))


def function(lines: int, indent: str = "") -> str:
    body = f"{indent}    x = 1\n" * (lines - 1)
    return f"{indent}def long():\n{body}"


def test_a_file_of_500_lines_passes_and_one_more_does_not(tmp_path: Path) -> None:
    assert plant(tmp_path, "plugins/a/a/m.py", "x = 1\n" * 500) == []
    assert plant(tmp_path, "plugins/a/a/m.py", "x = 1\n" * 501) == [
        "plugins/a/a/m.py: 501 lines; at most 500"
    ]


def test_a_function_of_60_lines_passes_and_one_more_does_not(tmp_path: Path) -> None:
    assert plant(tmp_path, "kernel/k/m.py", function(60)) == []
    assert plant(tmp_path, "kernel/k/m.py", function(61)) == [
        "kernel/k/m.py:1: long has 61 lines; at most 60"
    ]


def test_a_nested_method_is_measured_too(tmp_path: Path) -> None:
    source = (
        "def f():\n    class A:\n        async def g(self, a, b, c, d, e, f): ...\n"
    )
    assert plant(tmp_path, "kernel/k/m.py", source) == [
        "kernel/k/m.py:3: g has 6 parameters; at most 5"
    ]


def test_self_is_no_parameter_but_keyword_only_ones_are(tmp_path: Path) -> None:
    method = "class A:\n    def f(self, a, b, c, *, d, e): ...\n"
    assert plant(tmp_path, "kernel/k/m.py", method) == []
    static = "class A:\n    @staticmethod\n    def f(a, b, c, d, e, f): ...\n"
    assert plant(tmp_path, "kernel/k/m.py", static) == [
        "kernel/k/m.py:3: f has 6 parameters; at most 5"
    ]


def fill(root: Path, folder: str, lines: int) -> list[str]:
    for number in range(lines // 500):
        plant(root, f"{folder}/m{number}.py", "x = 1\n" * 500)
    return plant(root, f"{folder}/rest.py", "x = 1\n" * (lines % 500))


def test_the_kernel_stays_under_its_limit_without_its_harness(tmp_path: Path) -> None:
    fill(tmp_path, "kernel/k/testing", 1_500)
    assert fill(tmp_path, "kernel/k", KERNEL_LINES - 1) == []
    assert plant(tmp_path, "kernel/k/last.py", "x = 1\n") == [
        f"kernel: {KERNEL_LINES} lines of code; it stays under {KERNEL_LINES}"
    ]


def test_what_moves_into_a_library_is_counted_with_the_kernel(tmp_path: Path) -> None:
    limit = WITH_LIBRARIES_LINES
    fill(tmp_path, "kernel/k", KERNEL_LINES - 1)
    assert fill(tmp_path, "libraries/l/l", limit - KERNEL_LINES) == []
    assert plant(tmp_path, "libraries/l/l/last.py", "x = 1\n") == [
        f"kernel and libraries: {limit} lines of code; they stay under {limit}"
    ]


def test_blank_lines_comments_and_docstrings_cost_nothing() -> None:
    source = '''"""A module.

With more to say.
"""

# Why.
x = 1  # counts


def f():
    """One line."""
    text = """not
    a docstring"""
    return text
'''
    assert code_lines(source) == 5
