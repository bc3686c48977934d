"""Which of the backends that serve a call are left for it."""

from __future__ import annotations

from router.engines.api import Identity, Ready
from router.fleet.fleet import Candidate, Fleet
from router.remaining import remaining
from router.settings.load import parse

SETTINGS = """
backends:
  - {name: desk, url: "http://127.0.0.1:1"}
  - {name: rack, url: "http://127.0.0.1:2"}
  - {name: spare, url: "http://127.0.0.1:3"}
models:
  chat: {desk: small-q4, rack: small, spare: small}
"""


def fleet(down: tuple[str, ...] = ()) -> tuple[Candidate, ...]:
    made = Fleet(parse(SETTINGS, "test.yaml", {}))
    for backend in made.backends():
        made.identified(backend, Identity(engine="vllm", models=("small-q4", "small")))
        made.probed(backend, Ready(), None, since_s=0.0, now_s=0.0)
        if backend.name in down:
            made.refused(backend, "connection refused")
    return made.candidates("chat", "openai_chat")


def names(found: object) -> list[str]:
    assert isinstance(found, list | tuple)
    return [candidate.backend.name for candidate in found]


def test_all_that_serve_it_are_left_for_a_call_of_which_nothing_is_known() -> None:
    assert names(remaining(fleet(), None, set(), None)) == ["desk", "rack", "spare"]


def test_a_loop_stays_with_the_model_that_answered_it_on_any_backend_that_has_it() -> None:
    assert names(remaining(fleet(), None, set(), "small")) == ["rack", "spare"]
    assert names(remaining(fleet(), None, {"rack"}, "small")) == ["spare"]


def test_a_loop_goes_to_another_model_where_none_that_has_its_own_is_left() -> None:
    assert names(remaining(fleet(), None, {"desk"}, "small-q4")) == ["rack", "spare"]
    assert names(remaining(fleet(down=("desk",)), None, set(), "small-q4")) == ["desk", "rack", "spare"]


def test_a_model_that_no_backend_has_any_more_holds_up_nobody() -> None:
    assert names(remaining(fleet(), None, set(), "gone")) == ["desk", "rack", "spare"]


def test_the_only_one_that_can_answer_is_left_alone() -> None:
    assert names(remaining(fleet(), "rack", set(), None)) == ["rack"]
