"""The shape of the tree: which package imports which, what it exports, what importing it costs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("kpi", "model", "training", "service")
OURS = {*PACKAGES, "rancast", "benchmarks", "tests"}

# What each package may import of ours: a package, or single modules of one.
ARROWS = {
    "kpi": {"kpi"},
    "model": {"model", "kpi.catalogue", "kpi.grid", "kpi.window"},
    "training": {"training", "kpi", "model"},
    "service": {"service", "kpi", "model"},
}
# What the two inner packages may import of others, beyond the standard library. Plotly only where a
# chart is drawn: another test sees that it is not loaded before.
LIBRARIES = {
    "kpi": {"numpy", "pyarrow", "lxml"},
    "model": {"torch", "numpy", "safetensors", "holidays"},
}
# One module each may know the command line and the charts; what runs on a GPU is in Triton.
EXCEPTIONS = {
    "kpi.options": {"typer"},
    "model.fan_chart": {"plotly"},
    **{
        f"model.attention.triton_kernel.{name}": {"triton"}
        for name in ("score", "forward", "backward", "query_gradient", "key_gradient")
    },
}
MAXIMUM_LINES = 400
# One test file a module, so that a test has one home: those may be longer.
MAXIMUM_TEST_LINES = 600


@dataclass(frozen=True)
class Module:
    """A source file of ours.

    Attributes:
        name: Its dotted name; a package's own name for `__init__.py`.
        path: Where it is.
        tree: What it says.
    """

    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        """Top-level package, or the module itself where it has none."""
        return self.name.partition(".")[0]


def _module(path: Path) -> Module:
    parts = list(path.relative_to(REPOSITORY).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return Module(".".join(parts), path, ast.parse(path.read_text(encoding="utf-8"), str(path)))


def _sources() -> list[Path]:
    folders = [REPOSITORY / name for name in (*PACKAGES, "benchmarks", "tests")]
    found = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    return [*found, REPOSITORY / "rancast.py"]


MODULES = [_module(path) for path in _sources()]
NAMES = {module.name for module in MODULES}
SHIPPED = [module for module in MODULES if module.package in {*PACKAGES, "rancast"}]


def imports(module: Module) -> Iterator[str]:
    """Dotted names of what a module imports: `a.b` for `from a import b` where b is a module."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                own = module.name.split(".")
                if module.path.name != "__init__.py":
                    own = own[:-1]
                prefix = own[: len(own) - node.level + 1]
                base = ".".join([*prefix, *([base] if base else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in NAMES else base


def within(name: str, allowed: set[str]) -> bool:
    """Whether a dotted name is one of those allowed or lies inside one."""
    return any(name == each or name.startswith(each + ".") for each in allowed)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_along_the_arrows_only(package: str) -> None:
    wrong = [
        f"{module.name} imports {name}"
        for module in MODULES
        if module.package == package
        for name in imports(module)
        if name.partition(".")[0] in OURS and not within(name, ARROWS[package])
    ]
    assert wrong == []


@pytest.mark.parametrize("package", sorted(LIBRARIES))
def test_inner_packages_use_their_few_libraries_only(package: str) -> None:
    allowed = LIBRARIES[package] | OURS | sys.stdlib_module_names
    wrong = [
        f"{module.name} imports {name}"
        for module in MODULES
        if module.package == package
        for name in imports(module)
        if name.partition(".")[0] not in allowed | EXCEPTIONS.get(module.name, set())
    ]
    assert wrong == []


def test_nothing_that_ships_imports_tests_or_benchmarks() -> None:
    wrong = [
        f"{module.name} imports {name}"
        for module in SHIPPED
        for name in imports(module)
        if name.partition(".")[0] in {"tests", "benchmarks"}
    ]
    assert wrong == []


def test_relative_and_absolute_imports_are_both_seen() -> None:
    source = "from . import store\nfrom ..model import x\nimport torch.nn\nfrom kpi import window"
    module = Module("kpi.readers.a", Path("kpi/readers/a.py"), ast.parse(source))
    assert list(imports(module)) == ["kpi.readers", "kpi.model", "torch.nn", "kpi.window"]


def test_every_module_says_what_it_is() -> None:
    silent = [
        module.name
        for module in MODULES
        if module.package != "tests" and not ast.get_docstring(module.tree)
    ]
    assert silent == []


def test_every_file_is_short_enough_to_read() -> None:
    too_long = {}
    for module in MODULES:
        lines = len(module.path.read_text(encoding="utf-8").splitlines())
        if lines > (MAXIMUM_TEST_LINES if module.package == "tests" else MAXIMUM_LINES):
            too_long[module.name] = lines
    assert too_long == {}, "split these by their nouns"


def test_nothing_is_imported_by_a_star() -> None:
    stars = [
        f"{module.name}:{node.lineno}"
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
    ]
    assert stars == []


def _bound(module: Module) -> set[str]:
    """All names that the top of a module binds."""
    bound: set[str] = set()
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Assign):
            bound |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            bound.add(node.target.id)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            bound |= {alias.asname or alias.name for alias in node.names}
    return bound


def _meant_for_others(module: Module) -> set[str]:
    """Public functions and classes, and what a package's front takes in only to hand it on."""
    defined = {
        node.name
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    return {name for name in defined | _handed_on(module) if not name.startswith("_")}


def _handed_on(module: Module) -> set[str]:
    """Names that a package's front imports from the package's own modules and does not use."""
    if module.path.name != "__init__.py":
        return set()
    taken = {
        alias.asname or alias.name
        for node in module.tree.body
        if isinstance(node, ast.ImportFrom)
        and (node.level or within(node.module or "", {module.name}))
        for alias in node.names
    }
    return taken - {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}


def _stated(module: Module) -> list[str] | None:
    for node in module.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            assert isinstance(node, ast.Assign)
            names = ast.literal_eval(node.value)
            return [str(name) for name in names]
    return None


def _wrong_exports(module: Module, stated: list[str]) -> Iterator[str]:
    """What `__all__` states and should not, or should and does not."""
    missing = _meant_for_others(module) - {*stated}
    yield from (f"{module.name}.{name} does not exist" for name in {*stated} - _bound(module))
    yield from (f"{module.name}.{name} is not in __all__" for name in missing)
    yield from (f"{module.name}.{name} is twice in __all__" for name in duplicates(stated))


def duplicates(names: list[str]) -> set[str]:
    return {name for name in names if names.count(name) > 1}


def test_all_is_what_is_exported() -> None:
    wrong = [
        complaint
        for module in SHIPPED
        if (stated := _stated(module)) is not None
        for complaint in _wrong_exports(module, stated)
    ]
    assert wrong == []


def test_a_package_that_exports_what_is_inside_says_so() -> None:
    wrong = [module.name for module in SHIPPED if _handed_on(module) and _stated(module) is None]
    assert wrong == []


def run_python(source: str, *arguments: str) -> str:
    """What a fresh interpreter prints for some source, started in the repository's root."""
    answer = subprocess.run(
        [sys.executable, "-c", source, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if answer.returncode:
        pytest.fail(answer.stderr, pytrace=False)
    return answer.stdout


LOADED = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def loaded_by(*names: str) -> set[str]:
    """Top-level modules that are loaded once `names` have been imported."""
    return set(json.loads(run_python(LOADED, *names)))


def _in_packages(*packages: str) -> list[str]:
    return [
        module.name
        for module in SHIPPED
        if within(module.name, set(packages)) and not module.name.endswith(".__main__")
    ]


def test_kpi_never_loads_torch_nor_a_web_framework() -> None:
    loaded = loaded_by(*_in_packages("kpi"))
    assert loaded.isdisjoint({"torch", "fastapi", "pydantic", "pandas", "plotly", "kubernetes"})


def test_model_never_loads_a_web_framework_nor_a_plot() -> None:
    loaded = loaded_by(*_in_packages("model"))
    assert loaded.isdisjoint({"fastapi", "pydantic", "plotly", "kubernetes", "typer"})


def test_service_never_loads_training() -> None:
    assert "training" not in loaded_by(*_in_packages("service"))


def test_command_line_loads_nothing_heavy_until_it_is_used() -> None:
    loaded = loaded_by("rancast")
    heavy = {"torch", "kubernetes", "fastapi", "pyarrow", "numpy", "pydantic", "plotly", "lxml"}
    assert loaded.isdisjoint(heavy)


# Other people's modules may do as they like, so they are loaded before anyone watches.
QUIET = """
import importlib, json, sys, threading
libraries, modules = (json.loads(argument) for argument in sys.argv[1:])
for name in libraries:
    try:
        importlib.import_module(name)
    except ImportError:
        continue
seen = []
def watch(event, arguments):
    if event in ("subprocess.Popen", "socket.connect", "socket.bind", "os.mkdir", "os.remove"):
        seen.append([event, str(arguments[0])])
    elif event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append([event, str(arguments[0])])
sys.dont_write_bytecode = True
threads = threading.active_count()
sys.addaudithook(watch)
environment = dict(__import__("os").environ)
for name in modules:
    importlib.import_module(name)
if dict(__import__("os").environ) != environment:
    seen.append(["environment", "changed"])
if threading.active_count() != threads:
    seen.append(["threads", str(threading.enumerate())])
print(json.dumps(seen))
"""


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_does_no_work(package: str) -> None:
    modules = _in_packages(package)
    libraries = sorted(
        {
            name
            for module in SHIPPED
            for name in imports(module)
            if name.partition(".")[0] not in OURS
        }
    )
    assert json.loads(run_python(QUIET, json.dumps(libraries), json.dumps(modules))) == []
