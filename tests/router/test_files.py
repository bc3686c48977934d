"""The limit of open files, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import resource
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
from router.files import raise_limit
raise_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard))
"""


def test_the_limit_is_raised_to_what_the_system_allows() -> None:
    done = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
