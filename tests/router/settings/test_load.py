"""Files and their problems: where, what, what to do."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import settings as how
from hypothesis import strategies as st

from policies.api import Lane
from router.settings.load import MOST_PROBLEMS, Problem, SettingsError, digest, load, parse
from tests.router.settings.reading import BACKENDS, only, problems, settings, whole


def test_the_example_of_the_design_is_understood() -> None:
    found = whole(
        """
listen: 127.0.0.1:8080
backends:
  - {name: desk, url: http://127.0.0.1:8090, lane: latency}            # detected
  - {name: rack, url: http://127.0.0.1:8000, lane: throughput, max_inflight: 64}
models:
  chat: {desk: qwen3-4b-q4_k_m, rack: Qwen/Qwen3-4B}
classify:
  rules:
    - {if: {header: {x-team: nightly}}, then: throughput}
    - {if: {prompt_tokens: ">6000", stream: false}, then: throughput}
classes:
  ttft:       {slo: {ttft: 500ms, tpot: 50ms}, lanes: [latency, throughput], max_wait: 2s}
  mixed:      {slo: {complete: 6s}, lanes: any}
  throughput: {lanes: [throughput, latency], keep_free: {latency: 1}, max_wait: 10m}
"""
    )
    assert [backend.lane for backend in found.backends] == [Lane.LATENCY, Lane.THROUGHPUT]
    assert found.models == {"chat": {"desk": "qwen3-4b-q4_k_m", "rack": "Qwen/Qwen3-4B"}}
    assert found.classes.ttft.max_wait == 2.0
    assert len(found.classify.rules) == 2


# --- each problem on its line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("listn: x", "f.yaml:2:1: listn: unknown key; did you mean listen? (known: listen, admin, "),
        (
            "max_wait: 2s",
            "2:1: max_wait: unknown key; it belongs under classes.ttft, classes.mixed or classes.throughput",
        ),
        ("queue: {}", "2:1: queue: unknown key; did you mean line?"),
        (
            "classes: {interactive: {}}",
            "2:11: classes.interactive: unknown key; did you mean ttft? (known: ttft, mixed",
        ),
        ("zzz: 1", "2:1: zzz: unknown key (known: listen"),
        ("line:\n  ageing: 30", "3:11: line.ageing: expected a duration: a number and its unit, such as 500ms, 2s"),
        ("line: {ageing: 1.5}", "2:16: line.ageing: expected a duration"),
        ("line: {ageing: 1_0}", "2:16: line.ageing: expected a duration"),
        ("line: {ageing: 0s}", "2:16: line.ageing: expected more than 0"),
        ("line: {ageing: off}", "2:16: line.ageing: expected a duration"),
        ("limits: {max_body: 100}", "2:20: limits.max_body: expected a size: a whole number and its unit"),
        ("limits: {max_body: 0B}", "2:20: limits.max_body: expected at least 1"),
        ("line: {max_waiting: '5'}", "2:21: line.max_waiting: expected a whole number in plain digits, without quotes"),
        ("line: {max_waiting: 0123}", "2:21: line.max_waiting: expected a whole number in plain digits"),
        ("line: {max_waiting: 1.5}", "2:21: line.max_waiting: expected a whole number in plain digits"),
        ("line: {max_waiting: true}", "2:21: line.max_waiting: expected a whole number in plain digits"),
        ("line: {max_waiting: -1}", "2:21: line.max_waiting: expected at least 0"),
        ("log: off", "2:6: log: expected a mapping with keys such as level, format, audit, calls"),
        ("log:", "log: nothing is written here; expected a mapping with keys such as level, format, audit, calls, or"),
        ("log: {calls: yes}", "2:14: log.calls: expected true or false, without quotes"),
        ("log: {calls: 'true'}", "2:14: log.calls: expected true or false, without quotes"),
        ("log: {level: warn}", "2:14: log.level: expected debug, info, warning or error; did you mean warning?"),
        ("log: {level: off}", "2:14: log.level: expected debug, info, warning or error"),
        ("expose: no", "2:9: expose: expected full, minimal or none; did you mean none?"),
        ("listen: 22:22", "2:9: listen: expected HOST:PORT"),
        ("listen: 8080", "2:9: listen: expected HOST:PORT"),
        ("listen: null", "2:9: listen: expected HOST:PORT"),
        ("admin: off", "2:8: admin: expected HOST:PORT"),
        ("admin: 127.0.0.1:8080", "2:1: admin: the same address as listen"),
        ("classes: {ttft: {lanes: fast}}", "2:25: classes.ttft.lanes[0]: expected latency or throughput"),
        ("classes: {ttft: {lanes: []}}", "2:25: classes.ttft.lanes: expected at least 1 item in the list"),
        ("classes: {ttft: {lanes: [latency, fast]}}", "2:35: classes.ttft.lanes[1]: expected latency or throughput"),
        (
            "classes: {mixed: {keep_free: {fast: 1}}}",
            "2:31: classes.mixed.keep_free.fast: expected latency or throughput",
        ),
        ("classes: {mixed: {keep_free: {latency: -1}}}", "2:40: classes.mixed.keep_free.latency: expected at least 0"),
        ("classes: {mixed: {slo: {complete: 5}}}", "2:35: classes.mixed.slo.complete: expected a duration"),
        ("classify: {default: fast}", "2:21: classify.default: expected ttft, mixed or throughput"),
        ("classify: {rules: {if: {}}}", "2:19: classify.rules: expected a list: [ONE, TWO], or one item per line"),
        ("classify: {rules: [{then: ttft}]}", "2:20: classify.rules[0].if: is missing. Conditions on a call"),
        ("classify: {rules: [{if: {strem: true}, then: ttft}]}", "2:26: classify.rules[0].if.strem: there is no such"),
        (
            "classify: {rules: [{when: {}, if: {}, then: ttft}]}",
            "2:21: classify.rules[0].when: unknown key; did you mean",
        ),
        (
            "classify:\n  rules:\n    - if:\n        header:\n          cookie: x\n      then: ttft",
            "6:11: classify.rules[0].if.header.cookie: carries a secret",
        ),
        ("policy: {use: fastest}", "2:10: policy.use: there is no policy fastest"),
        ("policy: fastest", "2:9: policy.use: there is no policy fastest"),
        ("policy: {use: prefix_affinity, gap: 1}", "2:32: policy.gap: there is no such option"),
        ("policy: {use: 5}", "2:15: policy.use: expected text; put a number, true or false in quotes"),
        ("policy: []", "2:9: policy: expected a mapping with keys such as use"),
        ("models: {chat: qwen}", "2:16: models.chat: expected a mapping: KEY: VALUE"),
        ("models: {chat: {desk: 3.5}}", "2:23: models.chat.desk: expected text; put a number, true or false in quotes"),
        ("models: {chat: {desk: null}}", "2:23: models.chat.desk: nothing is written here; expected text"),
        ("models: {chat: {rack: q}}", "2:17: models.chat.rack: no backend has this name (known: desk)"),
        ("models: {'qwen3:4b': {rack: q}}", '2:23: models."qwen3:4b".rack: no backend has this name (known: desk)'),
        ("models: {chat: {a b: q}}", '2:17: models.chat."a b": expected a name of letters, digits'),
        ("models: {chat: {desk: ''}}", "2:23: models.chat.desk: expected text that is not empty"),
        ("passthrough: off", "2:1: passthrough: no backend has this name (known: desk); write null for none"),
        ("headers: {class: x-team}", "2:18: headers.class: expected a list"),
        ("headers: {class: [a b]}", "2:19: headers.class[0]: expected the name of a header, such as x-team"),
        ("expose: none\nexpose: full", "3:1: expose: written twice, first in line 2; remove one of the two"),
        (
            "shutdown_grace: ${GRACE}",
            "2:17: shutdown_grace: the environment variable GRACE is not set; set it, or write",
        ),
        ("shutdown_grace: !x 5s", "2:17: shutdown_grace: a tag (!name) changes nothing here"),
        ("5: x", "2:1: a key is text; put a number, true, false or null in quotes"),
        ("log: {level: &a info, format: *a}", "2:14: log.format: expected auto, console or json"),
    ],
)
def test_a_problem_says_line_key_and_what_to_do(text: str, message: str) -> None:
    assert message in only(text)


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("{url: 'http://h'}", "1:13: backends[0].name: is missing. Short name of the server"),
        ("{name: a}", "1:13: backends[0].url: is missing. http://HOST:PORT of the server"),
        ("http://h:1", "1:12: backends: expected a list"),
        ("{name: a, url: 'http://h', weight: 0}", "1:48: backends[0].weight: expected more than 0"),
        ("{name: a, url: 'http://h', weight: .inf}", "1:48: backends[0].weight: expected a number, without quotes"),
        ("{name: a, url: 'http://h', weight: 1e999}", "1:48: backends[0].weight: expected a number, without quotes"),
        ("{name: a, url: 'http://h', lane: fast}", "1:46: backends[0].lane: expected latency or throughput"),
        ("{name: a, url: 'http://h', engine: vlm}", "1:48: backends[0].engine: expected auto, llamacpp, vllm"),
        ("{name: a, url: 'http://h', slots: 2}", "1:40: backends[0].slots: unknown key; did you mean max_inflight?"),
        ("{name: a, url: 'http://h', max_inflight: 0}", "1:54: backends[0].max_inflight: expected at least 1"),
        ("{name: a, url: 'http://h', models: [1]}", "1:49: backends[0].models[0]: expected text"),
        ("{name: 1, url: 'http://h'}", "1:20: backends[0].name: expected text; put a number"),
        ("{name: a b, url: 'http://h'}", "1:20: backends[0].name: expected a name of letters, digits"),
        (f"{{name: {'a' * 65}, url: 'http://h'}}", "1:20: backends[0].name: expected at most 64 characters"),
        (
            "{name: a, url: '127.0.0.1:80'}",
            "1:28: backends[0].url: expected http://HOST:PORT, https://HOST:PORT or unix:/PATH",
        ),
        ("{name: a, url: 'http://127.0.0.1:8080'}", "1:23: backends[0].url: this is listen, the router's own address"),
    ],
)
def test_a_problem_of_a_backend_says_which(backend: str, message: str) -> None:
    text = f"backends: {backend}" if backend.startswith("http") else f"backends: [ {backend} ]"
    (found,) = problems(text)
    assert message in str(found).replace("1:11: backends: expected a list", "1:12: backends: expected a list")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.yaml:1:1: backends: is missing. The inference servers, at least one."),
        ("{}", "f.yaml:1:1: backends: is missing."),
        ("backends: []", "f.yaml:1:11: backends: expected at least 1 item in the list"),
        ("backends:", "backends: nothing is written here; expected a list"),
        ("[]", "f.yaml:1:1: expected a mapping with keys such as listen, admin"),
        ("hello", "f.yaml:1:1: expected a mapping with keys such as listen, admin"),
        ("\n\n5", "f.yaml:3:1: expected a mapping with keys such as listen, admin"),
    ],
)
def test_a_file_without_backends_is_refused(text: str, message: str) -> None:
    (found,) = problems(text)
    assert message in str(found)


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    found = problems(
        """\
listen: 8080
lisen: x
backends:
  - {name: desk, url: http://127.0.0.1:9000, api_key: "${UNSET}"}
  - {name: desk, url: rack:8000}
  - {url: http://h:1}
classify: {rules: [{if: {turns: many}, then: fast}]}
policy: fastest
listen: 127.0.0.1:9
"""
    )
    assert [(problem.line, problem.key_path) for problem in found] == [
        (1, "listen"),
        (2, "lisen"),
        (4, "backends[0].api_key"),
        (5, "backends[1].name"),
        (5, "backends[1].url"),
        (6, "backends[2].name"),
        (7, "classify.rules[0].if.turns"),
        (7, "classify.rules[0].then"),
        (8, "policy.use"),
        (9, "listen"),
    ]


def test_names_without_a_backend_are_told_beside_other_problems() -> None:
    found = problems(BACKENDS + "models: {chat: {rack: q}}\npassthrough: lap\nzzz: 1\n")
    assert [problem.key_path for problem in found] == ["models.chat.rack", "passthrough", "zzz"]


def test_names_are_not_judged_while_the_names_of_backends_are_unclear() -> None:
    found = problems("backends: [{name: '${UNSET}', url: 'http://h:1'}]\npassthrough: desk\nzzz: 1\n")
    assert [problem.key_path for problem in found] == ["backends[0].name", "zzz"]


def test_a_mistake_at_an_anchor_is_told_once() -> None:
    found = problems("backends:\n  - &a {name: a, url: x}\n  - {<<: *a, name: b}\n  - {<<: *a, name: c}\n")
    assert [str(problem) for problem in found] == [
        "f.yaml:2:23: backends[0].url: expected http://HOST:PORT, https://HOST:PORT or unix:/PATH"
    ]


def test_endless_mistakes_are_told_up_to_a_limit_and_quickly() -> None:
    started_s = time.perf_counter()
    found = problems(BACKENDS + "".join(f"unknown_key_number_{n}: 1\n" for n in range(5000)))
    assert len(found) == MOST_PROBLEMS
    assert found[0].line == 2
    assert time.perf_counter() - started_s < 5.0


def test_thousands_of_backends_load_quickly_and_so_do_thousands_that_are_wrong() -> None:
    good = "backends:\n" + "".join(f"  - {{name: b{n}, url: http://h{n}}}\n" for n in range(1500))
    started_s = time.perf_counter()
    assert len(whole(good).backends) == 1500
    assert MOST_PROBLEMS - 1 <= len(problems(good.replace("name: b", "name: a b"))) <= MOST_PROBLEMS
    found = problems(good + "models:\n" + "".join(f"  m{n}: {{x{n}: y}}\n" for n in range(1000)))
    assert len(found) == MOST_PROBLEMS
    assert all(len(str(problem)) < 1000 for problem in found)
    assert time.perf_counter() - started_s < 10.0


# --- YAML's traps (field case A48)


def test_a48_words_that_look_like_booleans_are_text_or_refused() -> None:
    found = whole("backends: [{name: no, url: 'http://on', models: [off, y]}]\npassthrough: no\n")
    assert (found.backends[0].name, found.backends[0].models, found.passthrough) == ("no", ("off", "y"), "no")
    assert "log: expected a mapping" in only("log: off")


def test_a48_keys_of_digits_keep_their_zeros_or_are_refused() -> None:
    def key_of(text: str) -> str:
        key = whole(f"backends: [{{name: a, url: 'http://h', api_key: {text}}}]", KEY="0600123").backends[0].api_key
        assert key is not None
        return key.get_secret_value()

    assert key_of("0123") == "0123"
    assert key_of("'123'") == "123"
    assert key_of("1_0") == "1_0"
    assert key_of("'${KEY}'") == "0600123"
    (problem,) = problems("backends: [{name: a, url: 'http://h', api_key: 987654}]")
    assert str(problem) == "f.yaml:1:48: backends[0].api_key: expected text; put a number, true or false in quotes"


def test_a48_an_unset_variable_is_never_sent_as_a_key() -> None:
    (problem,) = problems("backends:\n  - name: a\n    url: http://h\n    api_key: ${UNSET}\n")
    assert (problem.line, problem.column, problem.key_path) == (4, 14, "backends[0].api_key")
    assert "UNSET is not set" in problem.message


def test_a48_an_empty_variable_is_no_key() -> None:
    (problem,) = problems("backends: [{name: a, url: 'http://h', api_key: '${EMPTY}'}]", EMPTY="")
    assert problem.message == "expected text that is not empty"


def test_a48_a_value_with_colon_and_hash_stays_one_value() -> None:
    key = whole("backends: [{name: a, url: 'http://h', api_key: '${KEY}'}]", KEY="a:#b,}]").backends[0].api_key
    assert key is not None
    assert key.get_secret_value() == "a:#b,}]"
    (problem,) = problems("backends: [{name: a, url: 'http://h', api_key: '${KEY}'}]", KEY="sec: #ret")
    assert "contains a space" in problem.message
    assert "sec" not in problem.message


def test_a_variable_in_brackets_needs_quotes_and_the_message_says_so() -> None:
    (problem,) = problems("backends: [{name: a, url: 'http://h', api_key: ${KEY}}]", KEY="k")
    assert str(problem) == 'f.yaml:1:49: inside brackets a variable needs quotes: "${NAME}"'


def test_a48_anchors_merge_keys_byte_order_mark_and_windows_lines_work_together() -> None:
    text = "\ufeffbackends:\r\n  - &base {name: a, url: 'http://h', weight: 2}\r\n  - {<<: *base, name: b}\r\n"
    assert [(backend.name, backend.weight) for backend in whole(text).backends] == [("a", 2.0), ("b", 2.0)]


def test_numbers_and_booleans_may_come_from_variables() -> None:
    text = """
line: {max_waiting: '${N}', ageing: '${T:-5s}'}
log: {calls: "${CALLS:-true}", level: '${L}'}
listen: ${H}:${P}
"""
    found = settings(text, N="7", L="debug", H="127.0.0.1", P="81")
    assert (found.line.max_waiting, found.line.ageing, found.log.calls, found.log.level) == (7, 5.0, True, "debug")
    assert found.listen.port == 81
    assert "line.max_waiting: expected a whole number" in only("line:\n  max_waiting: ${N}", N="07")


SECRET = "Zq-5up3r-s3cret-0x"


@pytest.mark.parametrize(
    "text",
    [
        "listen: {0}",
        "admin: {0}",
        "expose: {0}",
        "passthrough: {0}",
        "policy: {0}",
        "policy: {{use: {0}}}",
        "policy: {{use: prefix_affinity, max_load_gap: {0}}}",
        "classify: {{default: {0}}}",
        "classify: {{rules: [{{if: {{stream: {0}}}, then: {0}}}]}}",
        "classify: {{rules: [{{if: {{prompt_tokens: [{0}]}}, then: ttft}}]}}",
        "classes: {{ttft: {{lanes: [{0}], max_wait: {0}, slo: {{ttft: {0}}}}}}}",
        "line: {{max_waiting: {0}}}",
        "log: {0}",
        "log: {{level: {0}, calls: {0}}}",
        "headers: {{class: {0}}}",
        "models: {{chat: {0}}}",
        "limits: {{max_body: {0}}}",
        "backends: [{{name: ' {0}', url: {0}, api_key: '{0} {0}', lane: {0}, engine: {0}, weight: {0}}}]",
        "backends: [{{name: a, url: 'http://x:{0}@h'}}]",
        "backends: {0}",
        "{0}",
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(text: str) -> None:
    found = problems(text.format("${K}"), K=SECRET)
    assert found
    assert SECRET not in "".join(map(str, found))
    if not text.startswith(("policy", "classify: {{rules")):  # words of the file's own author may be quoted there
        assert SECRET not in "".join(map(str, problems(text.format(SECRET))))


# --- files


def test_a_file_is_loaded_with_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "twolane.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + BACKENDS.encode())
    loaded = load(path, {})
    assert loaded.settings.backends[0].name == "desk"
    assert loaded.path == path
    assert loaded.digest == digest(path.read_bytes())


def test_the_environment_is_that_of_the_process_unless_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "twolane.yaml"
    path.write_text("backends: [{name: '${TWOLANE_TEST_NAME}', url: 'http://h'}]", encoding="utf-8")
    monkeypatch.setenv("TWOLANE_TEST_NAME", "from-outside")
    assert load(path).settings.backends[0].name == "from-outside"
    assert load(path, {"TWOLANE_TEST_NAME": "given"}).settings.backends[0].name == "given"


def test_a_file_that_cannot_be_read_is_one_plain_line(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    with pytest.raises(SettingsError) as caught:
        load(missing, {})
    assert str(caught.value) == f"{missing}: there is no such file; `twolane init` writes one"
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, {})
    assert str(caught.value) == f"{tmp_path}: is not a plain file; give the path of one"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingsError, match="is not a plain file"):
        load(tmp_path / "pipe", {})
    with pytest.raises(SettingsError, match="not a path"):
        load("a\0b", {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    path = tmp_path / "secret.yaml"
    path.write_text(BACKENDS, encoding="utf-8")
    path.chmod(0)
    with pytest.raises(SettingsError, match="Permission denied"):
        load(path, {})


def test_a_file_in_another_encoding_is_refused_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(BACKENDS.encode() + b"passthrough: b\xfccher\n")
    with pytest.raises(SettingsError) as caught:
        load(path, {})
    assert str(caught.value) == f"{path}:2:15: not UTF-8 text; save the file as UTF-8"


def test_a_huge_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(10**9)
    with pytest.raises(SettingsError, match="at most 256 KiB"):
        load(path, {})


# --- whatever comes in, the answer is settings or problems

KEYS = st.sampled_from(
    [
        "backends",
        "name",
        "url",
        "models",
        "classify",
        "rules",
        "if",
        "then",
        "classes",
        "ttft",
        "slo",
        "lanes",
        "policy",
        "use",
        "listen",
        "admin",
        "line",
        "ageing",
        "passthrough",
        "headers",
        "class",
        "header",
        "prompt_tokens",
        "<<",
        "desk",
    ]
)
WORDS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=True),
    st.text(max_size=12),
    st.sampled_from(
        ["desk", "http://127.0.0.1:9000", "127.0.0.1:8080", "any", "latency", "500ms", "${A}", "${B:-1}", "off"]
    ),
)
TREES = st.recursive(
    WORDS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=5)
)
ROOTS = st.dictionaries(KEYS, TREES, max_size=6)
FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *"{}[]:,#&*!|>'\"%@`-? \n\t\0\\x",
            "<<",
            "---",
            "\n  ",
            "*a",
            "&a ",
            "!!int ",
            "backends",
            "name",
            "- ",
            ": ",
            "${A}",
            "$",
            "${",
            "\ufeff",
            "\u2028",
            "1",
            "true",
            "~",
            "\\U",
            "\\ud800",
            "é",
            "😀",
            BACKENDS,
        ]
    ),
    max_size=30,
).map("".join)


def answer(text: str) -> None:
    started_s = time.perf_counter()
    found: tuple[Problem, ...] | None = None
    try:
        parse(text, "f.yaml", {"A": "x: # {", "B": ""})
    except SettingsError as error:
        found = error.problems
    assert found != ()
    for problem in found or ():
        assert problem.message
        assert "\n" not in str(problem)
        assert 0 <= problem.line <= len(text.splitlines()) + 2
    assert time.perf_counter() - started_s < 5.0


@how(max_examples=300, deadline=None)
@given(st.text() | FRAGMENTS)
@example("\x85: &a [*a")
@example("? ")
@example("a: ! b")
def test_any_text_gives_settings_or_problems(text: str) -> None:
    answer(text)


@how(max_examples=150, deadline=None)
@given(ROOTS)
def test_any_tree_of_values_gives_settings_or_problems(root: dict[str, Any]) -> None:
    answer(yaml.safe_dump(root, allow_unicode=True))


@how(max_examples=150, deadline=None)
@given(st.data())
def test_a_good_file_with_one_piece_changed_gives_settings_or_problems(data: st.DataObject) -> None:
    good = Path(__file__).parents[3].joinpath("config", "twolane.yaml").read_text(encoding="utf-8")
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, min(len(good), start + 20)))
    answer(good[:start] + data.draw(FRAGMENTS) + good[end:])


@how(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_settings_or_problems(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(raw)
    with pytest.raises(SettingsError):
        load(path, {})
