"""Fail where files of the package import each other in a circle.

import-linter holds folders to their layers; this holds files. Every import counts: those inside functions and
those for type checkers as well, since either is a way to read and to load one file only with the other.
"""

from __future__ import annotations

import sys
from graphlib import CycleError, TopologicalSorter

import grimp

PACKAGE = "hlofuse"


def main() -> int:
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    imports = {file: graph.find_modules_directly_imported_by(file) for file in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        *files, first = error.args[1]
        print(f"{len(files)} files import each other in a circle:")
        for imported, file in zip(files, [*files[1:], first], strict=True):
            print(f"  {file} imports {imported}")
        return 1
    print(f"No circle between {len(imports)} files.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
