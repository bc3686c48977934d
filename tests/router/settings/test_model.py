"""What the keys mean."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from classifiers.api import CallClass
from policies.api import Lane
from router.settings.backend import Backend
from router.settings.checks import is_address_of
from router.settings.classes import Classes, ClassSettings, Slo
from router.settings.fields import Address
from router.settings.model import PolicySettings, Rule, Settings, Timeouts
from router.settings.problems import KeyErrors
from tests.router.settings.reading import problems, settings, whole


def backend(**given: Any) -> Backend:
    return Backend(**{"name": "desk", "url": "http://127.0.0.1:9000", **given})


def found_by(error: ValidationError) -> dict[tuple[str | int, ...], str]:
    """What a validator said about keys below its own."""
    (detail,) = error.errors()
    cause = detail["ctx"]["error"]
    assert isinstance(cause, KeyErrors)
    return dict(cause.found)


def test_one_backend_is_enough_and_everything_else_has_a_default() -> None:
    found = settings("")
    assert (str(found.listen), str(found.admin)) == ("127.0.0.1:8080", "127.0.0.1:8081")
    assert found.policy.use == "workload_aware"
    assert found.backends[0].lane is None
    assert found == Settings(backends=(backend(),))


def test_a_class_keeps_its_own_defaults_for_keys_that_are_left_out() -> None:
    classes = settings("classes: {ttft: {max_wait: 2s}, throughput: {max_wait: 1h}, mixed: {lanes: latency}}").classes
    assert classes.ttft.slo == Slo(ttft=0.5, tpot=0.05)
    assert classes.ttft.max_wait == 2.0
    assert classes.throughput.lanes == (Lane.THROUGHPUT, Lane.LATENCY)
    assert classes.throughput.keep_free == {Lane.LATENCY: 1}
    assert classes.throughput.max_wait == 3600.0
    assert classes.mixed.slo.complete == 6.0
    assert classes.mixed.max_wait == 120.0
    assert classes.mixed.lanes == (Lane.LATENCY,)


def test_the_objectives_of_a_class_are_laid_over_its_defaults_one_by_one() -> None:
    classes = settings("classes: {ttft: {slo: {tpot: 80ms}}, mixed: {slo: {complete: null, ttft: 1s}}}").classes
    assert classes.ttft.slo == Slo(ttft=0.5, tpot=0.08)
    assert classes.mixed.slo == Slo(ttft=1.0, complete=None)


def test_reserved_slots_replace_those_of_the_default() -> None:
    assert settings("classes: {throughput: {keep_free: {}}}").classes.throughput.keep_free == {}
    assert settings("classes: {throughput: {keep_free: {throughput: 2}}}").classes.throughput.keep_free == {
        Lane.THROUGHPUT: 2
    }


def test_classes_made_in_code_keep_their_defaults_too() -> None:
    assert Classes(ttft=ClassSettings(max_wait=1.0)).ttft.slo.ttft == 0.5


def test_rules_of_a_class_are_what_policies_are_told() -> None:
    rules = settings("").classes.of(CallClass.THROUGHPUT).rules()
    assert rules.lanes == (Lane.THROUGHPUT, Lane.LATENCY)
    assert rules.keep_free == {Lane.LATENCY: 1}
    assert rules.max_wait_s == 600.0
    assert settings("").classes.of(CallClass.TTFT).rules().slo_tpot_s == 0.05
    assert settings("").classes.of(CallClass.MIXED).rules().slo_complete_s == 6.0


def test_a_policy_may_be_named_alone_or_with_its_options() -> None:
    assert settings("policy: round_robin").policy == PolicySettings(use="round_robin")
    with_options = settings("policy: {use: prefix_affinity, max_load_gap: 0.25}").policy
    assert (with_options.use, with_options.options) == ("prefix_affinity", {"max_load_gap": 0.25})


def test_options_may_come_from_variables() -> None:
    found = settings("policy: {use: '${P}', max_load_gap: '${GAP}'}", P="prefix_affinity", GAP="0.75").policy
    assert (found.use, found.options) == ("prefix_affinity", {"max_load_gap": 0.75})


def test_a_policy_that_cannot_be_built_is_refused_at_its_key() -> None:
    with pytest.raises(ValidationError) as caught:
        PolicySettings(use="least_laoded")
    assert "did you mean least_loaded" in found_by(caught.value)[("use",)]
    with pytest.raises(ValidationError) as caught:
        PolicySettings.model_validate({"use": "prefix_affinity", "max_gap": 1})
    assert "no such option" in found_by(caught.value)[("max_gap",)]


def test_all_conditions_of_a_rule_are_judged_each_at_its_key() -> None:
    with pytest.raises(ValidationError) as caught:
        Rule.model_validate(
            {"if": {"strem": True, "stream": True, "turns": "many", "header": {"cookie": "x"}}, "then": "ttft"}
        )
    assert list(found_by(caught.value)) == [("strem",), ("turns",), ("header", "cookie")]


def test_conditions_may_come_from_variables() -> None:
    rule = settings("classify: {rules: [{if: {stream: '${S}', prompt_tokens: '>${N}'}, then: bulk}]}", S="true", N="5")
    assert rule.classify.rules[0].if_ == {"stream": True, "prompt_tokens": ">5"}
    assert rule.classify.rules[0].then is CallClass.THROUGHPUT


@pytest.mark.parametrize("url", ["http://f:1", "http://f:1/", "http://f:1/v1", "http://f:1/v1/"])
def test_the_base_url_has_neither_slash_nor_version(url: str) -> None:
    assert backend(url=url).base_url == "http://f:1"


def test_two_backends_of_one_name_are_refused() -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(backends=(backend(), backend(name="rack"), backend(url="http://h:2")))
    assert found_by(caught.value) == {("backends", 2, "name"): "a second backend called desk; names must differ"}


def test_names_of_backends_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(backends=(backend(),), models={"chat": {"desk": "q", "rack": "q"}}, passthrough="lap")
    assert found_by(caught.value) == {
        ("models", "chat", "rack"): "no backend has this name (known: desk)",
        ("passthrough",): "no backend has this name (known: desk); write null for none",
    }


def test_the_router_does_not_call_itself() -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(
            backends=(backend(url="http://localhost:8080"), backend(name="b", url="http://127.0.0.1:8081/v1")),
        )
    assert list(found_by(caught.value)) == [("backends", 0, "url"), ("backends", 1, "url")]


def test_listen_and_admin_need_two_addresses_unless_any_port_will_do() -> None:
    same = Address(host="127.0.0.1", port=7000)
    with pytest.raises(ValidationError) as caught:
        Settings(backends=(backend(),), listen=same, admin=same)
    assert list(found_by(caught.value)) == [("admin",)]
    any_port = Address(host="127.0.0.1", port=0)
    assert Settings(backends=(backend(),), listen=any_port, admin=any_port).admin == any_port


@pytest.mark.parametrize(
    ("url", "address", "same"),
    [
        ("http://127.0.0.1:80", "127.0.0.1:80", True),
        ("http://127.0.0.1/v1", "127.0.0.1:80", True),
        ("https://localhost", "[::1]:443", True),
        ("http://127.0.0.1:80", "0.0.0.0:80", True),
        ("http://[::1]:80", "[::]:80", True),
        ("http://[::1]:80", "127.0.0.1:80", False),
        ("http://127.0.0.1:81", "127.0.0.1:80", False),
        ("http://gpu:80", "0.0.0.0:80", False),
        ("http://gpu:80", "gpu:80", True),
        ("http://[x", "127.0.0.1:80", False),
        ("unix:/run/a.sock", "unix:/run/a.sock", True),
        ("unix:/run/a.sock", "unix:/run/b.sock", False),
        ("unix:/run/a.sock", "127.0.0.1:80", False),
        ("http://localhost", "unix:/run/a.sock", False),
    ],
)
def test_an_address_of_this_machine_is_recognised_in_a_url(url: str, address: str, same: bool) -> None:
    assert is_address_of(url, Address.model_validate(address)) is same


def test_settings_do_not_change_and_do_not_show_keys() -> None:
    found = whole("backends: [{name: a, url: 'http://h:1', api_key: '${KEY}'}]", KEY="s3cret")
    with pytest.raises(ValidationError):
        found.expose = "none"  # type: ignore[misc]
    assert "s3cret" not in repr(found) + str(found) + found.model_dump_json()
    key = found.backends[0].api_key
    assert key is not None
    assert key.get_secret_value() == "s3cret"


def test_errors_of_code_do_not_repeat_values_either() -> None:
    with pytest.raises(ValidationError) as caught:
        backend(url="http://user:s3cret@h:1", api_key=5)
    assert "s3cret" not in str(caught.value)


def test_no_admin_port_is_written_null() -> None:
    assert settings("admin: null").admin is None


def test_code_may_write_seconds() -> None:
    assert Timeouts(connect=0.05).connect == 0.05


ONE_LANE = "backends: [{name: a, url: 'http://h', lane: throughput}, {name: b, url: 'http://i'LANE}]\n"


def test_a_class_whose_lanes_have_no_backend_is_refused_where_all_lanes_are_written() -> None:
    only_throughput = ONE_LANE.replace("LANE", ", lane: throughput")
    classes = "classes: {ttft: {lanes: [latency]}, mixed: {lanes: any}}"
    [problem] = problems(only_throughput + classes)
    assert str(problem) == (
        "f.yaml:2:18: classes.ttft.lanes: no backend is in the lane latency, so nothing could serve these calls; "
        "add the lane throughput, where there are backends"
    )
    for lane in ("", ", lane: latency"):
        whole(ONE_LANE.replace("LANE", lane) + classes)  # the server may say that it is of this lane, or is
