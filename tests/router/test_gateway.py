"""The life of a call through the whole router, against scripted backends with exact bytes and timing."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tests.rawclient import RawClient
from tests.router.running import router_for
from tests.scripted import Peer, Received, ScriptedBackend, echo, eventually

CHAT = "/v1/chat/completions"
INTERACTIVE = "X-Twolane-Class: interactive"


def chat(text: str = "hi", **rest: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **rest}


async def test_body_and_answer_pass_byte_for_byte() -> None:
    text = b"\\u017c\\u00f3\\u0142 \xf0\x9f\x98\x80"
    body = b'{ "model":"m","x":1.50,"x":1E+3, "messages":[{"role":"user","content":"%b"}] }' % text
    answer_body = b'{"choices":[ ],  "odd":1.0, "usage":{"prompt_tokens":1}}'

    async def script(request: Received, peer: Peer) -> None:
        await peer.head(
            "200 Fine", "Content-Type: application/json", f"Content-Length: {len(answer_body)}", "X-Odd: 1", "X-Odd: 2"
        )
        await peer.send(answer_body)

    async with ScriptedBackend(script) as backend, router_for(backend) as router:
        answer = await router.post(CHAT + "?a=b%2Fc%20d+e", body, "X-Mine: yes", "Authorization: Bearer secret")
        assert backend.received[0].body == body
        assert backend.received[0].target == CHAT + "?a=b%2Fc%20d+e"
        assert backend.received[0].one("host") == f"127.0.0.1:{backend.port}"
        assert backend.received[0].one("x-mine") == "yes"
        assert backend.received[0].all("authorization") == []
        assert answer.body == answer_body
        assert [value for name, value in answer.headers if name == "X-Odd"] == ["1", "2"]


async def test_each_event_of_a_stream_arrives_before_the_next_is_written() -> None:
    go_on = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        for number in range(5):
            await go_on.wait()
            go_on.clear()
            await peer.token(str(number))
        await peer.last_chunk()

    async with ScriptedBackend(script) as backend, router_for(backend) as router, await router.client() as client:
        await client.post(CHAT, chat(stream=True))
        answer = await client.answer(head_only=True)  # the head does not wait for the first token
        assert answer.header("x-accel-buffering") == "no"
        assert answer.header("cache-control") == "no-cache"
        for number in range(5):
            go_on.set()
            piece = await asyncio.wait_for(client.piece(answer), 5.0)
            assert f'"content":"{number}"'.encode() in piece
        await client.rest(answer)
        assert answer.complete


async def test_an_alias_changes_only_the_model_and_the_length_stays_right() -> None:
    async with (
        ScriptedBackend(models=("Qwen/Qwen3-8B",)) as backend,
        router_for(backend, models={"fast": {"b0": "Qwen/Qwen3-8B"}}) as router,
    ):
        text = 'żółć 😀 \\"model\\":\\"fast\\"'
        body = f'{{"messages":[{{"role":"user","content":"{text}"}}],"model" : "fast","n":1.0}}'.encode()
        async with await router.client() as client:
            for _ in range(2):
                await client.post(CHAT, body)
                assert (await client.answer()).status == 200
        assert backend.received[0].body == body.replace(b'"model" : "fast"', b'"model" : "Qwen/Qwen3-8B"')


async def test_the_response_says_what_was_decided_and_how_long_it_took() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        answer = await router.post(CHAT, chat(), "X-Twolane-Class: batch", "X-Request-Id: my-id")
        assert answer.header("x-twolane-class") == "throughput"
        assert answer.header("x-twolane-backend") == "b0"
        assert (answer.header("x-twolane-reason") or "").startswith("header:")
        assert answer.header("x-request-id") == "my-id"
        assert (answer.header("server-timing") or "").startswith("classify;dur=")
        assert backend.received[0].one("x-request-id") == "my-id"


@pytest.mark.parametrize(
    ("expose", "seen"),
    [
        ("full", {"x-twolane-class", "x-twolane-backend", "x-twolane-reason", "x-twolane-queue-ms", "server-timing"}),
        ("minimal", {"x-twolane-class"}),
        ("none", set()),
    ],
)
async def test_expose_says_how_much_clients_see(expose: str, seen: set[str]) -> None:
    async with ScriptedBackend() as backend, router_for(backend, expose=expose) as router:
        answer = await router.post(CHAT, chat())
        names = {name.lower() for name, _ in answer.headers}
        assert {name for name in names if name.startswith("x-twolane") or name == "server-timing"} == seen


# --- clients that leave


async def silent(request: Received, peer: Peer) -> None:
    await peer.until_closed()


async def three_tokens_then_silence(request: Received, peer: Peer) -> None:
    await peer.stream_head()
    for text in "abc":
        await peer.token(text)
    await peer.until_closed()


@pytest.mark.parametrize(
    ("script", "stream", "pieces"),
    [(silent, False, 0), (silent, True, 0), (three_tokens_then_silence, True, 3)],
    ids=["no_stream", "before_the_head", "mid_stream"],
)
async def test_a_client_that_leaves_ends_the_call_on_the_backend_at_once(
    script: Any, stream: bool, pieces: int
) -> None:
    async with ScriptedBackend(script) as backend, router_for(backend) as router:
        client = await router.client()
        await client.post(CHAT, chat(stream=stream))
        if pieces:
            answer = await client.answer(head_only=True)
            while len(answer.body.split(b"data:")) <= pieces:
                await client.piece(answer)
        await eventually(lambda: len(backend.peers) == 1)
        left_s = asyncio.get_running_loop().time()
        client.close()
        await eventually(lambda: backend.peers[0].closed_s is not None)
        assert (backend.peers[0].closed_s or 0.0) - left_s < 1.0
        await eventually(lambda: router.idle)
        exposition = router.exposition()
        assert 'outcome="client_gone"} 1.0' in exposition
        assert "backend_error" not in exposition


async def test_a_client_that_leaves_the_line_never_reaches_a_backend() -> None:
    async with ScriptedBackend(silent) as backend, router_for((backend, {"max_inflight": 1})) as router:
        first, second = await router.client(), await router.client()
        await first.post(CHAT, chat())
        await eventually(lambda: len(backend.received) == 1)
        await second.post(CHAT, chat())
        await eventually(lambda: len(router.app.line) == 1)
        second.close()
        await eventually(lambda: len(router.app.line) == 0)
        first.close()
        await eventually(lambda: router.idle)
        assert len(backend.received) == 1


# --- backends that fail


async def test_a_stream_that_breaks_is_never_made_to_look_complete() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        await peer.token("a")
        peer.writer.close()

    async with ScriptedBackend(script) as backend, router_for(backend) as router:
        answer = await router.post(CHAT, chat(stream=True))
        assert answer.status == 200
        assert not answer.complete
        last = answer.body.strip().split(b"\n\n")[-1]
        assert b'"error"' in last
        assert b"[DONE]" not in answer.body
        await eventually(lambda: router.idle)
        assert 'outcome="backend_error"} 1.0' in router.exposition()


async def test_an_event_that_was_cut_in_two_gets_nothing_of_ours_glued_on() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        await peer.chunk(b'data: {"choices":[{"delta":{"con')
        peer.writer.close()

    async with ScriptedBackend(script) as backend, router_for(backend) as router:
        answer = await router.post(CHAT, chat(stream=True))
        assert answer.body == b'data: {"choices":[{"delta":{"con'
        assert not answer.complete


async def test_a_refused_connection_is_served_by_another_backend() -> None:
    async with ScriptedBackend() as gone, ScriptedBackend() as alive, router_for(gone, alive) as router:
        await gone.stop()
        for _ in range(4):
            assert (await router.post(CHAT, chat())).header("x-twolane-backend") == "b1"
        assert len(alive.received) == 4


async def test_without_another_backend_the_caller_hears_which_were_tried_and_when_to_return() -> None:
    async with ScriptedBackend() as gone, router_for(gone) as router:
        await gone.stop()
        for _ in range(2):
            answer = await router.post(CHAT, chat())
            assert answer.status == 503
            assert int(answer.header("retry-after") or 0) >= 1
            assert b"b0" in answer.body


@pytest.mark.parametrize("reuse", [False, True])
async def test_a_backend_that_took_the_call_and_died_is_not_asked_twice(reuse: bool) -> None:
    async def script(request: Received, peer: Peer) -> None:
        if reuse and len(first.received) == 1:
            await echo(request, peer)
        else:
            peer.writer.close()

    async with ScriptedBackend(script) as first, ScriptedBackend() as second:
        lanes = {"lane": "throughput"}
        async with router_for(first, (second, lanes)) as router:
            if reuse:
                assert (await router.post(CHAT, chat(), INTERACTIVE)).status == 200
            answer = await router.post(CHAT, chat(), INTERACTIVE)
            assert answer.status == 502
            assert len(first.received) == 1 + reuse
            assert len(second.received) == 0


async def test_an_answer_with_an_error_status_passes_as_it_came() -> None:
    body = b"<html>413 Request Entity Too Large</html>"

    async def script(request: Received, peer: Peer) -> None:
        await peer.head("413 Too Big", "Content-Type: text/html", f"Content-Length: {len(body)}", "Retry-After: 30")
        await peer.send(body)

    async with ScriptedBackend(script) as backend, router_for(backend) as router:
        answer = await router.post(CHAT, chat())
        assert (answer.status, answer.body) == (413, body)
        assert answer.header("content-type") == "text/html"
        assert answer.header("retry-after") == "30"


async def test_a_silent_backend_ends_at_the_first_byte_limit() -> None:
    async with ScriptedBackend(silent) as backend, router_for(backend, timeouts={"first_byte": "100ms"}) as router:
        answer = await router.post(CHAT, chat())
        assert answer.status == 504
        await eventually(lambda: router.idle and backend.peers[0].closed_s is not None)


async def test_a_stream_that_falls_silent_ends_at_the_idle_limit_and_pings_are_life() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        for _ in range(6):
            await peer.chunk(b":\n\n")
            await asyncio.sleep(0.1)
        await peer.token("late")
        await peer.until_closed()

    async with ScriptedBackend(script) as backend, router_for(backend, timeouts={"idle": "300ms"}) as router:
        answer = await router.post(CHAT, chat(stream=True))
        assert b"late" in answer.body
        assert b"backend_timeout" in answer.body
        assert not answer.complete


async def test_calls_go_elsewhere_while_a_model_loads_and_no_penalty_is_given() -> None:
    async def loading(request: Received, peer: Peer) -> None:
        error = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
        await peer.json(error, "503 Service Unavailable")

    async with ScriptedBackend(loading) as first, ScriptedBackend() as second:
        as_llama = {"engine": "llamacpp"}
        async with router_for((first, as_llama), (second, {"lane": "throughput"})) as router:
            answer = await router.post(CHAT, chat())
            assert answer.status == 200
            assert answer.header("x-twolane-backend") == "b1"


async def test_a_prompt_that_did_not_fit_gets_one_try_on_a_larger_context() -> None:
    async def too_small(request: Received, peer: Peer) -> None:
        error = {
            "code": 400,
            "type": "exceed_context_size_error",
            "message": "too long",
            "n_prompt_tokens": 5,
            "n_ctx": 4,
        }
        await peer.json({"error": error}, "400 Bad Request")

    async with ScriptedBackend(too_small) as small, ScriptedBackend() as large:
        llama = {"engine": "llamacpp"}
        async with router_for(
            (small, {**llama, "context_tokens": 4096}),
            (large, {**llama, "context_tokens": 32768, "lane": "throughput"}),
        ) as router:
            assert (await router.post(CHAT, chat())).header("x-twolane-backend") == "b1"
        async with router_for((small, {**llama, "context_tokens": 4096})) as router:
            answer = await router.post(CHAT, chat())
            assert answer.status == 400
            assert b"exceed_context_size_error" in answer.body


# --- waiting


async def test_calls_beyond_the_cap_wait_in_the_line_and_go_in_order() -> None:
    release: asyncio.Queue[None] = asyncio.Queue()

    async def script(request: Received, peer: Peer) -> None:
        await release.get()
        await echo(request, peer)

    async with ScriptedBackend(script) as backend, router_for((backend, {"max_inflight": 1})) as router:
        calls = []
        for number, name in enumerate(("batch", "batch", "interactive")):
            calls.append(
                asyncio.get_running_loop().create_task(router.post(CHAT, chat(name), f"X-Twolane-Class: {name}"))
            )
            await eventually(lambda number=number: len(router.app.line) == number)  # type: ignore[misc]
        for _ in range(3):
            release.put_nowait(None)
        answers = await asyncio.gather(*calls)
        assert [orjson.loads(got.body)["messages"][0]["content"] for got in backend.received] == [
            "batch",
            "interactive",
            "batch",
        ]
        waited = answers[1].header("server-timing") or ""
        assert "queue;dur=0.0" not in waited


async def test_who_waits_too_long_is_told_so_with_a_time_to_come_back() -> None:
    async with ScriptedBackend(silent) as backend:
        classes = {"ttft": {"max_wait": "50ms"}}
        async with router_for((backend, {"max_inflight": 1}), classes=classes) as router:
            first = await router.client()
            await first.post(CHAT, chat(stream=True))
            await eventually(lambda: len(backend.received) == 1)
            answer = await router.post(CHAT, chat(stream=True))
            assert answer.status == 503
            assert answer.header("retry-after") is not None
            assert b"classes.ttft.max_wait" in answer.body
            first.close()
            await eventually(lambda: router.idle)


# --- bad input


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"hi"', b"null", b'{"model":5,"messages":[]}', b"\xff\xfe"])
@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/api/chat"])
async def test_garbage_is_refused_in_the_shape_of_the_api_and_reaches_no_backend(path: str, body: bytes) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        answer = await router.post(path, body)
        assert answer.status == 400
        document = answer.json()
        assert isinstance(document, dict)
        match path:
            case "/api/chat":
                assert isinstance(document["error"], str)
            case "/v1/messages":
                assert document["type"] == "error"
                assert {"type", "message"} <= document["error"].keys()
            case _:
                assert {"message", "type", "param", "code"} <= document["error"].keys()
        assert backend.received == []


async def test_an_unknown_model_names_the_known_ones() -> None:
    async with ScriptedBackend(models=("a", "b")) as backend, router_for(backend) as router:
        answer = await router.post(CHAT, {**chat(), "model": "c"})
        assert answer.status == 404
        assert b"model_not_found" in answer.body
        assert b"a, b" in answer.body
        assert backend.received == []


async def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    async with ScriptedBackend() as backend, router_for(backend, limits={"max_body": "1KiB"}) as router:
        async with await router.client() as client:
            await client.send(f"POST {CHAT} HTTP/1.1\r\nHost: r\r\nContent-Length: 999999\r\n\r\n".encode())
            answer = await client.answer()
            assert answer.status == 413
        assert backend.received == []


async def test_an_unknown_path_lists_what_exists_and_a_wrong_method_what_is_allowed() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        missing = await router.get("/nope")
        assert missing.status == 404
        assert b"/v1/chat/completions" in missing.body
        wrong = await router.get(CHAT)
        assert wrong.status == 405
        assert "POST" in (wrong.header("allow") or "")


async def test_passthrough_sends_unknown_paths_to_the_named_backend() -> None:
    async with ScriptedBackend() as backend, ScriptedBackend() as other:
        async with router_for(other, backend, passthrough="b1") as router:
            assert (await router.post("/v1/odd?x=1", {"a": 1})).status == 200
            assert backend.received[0].target == "/v1/odd?x=1"
            assert other.received == []


async def test_what_is_not_http_gets_a_json_answer_and_no_backend() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router, await router.client() as client:
        await client.send(b"GARBAGE\r\n\r\n")
        answer = await client.answer()
        assert answer.status == 400
        assert b'"error"' in answer.body
        assert backend.received == []


async def test_expect_100_continue_is_answered_by_us_and_not_forwarded() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router, await router.client() as client:
        body = orjson.dumps(chat())
        head = f"POST {CHAT} HTTP/1.1\r\nHost: r\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
        await client.send(head.encode())
        assert (await asyncio.wait_for(client.answer(), 2.0)).status == 100
        await client.send(body)
        assert (await client.answer()).status == 200
        assert backend.received[0].all("expect") == []


async def test_a_chunked_request_is_sent_on_with_one_framing_header() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router, await router.client() as client:
        body = orjson.dumps(chat())
        head = f"POST {CHAT} HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        await client.send(head + b"7\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (body[:7], len(body) - 7, body[7:]))
        assert (await client.answer()).status == 200
        assert backend.received[0].body == body
        assert backend.received[0].one("content-length") == str(len(body))


# --- other


async def test_a_failure_in_our_looking_leaves_the_answer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from router.watch import StreamWatch

    def broken(self: StreamWatch, pieces: list[bytes], at_s: list[float]) -> float:
        raise ZeroDivisionError

    monkeypatch.setattr(StreamWatch, "see", broken)

    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        for text in "abc":
            await peer.token(text)
        await peer.last_chunk()

    async with ScriptedBackend(script) as backend, router_for(backend) as router:
        answer = await router.post(CHAT, chat(stream=True))
        assert answer.complete
        assert answer.body.count(b"data:") == 3
        assert "twolane_watch_failures_total 1.0" in router.exposition()
        await eventually(lambda: router.idle)


async def test_the_class_is_sent_as_a_priority_only_where_that_is_wanted() -> None:
    async with ScriptedBackend() as backend:
        wants = {"engine": "vllm", "forward_priority": True}
        async with router_for((backend, wants)) as router:
            await router.post(CHAT, chat(), "X-Twolane-Class: interactive")
            await router.post(CHAT, chat(), "X-Twolane-Class: batch")
            await router.post(CHAT, chat(priority=7), "X-Twolane-Class: batch")
        chat_priority, batch_priority, own = (orjson.loads(got.body)["priority"] for got in backend.received)
        assert chat_priority < batch_priority
        assert own == 7
        backend.received.clear()
        async with router_for((backend, {"engine": "vllm"})) as router:
            await router.post(CHAT, chat())
        assert b"priority" not in backend.received[0].body


async def test_first_token_tokens_and_completion_are_booked() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        await peer.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
        for text in "abc":
            await peer.token(text)
        await peer.event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}})
        await peer.chunk(b"data: [DONE]\n\n")
        await peer.last_chunk()

    async with ScriptedBackend(script) as backend, router_for(backend) as router:
        assert (await router.post(CHAT, chat(stream=True))).complete
        await eventually(lambda: router.idle)
        exposition = router.exposition()
        assert 'twolane_ttft_seconds_count{backend="b0",class="ttft"} 1.0' in exposition
        assert 'twolane_tokens_total{backend="b0",direction="in"} 5.0' in exposition
        assert 'twolane_tokens_total{backend="b0",direction="out"} 3.0' in exposition


async def test_a_conversation_stays_with_its_backend_and_a_stored_response_is_found_again() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.json({"id": f"resp_{request.one('x-session-id')}", "object": "response", "output": []})

    async with ScriptedBackend(script) as first, ScriptedBackend(script) as second, router_for(first, second) as router:
        homes = {}
        for session in "abcdefghijklmnop":
            answer = await router.post("/v1/responses", {"model": "m", "input": "x"}, f"X-Session-Id: {session}")
            homes[session] = answer.header("x-twolane-backend")
        assert set(homes.values()) == {"b0", "b1"}
        for session, home in homes.items():
            again = await router.post("/v1/responses", {"model": "m", "input": "y"}, f"X-Session-Id: {session}")
            assert again.header("x-twolane-backend") == home
            stored = await router.get(f"/v1/responses/resp_{session}")
            assert stored.header("x-twolane-backend") == home
        assert (await router.get("/v1/responses/resp_unknown")).status == 404


async def test_models_are_merged_in_a_stable_order_with_aliases() -> None:
    async with ScriptedBackend(models=("b", "a")) as first, ScriptedBackend(models=("b", "c")) as second:
        async with router_for(first, second, models={"fast": {"b0": "a"}}) as router:
            for _ in range(3):
                listed = (await router.get("/v1/models")).json()
                assert isinstance(listed, dict)
                assert [entry["id"] for entry in listed["data"]] == ["fast", "a", "b", "c"]
            one = await router.get("/v1/models/c")
            assert one.status == 200
            assert (await router.get("/v1/models/zzz")).status == 404


# --- the end


async def test_drain_lets_running_calls_finish_and_refuses_new_ones() -> None:
    release = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        await peer.token("a")
        await release.wait()
        await peer.token("b")
        await peer.last_chunk()

    async with ScriptedBackend(script) as backend, router_for(backend) as router:
        client, kept = await router.client(), await router.client()
        await client.post(CHAT, chat(stream=True))
        answer = await client.answer(head_only=True)
        await client.piece(answer)
        draining = asyncio.get_running_loop().create_task(router.app.drain())
        await eventually(lambda: router.app.gateway.draining)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await RawClient.connect(router.port)
        kept.close()
        assert not draining.done()
        release.set()
        await client.rest(answer)
        assert answer.complete
        await asyncio.wait_for(draining, 5.0)
        client.close()


async def test_at_the_end_of_the_grace_time_the_rest_is_ended_with_an_error() -> None:
    async with ScriptedBackend(three_tokens_then_silence) as backend:
        async with router_for(backend, shutdown_grace="100ms") as router, await router.client() as client:
            await client.post(CHAT, chat(stream=True))
            answer = await client.answer(head_only=True)
            await client.piece(answer)
            await router.app.drain()
            await client.rest(answer)
            assert b"shutting_down" in answer.body
            assert not answer.complete
            await eventually(lambda: router.idle)
