"""Finding a policy by name and checking its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import pytest

from policies import BUILTIN, PolicyError, build
from policies.api import Ask, Decision, Policy, View, Wait
from policies.prefix_affinity import PrefixAffinity


class Mood(StrEnum):
    CALM = "calm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """A policy of somebody else."""

    reason: str
    names: tuple[str, ...] = ()
    mood: Mood | None = None
    shares: dict[str, float] = field(default_factory=dict)
    built: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if self.reason == "none":
            raise ValueError("there is always a reason")

    def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
        return Wait(self.reason)


@dataclass(frozen=True)
class Indecisive:
    """A dataclass that is no policy."""


class NoDataclass:
    def decide(self) -> None:
        """Not asked for."""


PATIENT = f"{__name__}:Patient"

_HEAD = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\n"
_DECIDE = "    def decide(self, ask, views, *, now_s, chance): ...\n"


def error_of(use: str, options: dict[str, object]) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        build(use, options)
    return caught.value


@pytest.mark.parametrize("name", BUILTIN)
def test_every_builtin_policy_works_without_options(name: str) -> None:
    assert type(build(name, {})) is BUILTIN[name]


def test_options_become_the_fields_of_the_policy() -> None:
    assert build("prefix_affinity", {"max_load_gap": 1}) == PrefixAffinity(max_load_gap=1.0)


@pytest.mark.parametrize("value", ["0.5", True, None, [0.5], -0.1])
def test_an_option_of_another_type_or_range_is_refused(value: object) -> None:
    error = error_of("prefix_affinity", {"max_load_gap": value})

    assert error.key == "max_load_gap"
    assert error.message.endswith(f"; got {value!r}")
    assert isinstance(error, ValueError)


def test_an_option_that_is_no_plain_yaml_is_refused() -> None:
    assert error_of("prefix_affinity", {"max_load_gap": object()}).message.startswith("expected plain YAML")


def test_an_unknown_option_is_refused_with_a_suggestion() -> None:
    error = error_of("prefix_affinity", {"max_lode_gap": 1})

    assert str(error) == "max_lode_gap: there is no such option; did you mean max_load_gap? known: max_load_gap"
    assert error_of("round_robin", {"x": 1}).message == "there is no such option; it has none"


def test_an_unknown_policy_is_refused_with_a_suggestion() -> None:
    error = error_of("workload_awrae", {})

    assert error.key == "use"
    assert "did you mean workload_aware? known: workload_aware, static_lanes, " in error.message


def test_a_policy_is_found_by_module_and_attribute() -> None:
    policy = build(PATIENT, {"reason": "later", "names": ["a", "b"], "mood": "calm", "shares": {"a": 1}})

    assert policy == Patient(reason="later", names=("a", "b"), mood=Mood.CALM, shares={"a": 1.0})


def test_an_option_without_default_is_needed() -> None:
    assert str(error_of(PATIENT, {})) == "reason: this option is needed"


def test_a_field_that_the_policy_sets_itself_is_no_option() -> None:
    assert error_of(PATIENT, {"reason": "later", "built": False}).key == "built"


def test_what_a_policy_itself_refuses_is_passed_on() -> None:
    error = error_of(PATIENT, {"reason": "none"})

    assert error.key == "use"
    assert "there is always a reason" in error.message


@pytest.mark.parametrize("attribute", ["Indecisive", "NoDataclass", "PATIENT"])
def test_what_is_no_policy_is_refused(attribute: str) -> None:
    assert "expected a dataclass with a method decide" in error_of(f"{__name__}:{attribute}", {}).message


@pytest.mark.parametrize("use", ["no.such.module:Thing", f"{__name__}:NoSuch", ":Thing", "a b:c"])
def test_what_cannot_be_loaded_is_refused(use: str) -> None:
    error = error_of(use, {})

    assert error.key == "use"
    assert "cannot be loaded" in error.message


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("unfinished", "class Mine(:\n", "unfinished:Mine cannot be loaded: SyntaxError: "),
        ("ends", "raise SystemExit(3)\n", "ends:Mine cannot be loaded: SystemExit: 3"),
        ("broken", "1 / 0\n", "broken:Mine cannot be loaded: ZeroDivisionError: division by zero"),
        ("untold", f"{_HEAD}class Mine:\n    a: Fraction = 1\n{_DECIDE}", "the types of its options cannot be told: "),
        (
            "odd",
            f"{_HEAD}class Mine:\n    a: int = 1\n    def __post_init__(self): [].pop()\n{_DECIDE}",
            "odd:Mine does not accept its options: IndexError: pop from empty list",
        ),
        (
            "foreign",
            f"{_HEAD}class Mine:\n    a: memoryview = 1\n{_DECIDE}",
            "cannot be read: PydanticSchemaGeneration",
        ),
    ],
)
def test_whatever_the_code_of_a_policy_raises_is_a_mistake_in_the_settings(
    name: str, text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    error = error_of(f"{name}:Mine", {"a": 5} if "a:" in text else {})

    assert error.message.startswith(said)


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution that offers two policies, one of them broken."""
    info = tmp_path / "somebody-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[twolane.policies]\npatient = {PATIENT}\nbroken = no_such_module:Thing\nround_robin = {PATIENT}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("third_party")
def test_an_installed_policy_is_found_by_its_name() -> None:
    policy: Policy = build("patient", {"reason": "later"})

    assert policy == Patient(reason="later")


@pytest.mark.usefixtures("third_party")
def test_an_installed_policy_that_cannot_be_loaded_is_refused() -> None:
    assert "cannot be loaded" in error_of("broken", {}).message


@pytest.mark.usefixtures("third_party")
def test_an_installed_policy_does_not_take_the_name_of_a_builtin_one() -> None:
    assert type(build("round_robin", {})) is BUILTIN["round_robin"]


@pytest.mark.usefixtures("third_party")
def test_installed_policies_are_among_the_known_names() -> None:
    assert "patient" in error_of("nobody", {}).message
