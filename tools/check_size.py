"""The size gate: modules and functions that nobody fears to open.

A module over 400 lines is warned about, over 600 fails; a page fails over 200, app.py over 80, a
function over 60 lines (its docstring not counted).
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULE_LIMIT = 600
MODULE_WARNING = 400
FUNCTION_LIMIT = 60
SPECIAL_LIMITS = {"app.py": 80, "pages": 200}
ROOMS = (
    "agents",
    "benchmarks",
    "collectors",
    "lakehouse_core",
    "pages",
    "spark_jobs",
    "tests",
    "tools",
)


def modules(root: Path) -> Iterator[Path]:
    """Every Python file of ours."""
    yield from sorted(root.glob("*.py"))
    for room in ROOMS:
        yield from sorted((root / room).rglob("*.py"))


def module_limit(path: Path, root: Path) -> int:
    """How many lines a module may have."""
    return SPECIAL_LIMITS.get(path.relative_to(root).parts[0], MODULE_LIMIT)


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node, clean=False) is not None:
        first = node.body[0]
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def check(root: Path) -> tuple[list[str], list[str]]:
    """Failures and warnings of a tree."""
    failures, warnings = [], []
    for path in modules(root):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(root)
        count = len(text.splitlines())
        limit = module_limit(path, root)
        if count > limit:
            failures.append(f"{name}: {count} lines, allowed {limit}: split it by idea")
        elif count > MODULE_WARNING:
            warnings.append(f"{name}: {count} lines, soon too large (limit {limit})")
        for node in ast.walk(ast.parse(text, filename=str(path))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = function_lines(node)
                if lines > FUNCTION_LIMIT:
                    failures.append(
                        f"{name}:{node.lineno}: {node.name} has {lines} lines, "
                        f"allowed {FUNCTION_LIMIT}"
                    )
    return failures, warnings


def main() -> int:
    """Print what is too large; 1 when something is."""
    failures, warnings = check(Path.cwd())
    for line in warnings:
        print(f"warning: {line}")
    for line in failures:
        print(f"error: {line}")
    print(f"size: {len(failures)} too large, {len(warnings)} nearly")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
