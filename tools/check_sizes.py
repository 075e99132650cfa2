"""Hold the sizes: files, functions, parameters and the kernel as a whole.

The kernel is counted in lines of code: blank lines, comments and docstrings are free.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 500
FUNCTION_LINES = 60
PARAMETERS = 5
KERNEL_LINES = 4_000
WITH_LIBRARIES_LINES = 4_800

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> int:
    """Print each offender below the working directory; 1 when there is one."""
    offenders = list(offences(Path.cwd()))
    for offender in offenders:
        print(offender)
    return 1 if offenders else 0


def offences(root: Path) -> Iterator[str]:
    """Tell everything in the source folders that is over a limit."""
    code = {"kernel": 0, "libraries": 0, "plugins": 0}
    for folder in code:
        for path in sorted((root / folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            name = path.relative_to(root)
            yield from _file_offences(name, source)
            if "testing" not in name.parts:
                code[folder] += code_lines(source)
    kernel, both = code["kernel"], code["kernel"] + code["libraries"]
    if kernel >= KERNEL_LINES:
        yield f"kernel: {kernel} lines of code; it stays under {KERNEL_LINES}"
    if both >= WITH_LIBRARIES_LINES:
        limit = WITH_LIBRARIES_LINES
        yield f"kernel and libraries: {both} lines of code; they stay under {limit}"


def code_lines(source: str) -> int:
    """Count the lines that are neither blank, nor a comment, nor in a docstring."""
    lines = {
        number
        for number, line in enumerate(source.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                lines.difference_update(range(node.lineno, _last_line(node) + 1))
    return len(lines)


def _last_line(node: ast.Expr | Function) -> int:
    return node.end_lineno or node.lineno


def _file_offences(name: Path, source: str) -> Iterator[str]:
    lines = len(source.splitlines())
    if lines > FILE_LINES:
        yield f"{name}: {lines} lines; at most {FILE_LINES}"
    for function, is_method in _functions(ast.parse(source), in_class=False):
        yield from _function_offences(name, function, is_method=is_method)


def _functions(node: ast.AST, *, in_class: bool) -> Iterator[tuple[Function, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield child, in_class and not _is_static(child)
        yield from _functions(child, in_class=isinstance(child, ast.ClassDef))


def _is_static(function: Function) -> bool:
    return any(
        isinstance(mark, ast.Name) and mark.id == "staticmethod"
        for mark in function.decorator_list
    )


def _function_offences(
    name: Path, function: Function, *, is_method: bool
) -> Iterator[str]:
    place = f"{name}:{function.lineno}: {function.name}"
    lines = _last_line(function) - function.lineno + 1
    if lines > FUNCTION_LINES:
        yield f"{place} has {lines} lines; at most {FUNCTION_LINES}"
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    count = len(named) - int(is_method)
    if count > PARAMETERS:
        yield f"{place} has {count} parameters; at most {PARAMETERS}"


if __name__ == "__main__":
    sys.exit(main())
