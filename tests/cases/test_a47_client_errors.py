"""A47: calls that were wrong say nothing about the backend that said so."""

from __future__ import annotations

import pytest

from tests.cases.apis import CHAT, Api, each_api
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, echo

CONTEXT: dict[str, object] = {
    "error": {
        "code": 400,
        "message": "the request exceeds the available context size",
        "type": "exceed_context_size_error",
    }
}
WRONG: dict[str, dict[str, object]] = {
    "400 Bad Request": CONTEXT,
    "401 Unauthorized": {"error": "who are you?"},
    "403 Forbidden": {"error": "not for you"},
    "404 Not Found": {"error": {"message": "no such model", "code": "model_not_found"}},
    "409 Conflict": {"error": "later"},
    "413 Payload Too Large": {"error": "too large"},
    "415 Unsupported Media Type": {"error": "what?"},
    "422 Unprocessable Entity": {"detail": [{"loc": ["body", "n"], "msg": "too large"}]},
    "429 Too Many Requests": {"error": "slow down"},
    "499 Client Closed Request": {"error": "gone"},
}


def wrong(status: str) -> ScriptedBackend:
    """Refuses what says that it is wrong."""

    async def script(request: Received, peer: Peer) -> None:
        if b'"wrong"' in request.body:
            await peer.json(WRONG[status], status)
        else:
            await echo(request, peer)

    return ScriptedBackend(script)


async def twenty_wrong_ones(router: Running, api: Api, status: str) -> None:
    for number in range(20):
        answer = await router.post(api.path, api.body(stream=bool(number % 2), user="wrong"))
        assert (answer.status, answer.json()) == (int(status[:3]), WRONG[status])


@pytest.mark.parametrize("status", WRONG)
async def test_twenty_of_them_and_then_a_normal_call(status: str) -> None:
    async with wrong(status) as backend, router_for(backend, health={"break_after": 2}) as router:
        await twenty_wrong_ones(router, CHAT, status)
        assert router.metric("twolane_backend_up") == 1
        assert (await router.post(CHAT.path, CHAT.body(stream=True))).status == 200
        assert len(backend.received) == 21
        assert router.metric("twolane_calls_total", outcome="backend_4xx") == 20


@each_api
async def test_so_it_is_in_each_api(api: Api) -> None:
    async with wrong("422 Unprocessable Entity") as backend:
        backend.probes = api.probes
        async with router_for((backend, api.settings), health={"break_after": 2}) as router:
            await twenty_wrong_ones(router, api, "422 Unprocessable Entity")
            assert (await router.post(api.path, api.body(stream=False))).status == 200
            assert len(backend.received) == 21


@pytest.mark.parametrize("status", [status for status in WRONG if status[:3] != "400"])
async def test_no_other_backend_is_asked(status: str) -> None:
    async with wrong(status) as one, CHAT.backend() as two:
        fleet = (
            (one, {"engine": "llamacpp", "context_tokens": 4096}),
            (
                two,
                {"engine": "llamacpp", "context_tokens": 32768, "lane": "throughput"},
            ),
        )
        async with router_for(*fleet) as router:
            answer = await router.post(CHAT.path, CHAT.body(stream=False, user="wrong"), "X-Twolane-Class: interactive")
            assert answer.status == int(status[:3])
            assert two.received == []


async def test_the_one_step_to_a_larger_context_is_no_failure_of_the_smaller_one() -> None:
    async with wrong("400 Bad Request") as small, wrong("400 Bad Request") as large:
        fleet = (
            (small, {"engine": "llamacpp", "context_tokens": 4096}),
            (
                large,
                {"engine": "llamacpp", "context_tokens": 32768, "lane": "throughput"},
            ),
        )
        async with router_for(*fleet, health={"break_after": 1}) as router:
            for _ in range(10):
                answer = await router.post(
                    CHAT.path, CHAT.body(stream=False, user="wrong"), "X-Twolane-Class: interactive"
                )
                assert (answer.status, answer.json()) == (400, CONTEXT)
            assert (len(small.received), len(large.received)) == (10, 10)
            assert router.metric("twolane_backend_up") == 2


async def test_wrong_calls_between_failures_do_not_hide_them() -> None:
    """They are no successes either: a backend that fails each right call is taken out."""

    async def script(request: Received, peer: Peer) -> None:
        if b'"wrong"' in request.body:
            await peer.json(CONTEXT, "400 Bad Request")
        else:
            await peer.json({"error": "oops"}, "500 Internal Server Error")

    async with CHAT.backend(script) as backend, router_for(backend, health={"break_after": 3}) as router:
        for _ in range(3):
            assert router.metric("twolane_backend_up") == 1
            await router.post(CHAT.path, CHAT.body(stream=False, user="wrong"))
            await router.post(CHAT.path, CHAT.body(stream=False))
        assert router.metric("twolane_backend_up") == 0


async def test_a_trial_that_was_wrong_itself_decides_nothing() -> None:
    sick = True

    async def script(request: Received, peer: Peer) -> None:
        if b'"wrong"' in request.body:
            await peer.json(CONTEXT, "400 Bad Request")
        elif sick:
            await peer.json({"error": "oops"}, "500 Internal Server Error")
        else:
            await echo(request, peer)

    async with CHAT.backend(script) as backend:
        async with router_for(backend, health={"break_after": 1, "retry_after": "1ms", "interval": "20ms"}) as router:
            await router.post(CHAT.path, CHAT.body(stream=False))
            sick = False
            assert (await router.post(CHAT.path, CHAT.body(stream=False, user="wrong"))).status == 400
            assert router.metric("twolane_backend_up") == 0
            assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 200
            assert router.metric("twolane_backend_up") == 1
