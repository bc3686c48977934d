"""The recipes of docs/pipelines.md as they stand there: real packages, the real router, real llama.cpp.

Those whose packages are not in the dev extra run with the interpreter that TWOLANE_RECIPES_PYTHON names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.servers.process import ROOT
from bench.servers.router import RouterProcess

pytestmark = [pytest.mark.llamacpp, pytest.mark.slow]

RECIPES = ROOT / "docs" / "recipes"
OTHER = os.environ.get("TWOLANE_RECIPES_PYTHON", "")
LIMIT_S = 110
"""Some packages take half a minute to import on a slow machine."""

HOPS = {
    "openai_client": (3, True),
    "anthropic_client": (2, True),
    "langgraph_nodes": (3, True),
    "llamaindex_calls": (2, True),
    "smolagents_model": (2, False),
    "litellm_sdk": (2, True),
}
"""Calls, and whether the last one is said to be final."""
IN_DEV = {"openai_client", "anthropic_client"}


def ids(router: RouterProcess) -> dict[str, dict[str, Any]]:
    document = router.ask_admin("GET", "/pipelines")
    return {row["id"]: row for row in (*document["open"], *document["over"])}


def test_every_recipe_is_run() -> None:
    assert {path.stem for path in RECIPES.glob("*.py")} == set(HOPS)


def test_the_page_names_every_recipe() -> None:
    page = (ROOT / "docs" / "pipelines.md").read_text()
    assert all(f"recipes/{name}.py" in page for name in HOPS)


@pytest.mark.parametrize("name", sorted(HOPS))
def test_the_calls_of_a_recipe_are_one_pipeline_with_its_deadline(
    name: str, two_lanes: RouterProcess, tmp_path: Path
) -> None:
    if name not in IN_DEV and not OTHER:
        pytest.skip("TWOLANE_RECIPES_PYTHON names no interpreter with these packages; see docs/pipelines.md")
    before = ids(two_lanes)
    python = sys.executable if name in IN_DEV else OTHER
    env = {**os.environ, "TWOLANE_URL": two_lanes.url, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "DO_NOT_TRACK": "1"}
    done = subprocess.run(
        [python, str(RECIPES / f"{name}.py")], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.strip()
    calls, says_final = HOPS[name]
    (row,) = [row for id_, row in ids(two_lanes).items() if id_ not in before]
    assert (row["found"], row["hops"], row["failed"]) == ("named", calls, 0)
    assert row["deadline"] == ("met" if says_final else "open")
    hops = two_lanes.ask_admin("GET", f"/pipelines/{row['id']}")["hops_shown"]
    assert [hop["class"] for hop in hops] == ["mixed"] * (calls - 1) + ["ttft" if says_final else "mixed"]
