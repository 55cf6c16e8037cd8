"""Progress bars in notebooks."""

import subprocess
import sys

NOTEBOOK = """
import sys, types

class ZMQInteractiveShell:
    config = {"IPKernelApp": {}}

sys.modules["IPython"] = types.SimpleNamespace(get_ipython=ZMQInteractiveShell)
sys.modules["ipywidgets"] = None  # not installed
from splitjoin.base.progress import progress_bar, tell
with progress_bar(2, "rows", "rows") as bar:
    bar.update(1)
    tell("as text")
print(type(bar).__name__)
"""


def test_a_notebook_without_widgets_has_bars_of_text_and_no_warning() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", NOTEBOOK], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "tqdm_asyncio\n"), done.stderr
    assert "splitjoin: as text" in done.stderr
