"""`python -m bench [NAME…]`: run the benchmarks one after another, all of them or the named ones.

A benchmark is a module in this folder with a `main()` that prints its figures. Each runs in a process of its own,
so that none is measured on a heap or an event loop that another has left behind.
"""

import ast
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(wanted: list[str]) -> int:
    """Run them in order of name; the status is that of the worst."""
    known = benchmarks()
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        print(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    return max((measure(name) for name in known if not wanted or name in wanted), default=0)


def benchmarks() -> list[str]:
    """Every module here that defines `main`, by name."""
    return sorted(path.stem for path in HERE.glob("[!_]*.py") if _defines_main(path))


def measure(name: str) -> int:
    """Run one benchmark under its heading."""
    print(f"\n== {name}", flush=True)
    call_main = f"import bench.{name}; bench.{name}.main()"
    child = subprocess.Popen([sys.executable, "-c", call_main], cwd=HERE.parent)
    try:
        return child.wait()
    except KeyboardInterrupt:  # The terminal has told both: it ends what it has started, and is waited for.
        child.wait()
        raise


def _defines_main(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
