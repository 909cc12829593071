"""The gates themselves: each is shown to close, not only to be open today."""

from __future__ import annotations

import ast
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lakehouse_core.cli.main import ENTRIES, load_command
from pages.parts.menu import SECTIONS
from tests.network import is_local
from tools.check_lock import check as check_lock
from tools.check_size import check as check_size

PACKAGES = ("lakehouse_core", "agents", "collectors", "spark_jobs")
PYPROJECT = """
[project]
dependencies = ["Foo_Bar>=2,<3"]
[project.optional-dependencies]
dev = ["tool==1.0"]
"""
# What a page may use of ours: it lays out what views give it and writes intents.
PAGES_MAY_IMPORT = (
    "lakehouse_core.bootstrap",
    "lakehouse_core.config",
    "lakehouse_core.domain",
    "lakehouse_core.views",
    "pages",
)


def imports_of(path: Path) -> set[str]:
    """What a module imports when it runs; names in annotations bind nothing."""
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


# --- imports -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The packages as they are, in a place where they can be spoilt."""
    root = tmp_path_factory.mktemp("tree")
    for name in PACKAGES:
        shutil.copytree(
            repository / name, root / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(repository / "pyproject.toml", root)
    return root


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("lakehouse_core/domain/spoilt.py", "import lakehouse_core.config", "imports point down"),
        ("lakehouse_core/store/spoilt.py", "import lakehouse_core.views", "imports point down"),
        ("lakehouse_core/views/spoilt.py", "import streamlit", "Streamlit lives in"),
        ("lakehouse_core/health/spoilt.py", "import pyspark", "pyspark lives in"),
        ("collectors/trino/spoilt.py", "from trino import dbapi", "Trino's driver lives in"),
        ("lakehouse_core/views/spoilt.py", "import sqlglot", "SQL is understood in"),
        ("agents/spoilt.py", "import pyiceberg.catalog", "pyiceberg lives in"),
        ("collectors/spoilt.py", "import agents", "agents use collectors"),
        ("lakehouse_core/views/spoilt.py", "import collectors.base", "Only the command line"),
        ("spark_jobs/spoilt.py", "import lakehouse_core.store", "Spark jobs ship alone"),
    ],
)
def test_import_against_the_direction_breaks_its_contract(
    tree: Path, module: str, line: str, contract: str
) -> None:
    spoilt = tree / module
    spoilt.write_text(f"{line}\n")
    try:
        ended = subprocess.run(
            [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"],
            cwd=tree,
            env={"PYTHONPATH": str(tree), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        spoilt.unlink()
    assert ended.returncode == 1, ended.stdout + ended.stderr
    broken = [text for text in ended.stdout.splitlines() if " BROKEN" in text]
    assert any(contract in text for text in broken), ended.stdout


def test_spark_jobs_may_import_no_room_but_domain_and_sql(repository: Path) -> None:
    """A room that is added later is forbidden too, or the contract says why not."""
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (ship_alone,) = (one for one in contracts if one["name"].startswith("Spark jobs ship alone"))
    rooms = {
        f"lakehouse_core.{path.stem}"
        for path in (repository / "lakehouse_core").iterdir()
        if not path.name.startswith("_") and (path.suffix == ".py" or path.is_dir())
    }
    assert rooms - set(ship_alone["forbidden_modules"]) == {
        "lakehouse_core.domain",
        "lakehouse_core.sql",
    }


def test_pages_import_views_and_not_what_is_below(repository: Path) -> None:
    ours = (*PACKAGES, "pages", "tools", "tests")
    wrong = {
        f"{path.relative_to(repository)}: {name}"
        for path in [repository / "app.py", *(repository / "pages").glob("**/*.py")]
        for name in imports_of(path)
        if name.split(".")[0] in ours and not name.startswith(PAGES_MAY_IMPORT)
    }
    assert wrong == set()


def test_settings_are_read_from_the_environment_in_config_only(repository: Path) -> None:
    wrong = [
        f"{path.relative_to(repository)}:{node.lineno}"
        for package in PACKAGES
        for path in (repository / package).rglob("*.py")
        if "config" not in path.relative_to(repository).parts[:2]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr in ("environ", "getenv", "environb")
        and ast.unparse(node.value) == "os"
    ]
    assert wrong == []


# --- sizes -------------------------------------------------------------------------------------


def lay(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("lakehouse_core/a.py", 600),
        ("tests/unit/test_a.py", 600),
        ("pages/a.py", 200),
        ("app.py", 80),
    ],
)
def test_module_over_its_limit_fails_and_at_its_limit_passes(
    tmp_path: Path, name: str, limit: int
) -> None:
    lay(tmp_path, name, "x = 1\n" * limit)
    assert check_size(tmp_path)[0] == []
    lay(tmp_path, name, "x = 1\n" * (limit + 1))
    assert check_size(tmp_path)[0] == [
        f"{name}: {limit + 1} lines, allowed {limit}: split it by idea"
    ]


def test_module_near_its_limit_is_warned_about(tmp_path: Path) -> None:
    lay(tmp_path, "agents/a.py", "x = 1\n" * 401)
    failures, warnings = check_size(tmp_path)
    assert (failures, len(warnings)) == ([], 1)


def test_function_over_sixty_lines_fails_its_docstring_not_counted(tmp_path: Path) -> None:
    docstring = '    """' + "One.\n\n" * 30 + '    """\n'
    lay(tmp_path, "agents/a.py", "def f():\n" + docstring + "    x = 1\n" * 59)
    assert check_size(tmp_path)[0] == []
    lay(tmp_path, "agents/a.py", "class A:\n    async def f(self):\n" + "        x = 1\n" * 60)
    assert check_size(tmp_path)[0] == ["agents/a.py:2: f has 61 lines, allowed 60"]


# --- lock file ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requirements", "problems"),
    [
        ("foo-bar==2.5\n    # via x\ntool==1.0\n", []),
        ("foo-bar==2.5\n", ["tool==1.0 is not in requirements.txt"]),
        ("foo-bar==3.0\ntool==1.0\n", ["Foo_Bar<3,>=2 does not allow the pinned 3.0"]),
    ],
)
def test_requirements_must_pin_what_the_project_asks_for(
    requirements: str, problems: list[str]
) -> None:
    assert check_lock(PYPROJECT, requirements) == problems


# --- tests themselves --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "address", "local"),
    [
        (socket.AF_INET, ("127.0.0.1", 80), True),
        (socket.AF_INET, ("127.8.8.8", 80), True),
        (socket.AF_INET, ("localhost", 80), True),
        (socket.AF_INET6, ("::1", 80, 0, 0), True),
        (socket.AF_UNIX, "/run/x.sock", True),
        (socket.AF_INET, ("192.0.2.1", 80), False),
        (socket.AF_INET, ("example.org", 80), False),
        (socket.AF_INET6, ("2001:db8::1", 80, 0, 0), False),
    ],
)
def test_only_loopback_is_local(family: int, address: object, *, local: bool) -> None:
    assert is_local(family, address) is local


def test_connection_to_elsewhere_fails_the_test() -> None:
    with socket.socket() as sock, pytest.raises(pytest.fail.Exception, match="stay on loopback"):
        sock.connect(("192.0.2.1", 80))


def test_unmarked_test_is_fast(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("fast") is not None


def test_make_lists_its_targets_when_called_alone(repository: Path) -> None:
    ended = subprocess.run(
        ["make", "--no-print-directory"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    for target in (
        "setup",
        "run",
        "test",
        "check",
        "lint",
        "type",
        "imports",
        "bench",
        "clean",
        "lock",
    ):
        assert f"\n  {target} " in ended.stdout


def test_ci_runs_make_test(repository: Path) -> None:
    assert "make test\n" in (repository / ".ci" / "run").read_text(encoding="utf-8")


# --- documents ---------------------------------------------------------------------------------


def test_the_tour_names_every_page_of_the_menu(repository: Path) -> None:
    tour = (repository / "README.md").read_text(encoding="utf-8").partition("## A tour")[2]
    titles = [title for pages in SECTIONS.values() for _, title, _ in pages]
    assert [title for title in titles if f"**{title}**" not in tour] == []
    assert [name for name in SECTIONS if f"### {name}\n" not in tour] == []


def test_the_readme_lists_every_command(repository: Path) -> None:
    listed: dict[str, set[str]] = {}
    for line in (repository / "README.md").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[:1] == ["lakehelm"]:
            listed.setdefault(words[1], set()).update(words[2:])
    missing = [
        f"{entry.name} {word}".strip()
        for entry in ENTRIES
        for word in getattr(load_command(entry), "commands", {"": None})
        if entry.name not in listed or (word and word not in listed[entry.name])
    ]
    assert missing == []


def test_links_between_documents_lead_somewhere(repository: Path) -> None:
    documents = [*repository.glob("*.md"), *(repository / "docs").rglob("*.md")]
    wrong = [
        f"{document.relative_to(repository)}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8"))
        if "://" not in target and not (document.parent / target).exists()
    ]
    assert wrong == []
