"""Runs of the notebooks of examples/, which are committed with their outputs, as pages of the site show them.

``python -m tests.support.notebooks NAME…`` runs those (or all) in kernels of Jupyter's, and writes what their cells
gave into them, without times, warnings and the reader's metadata.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from nbclient import NotebookClient

nbformat: Any = importlib.import_module("nbformat")  # its functions have no types
NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"


def run(path: Path) -> None:
    """Run the notebook at ``path``, and write it with its outputs."""
    book = nbformat.read(path, as_version=4)
    metadata = dict(book.metadata)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(book, timeout=None, kernel_name="python3", record_timing=False,
                       resources={"metadata": {"path": folder}}).execute()
    book.metadata = nbformat.from_dict(metadata)
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs = [cleaned(output) for output in cell.outputs
                            if output.output_type in ("stream", "execute_result", "display_data")
                            and output.get("name") != "stderr"]
    nbformat.write(book, path)


def cleaned(output: Any) -> Any:
    """``output`` as plain text or as a picture alone: tables in HTML would be there twice."""
    if "data" in output:
        output.data = {kind: data for kind, data in output.data.items() if kind in ("text/plain", "image/png")}
    return output


if __name__ == "__main__":
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for name in sys.argv[1:] or sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")):
        run(NOTEBOOKS / f"{name}.ipynb")
