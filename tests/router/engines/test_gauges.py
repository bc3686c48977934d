"""Field case: the names of a metric change, and the scraper reads the old ones and takes silence for idleness."""

from __future__ import annotations

from router.engines.gauges import known, mean, summed

NAMES = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
OLD = b'vllm:gpu_cache_usage_perc{model_name="m"} 0.5\n'
NEW = b'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5\n'


def test_the_old_name_the_new_one_and_both_give_the_same_figure() -> None:
    for text in (OLD, NEW, OLD + NEW):
        assert mean(known(text, NAMES, ("m",))) == 0.5


def test_a_new_name_without_a_figure_leaves_the_old_one() -> None:
    assert mean(known(NEW.replace(b"0.5", b"NaN") + OLD, NAMES, None)) == 0.5


def test_several_engines_add_up_and_lines_that_say_nothing_are_left_out() -> None:
    text = b"\n".join(
        [
            b"# TYPE vllm:num_requests_waiting gauge",
            b'vllm:num_requests_waiting{engine="0",model_name="m"} 3.0',
            b'vllm:num_requests_waiting{engine="1",model_name="m"} 4.0',
            b'vllm:num_requests_waiting{engine="2",model_name="m"} NaN',
            b'vllm:num_requests_waiting{engine="3",model_name="m"} -1',
            b'vllm:num_requests_waiting{engine="0",model_name="another"} 90.0',
            b'vllm:num_requests_waiting_created{engine="0",model_name="m"} 1.7e+09',
        ]
    )
    assert summed(known(text, ("vllm:num_requests_waiting",), ("m",))) == 7.0


def test_all_models_count_where_the_models_are_not_known() -> None:
    text = b'w{model_name="a"} 1\nw{model_name="b"} 2\nw 4\n'
    assert summed(known(text, ("w",), None)) == 7.0
    assert summed(known(text, ("w",), ("a",))) == 5.0


def test_nothing_said_is_unknown_and_not_zero() -> None:
    for text in (b"", b"w NaN\n", b'w{model_name="other"} 3\n'):
        assert summed(known(text, ("w",), ("m",))) is None
        assert mean(known(text, ("w",), ("m",))) is None
