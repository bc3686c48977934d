"""Peers that are missing are named with the reason, those that are there are measured in every way."""

from pathlib import Path

import pytest

from bench import peers
from bench.__main__ import select
from bench.peers import PEERS, PYTHON_VARIABLE, Missing, Peer, Place, nginx_config
from bench.relay import MEASUREMENTS, Plan, measure


def place(folder: Path) -> Place:
    return Place(backend="http://127.0.0.1:9000", port=9001, side_port=9002, folder=folder)


def test_nginx_is_set_up_to_pass_streams_on_and_to_keep_connections(tmp_path: Path) -> None:
    config = nginx_config(place(tmp_path))
    for words in ("worker_processes 1;", "proxy_buffering off;", "keepalive 512;", "server 127.0.0.1:9000;"):
        assert words in config


def test_an_interpreter_that_is_named_and_does_not_exist_is_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON_VARIABLE, str(tmp_path / "python"))
    with pytest.raises(Missing, match="does not exist"):
        peers.peers_python()


def test_nginx_that_is_not_installed_is_said_to_be_missing_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nginx = next(peer for peer in PEERS if peer.name == "nginx")
    monkeypatch.setattr("bench.peers.shutil.which", lambda *_, **__: None)
    with pytest.raises(Missing, match="apt-get install nginx-light"):
        nginx.launch(place(tmp_path))


def test_names_select_peers_and_measurements_and_a_kind_that_is_not_named_is_taken_whole() -> None:
    chosen, measurements = select("nginx, smg")
    assert (sorted(peer.name for peer in chosen), measurements) == (["nginx", "smg"], MEASUREMENTS)
    chosen, measurements = select("calls,twolane")
    assert ([peer.name for peer in chosen], measurements) == (["twolane"], ["calls"])
    assert select("") == (PEERS, MEASUREMENTS)
    with pytest.raises(ValueError, match="unknown: apache"):
        select("apache")


def test_a_run_measures_the_plain_proxy_in_every_way_and_names_who_is_missing() -> None:
    def nowhere(_: Place) -> peers.Launch:
        raise Missing("not made for this machine")

    plain = next(peer for peer in PEERS if peer.name == "plain-aiohttp")
    plan = Plan(
        rounds=1, concurrency=4, calls_s=0.1, token_streams=5, tokens_s=0.1, ttft_streams=5, idle_streams=20, starts=1
    )
    run = measure(plan, [Peer(name="nobody", launch=nowhere), plain], MEASUREMENTS, tell=lambda _: None)
    assert run.missing == {"nobody": "not made for this machine"}
    assert run.failures == []
    assert {key for key, values in run.rounds.values.items() if "plain-aiohttp" in values} == {
        "call_cpu_us",
        "call_cpu_8k_us",
        "calls_per_s",
        "calls_8k_per_s",
        "token_cpu_us",
        "added_ttft_ms",
        "added_ttft_p95_ms",
        "idle_stream_kb",
        "start_s",
    }
