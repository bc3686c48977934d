"""Inputs that are right, to be made wrong: shaped like what real servers and clients send."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Final

import brotli
import zstandard

_CHAT = (
    b'{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":%b,"finish_reason":%b}]%b}'
)
_USAGE = b',"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}'


_HUGE: Final = [b"9" * 400, b"[" * 1100]
"""More digits than a float has room for, deeper than a parser goes."""


def _apart(fragments: bytes) -> list[bytes]:
    return [*_HUGE, *fragments.split(b"^")]


def sse(*events: bytes, name: bytes = b"") -> bytes:
    start = b"event: %b\n" % name if name else b""
    return b"".join(start + b"data: %b\n\n" % event for event in events)


def _chat(delta: bytes, reason: bytes = b"null", more: bytes = b"") -> bytes:
    return _CHAT % (delta, reason, more)


STREAMS: Final = {
    "openai_chat": sse(
        _chat(b'{"role":"assistant","content":""}'),
        _chat(b'{"content":"Hello"}'),
        _chat(b'{"content":" \\"content\\":\\"w"}'),
        _chat(b'{"content": "spaced"}'),
        _chat(b'{"reasoning_content":"hm","content":null}'),
        _chat(b'{"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{}"}}]}'),
        b'{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}',
        _chat(b"{}", b'"stop"', b',"timings":{"cache_n":1,"prompt_n":2,"predicted_n":3}'),
        b'{"choices":[]%b}' % _USAGE,
        b'{"error":{"message":"m","type":"server_error","code":500}}',
        b"[DONE]",
    ),
    "openai_completions": sse(
        b'{"id":"c","choices":[{"index":0,"text":"a","finish_reason":null}]}',
        b'{"id":"c","choices":[{"index":0,"text":"b","logprobs":{"tokens":["b"]}}]}',
        b'{"id":"c","choices":[{"index":0,"text":"","finish_reason":"length"}]%b}' % _USAGE,
        b"[DONE]",
    ),
    "openai_responses": sse(b'{"type":"response.created","response":{"id":"r1"}}', name=b"response.created")
    + sse(
        b'{"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}',
        name=b"response.output_item.added",
    )
    + sse(
        b'{"type":"response.output_text.delta","item_id":"i","delta":"Hel"}',
        b'{"type":"response.output_text.delta","item_id":"i","delta":"lo"}',
        name=b"response.output_text.delta",
    )
    + sse(
        b'{"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":5,"output_tokens":2}}}',
        name=b"response.completed",
    )
    + sse(b'{"type":"error","code":"server_error","message":"m"}', name=b"error"),
    "openai_audio": sse(
        b'{"type":"transcript.text.delta","delta":"a"}',
        b'{"type":"speech.audio.delta","audio":"UklGRg=="}',
        b'{"type":"transcript.text.done","usage":{"input_tokens":3,"output_tokens":1}}',
    ),
    "anthropic_messages": sse(
        b'{"type":"message_start","message":{"id":"m1","usage":{"input_tokens":5,"cache_read_input_tokens":2}}}',
        name=b"message_start",
    )
    + sse(
        b'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"f","input":{}}}',
        name=b"content_block_start",
    )
    + sse(
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" there"}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}',
        name=b"content_block_delta",
    )
    + sse(b'{"type":"ping"}', name=b"ping")
    + sse(b'{"type":"message_delta","delta":{},"usage":{"output_tokens":7}}', name=b"message_delta")
    + sse(b'{"type":"message_stop"}', name=b"message_stop")
    + sse(b'{"type":"error","error":{"type":"overloaded_error","message":"m"}}', name=b"error"),
    "ollama_chat": b'{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}\n'
    b'{"model":"m","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}\n'
    b'{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f"}}]},"done":false}\n'
    b'{"model":"m","message":{"content":""},"done":true,"prompt_eval_count":5,"eval_count":2}\n{"error":"m"}\n',
    "ollama_generate": b'{"model":"m","response":"Hi","done":false}\n{"model":"m","response":" you","done":false}\n'
    b'{"model":"m","response":"","done":true,"context":[1,2],"prompt_eval_count":5,"eval_count":2}\n',
    "llamacpp_completion": sse(
        b'{"index":0,"content":"a","tokens":[1],"stop":false,"tokens_predicted":1,"tokens_evaluated":5}',
        b'{"index":0,"content":"b","tokens":[2],"stop":false,"tokens_predicted":2,"tokens_evaluated":5}',
        b'{"content":"","stop":true,"tokens_predicted":2,"tokens_evaluated":5,"timings":{"prompt_n":5,"cache_n":0}}',
    ),
    "openai_embeddings": b'{"object":"list","data":[{"embedding":[0.1]}],"usage" : {"prompt_tokens":5,"a":{"b":1}}}',
}
STREAM_FRAGMENTS: Final = _apart(
    b'\n^\r^\r\n^\n\n^data: ^data:^event: ^: ping\n\n^\xef\xbb\xbf^[DONE]^id: 1\n^"^\\^{^}^[^]^,^'
    b'"content":"^"content":""^"usage":{^"error":^null^true^"done":true^"stop":true^'
    b'"delta":"^"text":"^-1^1e999^\xff^\\ud83d'
)

_CHUNKED = b"5\r\nhello\r\n3;ext=1\r\nabc\r\n0\r\n\r\n"
CHUNKS: Final = [
    _CHUNKED,
    b"0\r\n\r\n",
    b"a\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
    b"4\r\n\r\n\r\n\r\n0\r\n\r\nGET /",
]
REQUESTS: Final = [
    b"GET /v1/models HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n" + _CHUNKED,
    b"POST / HTTP/1.0\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabc",
    b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\nX-A: \r\nX-B:b\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]
RESPONSES: Final = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nKeep-Alive: timeout=5\r\n\r\n" + _CHUNKED,
    b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end",
    b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\n\x00\x01",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
    b"HTTP/1.1 500\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
]
WIRE_FRAGMENTS: Final = _apart(
    b"\r\n^\n^\r^\r\n\r\n^ ^\t^:^0\r\n^ffffffffffffffff\r\n^-1^+5^1_0^Content-Length: 5\r\n^"
    b"Content-Length: 6\r\n^Transfer-Encoding: chunked\r\n^Transfer-Encoding: identity\r\n^Host: b\r\n^"
    b"Connection: close\r\n^HTTP/1.1 200 OK\r\n^GET / HTTP/1.1\r\n^Upgrade: h2c\r\n^\x00^\xff^"
    b"HTTP/1.1 100 Continue\r\n\r\n^;a=b^chunked^gzip^Trailer: a\r\n^Keep-Alive: timeout=1\r\n^\x0b"
)
FIELDS: Final = [
    b"Priority: u=5, i\r\nX-Twolane-Class: batch\r\nX-Twolane-Hop: final",
    b'Priority: a="x\\"";p=1, b=(1 2.5 :YQ==:), c=?0, d=@12, e=%"f%c3%bc"\r\nX-Session-Id: 7',
    b"X-Forwarded-For: 10.0.0.1, 10.0.0.2\r\nX-Forwarded-Proto: https\r\nForwarded: for=a\r\nX-Real-Ip: 1.2.3.4",
    b"Origin: http://localhost:5173\r\nAccess-Control-Request-Method: POST\r\n"
    b"Access-Control-Request-Headers: content-type, x-api-key\r\nAccess-Control-Request-Private-Network: true",
    b"Connection: keep-alive, X-Drop\r\nX-Drop: 1\r\nContent-Encoding: gzip, br\r\nContent-Encoding: identity",
    b"X-Twolane-Slo-Ttft-Ms: 250.5\r\nX-Smg-Priority: bulk\r\nX-LLM-D-Inference-Objective: a\r\nX-Twolane-Pipeline: p",
    b"Authorization: Bearer k\r\nCookie: a=b\r\nX-Api-Key: k\r\nProxy-Authorization: x\r\nX-Request-Id: r\r\nExpect: x",
]
FIELD_FRAGMENTS: Final = _apart(
    b'\r\n^,^, ^;^=^"^\\^(^)^?1^u=^i^%^@^:^ ^\t^*^\xa0^\x85^\xff^\xc3\xa9^Connection: ^close^'
    b"X-Forwarded-For: ^Origin: ^Priority: "
)

CALLS: Final = [
    b'{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}],"stream":true,"n":2}',
    b'{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"b"}}]},'
    b'{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"r"}]}',
    b'{"model":"m","prompt":["a","b"],"max_tokens":5,"suffix":"c","response_format":{"type":"json_object"}}',
    b'{"model":"m","input":[{"type":"message","role":"user","content":"x"},{"type":"function_call_output","output":"y"}]}',
    b'{"model":"m","system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result",'
    b'"content":[{"type":"text","text":"t"}]}]}],"max_tokens":9,"tools":[{"name":"f"}]}',
    b'{"model":"m","query":"q","documents":["a",{"text":"b"}],"input":[[1,2],[3]],"prompt":{"prompt_string":"p"}}',
    b'{"model":"m","prompt":"p","images":["x"],"options":{"num_predict":5},"format":{"type":"object"},"stream":false}',
    b'\xef\xbb\xbf{"model":"m","input":"x","temperature":NaN,"priority":-5,"a":"\\ud83d"}',
    b'{"a":{"model":"x"},"mod\\u0065l" : "y" ,"model":{"z":["}\\"{"]},"b":"\\\\\\"model\\":\\"q\\""}',
]
CALL_FRAGMENTS: Final = _apart(
    b'"^\\^\\\\^{^}^[^]^,^:^ ^\n^null^true^NaN^-1^1e400^\xff^"model"^"model":^"model":"x",^'
    b'"mod\\u0065l":^\\u006d^\\ud83d^"\\""^"role":"user",^"content":^"type":"tool_result",^'
    b'"input":^"stream":true,^\xef\xbb\xbf'
)
_FORM = (
    b'--XyZ\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper\r\n'
    b"--XyZ\r\nContent-Disposition: form-data; name=prompt\r\nContent-Type: text/plain\r\n\r\nhi\r\n"
    b'--XyZ\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\x00{"\r\n\r\n\r\n--XyZ--\r\n'
)
FORMS: Final = [_FORM, b"preamble\r\n" + _FORM, _FORM.replace(b'; name="model"', b"; a=b;name=model")]
FORM_FRAGMENTS: Final = _apart(
    b'\r\n^\r\n\r\n^--XyZ^\r\n--XyZ^--XyZ--^--^;^"^; name="model"^; name=model^=^'
    b'Content-Disposition: form-data^content-disposition:form-data;^\n^\xff^name="stream"^filename='
)

SETTINGS: Final = [
    Path(__file__).parents[2].joinpath("config", name).read_bytes() for name in ("minimal.yaml", "twolane.yaml")
]
SETTINGS_FRAGMENTS: Final = _apart(
    b"{^}^[^]^:^,^#^&^*^!^|^>^'^\"^%^@^`^-^?^ ^\n^\t^\\^\x00^x^<<: *a^&a ^*a^---\n^!!int ^- ^: ^${A}^"
    b"${SECRET}^${^$${^\n  ^\n- ^backends^rules^if^1^true^~^500ms^\\ud800^\\UFFFFFFFF^\xef\xbb\xbf^\xc2\x85"
)
CONDITIONS: Final = [
    b"prompt_tokens: >6000\nmodel: qwen*[a-z]?\nx-team: *night*ly*",
    b"max_tokens: 100..500\nturns: ==1\nuser_agent: curl/*\nlast_role: tool",
]
CONDITION_FRAGMENTS: Final = _apart(b"*^?^[^]^!^..^>^<=^-^999999999999999^\n^: ^header^stream: true^\xd9\xa3")
SCRAPES: Final = [
    b"# HELP vllm:num_requests_running x\n# TYPE vllm:num_requests_running gauge\n"
    b'vllm:num_requests_running{engine="0",model_name="a\\"b\\\\\\n"} 3.0\nvllm:num_requests_running_x 5\na 1 1700\n',
    b'a{b="c",} NaN # {trace_id="x"} 1\r\na +Inf\na{} 1_0\na\t7\n  a 8\naa 9\n',
]
SCRAPE_FRAGMENTS: Final = _apart(b'a^{^}^"^=^,^\\^\n^ ^\t^#^NaN^1e999^\xff^vllm:num_requests_running')
_PLAIN = b"some text, some text, some text"
CODED: Final = [
    gzip.compress(_PLAIN, mtime=0),
    gzip.compress(_PLAIN, mtime=0) * 2,
    zlib.compress(_PLAIN),
    brotli.compress(_PLAIN),
    brotli.compress(_PLAIN) * 2,
    zstandard.compress(_PLAIN) * 2,
    gzip.compress(bytes(200_000), mtime=0),
    zstandard.compress(bytes(200_000)),
]
CODED_FRAGMENTS: Final = _apart(b"\x00^\xff^\x1f\x8b\x08^x\x9c^(\xb5/\xfd^\x03")
