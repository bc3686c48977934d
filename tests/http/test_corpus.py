"""The same bytes to the router and to a real nginx, the same backend behind both: no difference unexplained."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import pytest

from bench.peers import Missing
from bench.servers.process import free_port
from tests.http.case import Case
from tests.http.differences import DIFFERENCES, LISTED, Listed
from tests.http.nginx import nginx
from tests.http.observed import PATIENCE_MS, Observed, observe
from tests.http.origin import Origin
from tests.http.requests import REQUESTS
from tests.http.responses import RESPONSES
from tests.router.running import router_for
from tests.scripted import ScriptedBackend

CASES = {f"request.{name}": case for name, case in REQUESTS.items()} | {
    f"response.{name}": case for name, case in RESPONSES.items()
}
PATIENCE = {"first_byte": f"{PATIENCE_MS}ms", "idle": f"{PATIENCE_MS}ms"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nginx:
    port: int
    backend_port: int


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    """One nginx for all cases; each brings a backend of its own to the same port."""
    backend_port = free_port()
    try:
        with nginx(backend_port, tmp_path_factory.mktemp("nginx")) as port:
            yield Nginx(port=port, backend_port=backend_port)
    except Missing as missing:
        if os.environ.get("CI"):
            pytest.fail(f"the corpus needs nginx: {missing}")
        pytest.skip(f"the corpus is not compared: {missing}")


async def through_router(case: Case) -> Observed:
    async with Origin(case.replies) as origin:
        known_as_b0 = ScriptedBackend(port=origin.port)  # never started: it lends its address
        async with router_for(known_as_b0, passthrough="b0", timeouts=PATIENCE) as router:
            seen = await observe(case, router.port, origin)
    assert not origin.garbage, "the router sent what is no request"
    assert len(seen.reached) <= case.answers, "the router made more requests of it than there are"
    return seen


async def through_nginx(case: Case, peer: Nginx) -> Observed:
    async with Origin(case.replies, port=peer.backend_port) as origin:
        return await observe(case, peer.port, origin)


def different(ours: Observed, theirs: Observed) -> Listed | None:
    """As it would have to be listed; None: they did the same."""
    if ours.outcome != theirs.outcome:
        return Listed(why="", cases=(), ours=ours.outcome, nginx=theirs.outcome)
    nginx_did = asdict(theirs)
    aspects = tuple(name for name, value in asdict(ours).items() if value != nginx_did[name])
    return Listed(why="", cases=(), aspects=aspects) if aspects else None


@pytest.mark.parametrize("name", CASES)
async def test_the_router_does_as_nginx_does_but_where_it_is_listed(name: str, peer: Nginx) -> None:
    ours, theirs = await asyncio.gather(through_router(CASES[name]), through_nginx(CASES[name], peer))
    found, listed = different(ours, theirs), DIFFERENCES.get(name)
    if found is None:
        assert listed is None, f"listed as a difference, but there is none: {ours}"
    else:
        assert listed is not None, f"not listed:\n{found}\nrouter: {ours}\nnginx:  {theirs}"
        assert found.what == listed.what, f"listed otherwise ({listed.why}):\nrouter: {ours}\nnginx:  {theirs}"


def test_each_listed_difference_is_of_one_case_that_exists() -> None:
    names = [name for listed in LISTED for name in listed.cases]
    assert len(names) == len(set(names))
    assert set(names) <= CASES.keys()
    assert all(listed.why for listed in LISTED)


@pytest.mark.parametrize(
    "name", ["size.field_of_32_kib", "size.field_of_60_kib", "size.target_of_32_kib", "size.three_fields_of_32_kib"]
)
async def test_header_lines_of_32_kib_and_more_reach_the_backend(name: str) -> None:
    seen = await through_router(REQUESTS[name])
    assert seen.outcome == "200 kept"
    assert len(seen.reached[0]) + sum(map(len, seen.reached_fields[0])) > 32 * 1024


async def test_a_header_line_of_32_kib_reaches_the_client() -> None:
    seen = await through_router(RESPONSES["fields.field_of_32_kib"])
    assert len(seen.fields[0][0]) > 32 * 1024


@pytest.mark.parametrize("name", [name for name in REQUESTS if name.startswith("smuggling.")])
async def test_no_request_hides_in_another(name: str) -> None:
    """Whatever nginx does: what was hidden would show as a request line of its own, or as an answer too many."""
    seen = await through_router(REQUESTS[name])
    openly_pipelined = name == "smuggling.length_with_other_name"
    assert any("/smuggled" in line for line in seen.reached) == openly_pipelined
    assert not any("x-injected" in field.lower() for fields in seen.reached_fields for field in fields)
