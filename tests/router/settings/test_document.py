"""YAML, its traps, and where things stand."""

from __future__ import annotations

import time

import pytest

from router.settings.document import DEEPEST, MOST_CHARACTERS, MOST_VALUES, Document, read
from router.settings.problems import SettingsError


def doc(text: str, **env: str) -> Document:
    return read(text, "f.yaml", env)


def flaws(text: str, **env: str) -> list[str]:
    return [f"{flaw.place[0]}:{flaw.place[1]} {flaw.message}" for flaw in doc(text, **env).flaws]


def refusal(text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        read(text, "f.yaml", {})
    assert len(caught.value.problems) == 1
    return str(caught.value)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~", "---\n...\n"])
def test_an_empty_file_says_nothing(text: str) -> None:
    assert doc(text).value is None


def test_a_byte_order_mark_and_windows_line_ends_are_accepted() -> None:
    assert doc("\ufeffa: 1\r\nb: [x]\r\n").value == {"a": 1, "b": ["x"]}
    assert doc("\ufeffa: 1").places[("a",)] == (1, 4)


def test_quotes_make_text() -> None:
    assert doc("""a: "1"\nb: 'true'\nc: "null"\nd: |\n  5\n""").value == {
        "a": "1",
        "b": "true",
        "c": "null",
        "d": "5\n",
    }


def test_places_are_those_of_values_and_blocks_stand_at_their_key() -> None:
    found = doc("a: 1\nb:\n  c: {d: 2}\n  e:\n  - x\n  - y: 3\n")
    assert found.places == {
        (): (1, 1),
        ("a",): (1, 4),
        ("b",): (2, 1),
        ("b", "c"): (3, 6),
        ("b", "c", "d"): (3, 10),
        ("b", "e"): (4, 3),
        ("b", "e", 0): (5, 5),
        ("b", "e", 1): (6, 5),
        ("b", "e", 1, "y"): (6, 8),
    }
    assert found.place(("b", "c", "nowhere", 3)) == (3, 6)
    assert found.place(("b", "c"), of_key=True) == (3, 3)


def test_anchors_aliases_and_merge_keys_work() -> None:
    text = "a: &a {x: 1, y: 2}\nb: *a\nc: {<<: *a, x: 3}\nd: {<<: [{z: 1}, *a], w: 0}\n"
    assert doc(text).value == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 2},
        "c": {"x": 3, "y": 2},
        "d": {"w": 0, "z": 1, "x": 1, "y": 2},
    }


def test_merged_values_stand_where_they_are_written() -> None:
    assert doc("a: &a\n  x: 1\nb:\n  <<: *a\n").place(("b", "x")) == (2, 6)


def test_a_quoted_merge_sign_is_a_key() -> None:
    assert doc("{'<<': 1}").value == {"<<": 1}


def test_only_mappings_can_be_merged() -> None:
    assert flaws("a: {<<: 5}") == ["1:9 << merges a mapping, or a list of mappings: <<: *anchor"]


def test_a_key_written_twice_is_refused_and_all_repetitions_are_named() -> None:
    assert flaws("a: 1\nb: {c: 1, c: 2}\na: 3\n'a': 4\n") == [
        "2:11 written twice, first in line 2; remove one of the two",
        "3:1 written twice, first in line 1; remove one of the two",
        "4:1 written twice, first in line 1; remove one of the two",
    ]


@pytest.mark.parametrize("key", ["1", "1.5", "true", "null", "~"])
def test_a_key_that_is_no_text_is_refused_unless_quoted(key: str) -> None:
    assert "a key is text" in flaws(f"{key}: x")[0]
    assert doc(f"'{key}': x").value == {key: "x"}


def test_words_that_older_yaml_takes_for_booleans_are_good_keys() -> None:
    assert doc("on: 1\nno: 2\n0123: 3\n22:22: 4\n").value == {"on": 1, "no": 2, "0123": 3, "22:22": 4}


@pytest.mark.parametrize("text", ["? [a]\n: 1", "? {a: 1}\n: 1", "!x a: 1"])
def test_structured_or_tagged_keys_are_refused(text: str) -> None:
    assert "cannot be a key" in flaws(text)[0]


@pytest.mark.parametrize(
    "value",
    ["!x 1", "!!int 5", "!!str 5", "!!python/object/apply:os.system [ls]", "!!binary aGk=", "!!set {a}", "!x [1]"],
)
def test_tags_are_refused(value: str) -> None:
    found = doc(f"a: {value}\nb: 1\n")
    if value == "!!str 5":
        assert found.value == {"a": "5", "b": 1}
        return
    assert found.left_out == {("a",)}
    assert [flaw.place for flaw in found.flaws] == [(1, 4)]
    assert found.value == {"a": None, "b": 1}


def test_variables_are_replaced_after_parsing_so_they_cannot_change_the_structure() -> None:
    value = "x: # [{\n- 'y"
    assert doc("a: ${V}\nb: '${V}'\nc: p-${V}\n", V=value).value == {"a": value, "b": value, "c": f"p-{value}"}


def test_an_unset_variable_is_refused_with_its_line() -> None:
    found = doc("a: 1\nb:\n  c: x${V}\n")
    assert [(flaw.path, flaw.place) for flaw in found.flaws] == [(("b", "c"), (3, 6))]
    assert found.left_out == {("b", "c")}


def test_variables_in_keys_are_refused_rather_than_taken_literally() -> None:
    assert flaws("${V}: 1", V="a") == ["1:1 variables are replaced in values only; write the key itself"]


@pytest.mark.parametrize(
    ("text", "place", "advice"),
    [
        ("a:\n\t- 1", "2:1", "a tab; indent with spaces"),
        ("a: 1\n\tb: 2", "2:1", "a tab; indent with spaces"),
        ("a: b: c", "1:5", "a colon where no key can be"),
        ("a: [1, 2\n", "2:1", "not closed"),
        ("a: 'x\n", "2:1", "the file ends inside quotes"),
        ("a:\n  - x\n b: 1", "3:2", "does not fit those above"),
        ("a: @x", "1:4", "put it in quotes"),
        ("a: ]", "1:4", "a value is missing"),
        ('a: "\\q"', "1:6", "an unknown escape"),
        ('a: "\\UFFFFFFFF"', "1:", "an escape that stands for no character"),
        ("a: 1\n---\nb: 2", "2:1", "a second document begins here"),
        ("a: x\0y", "1:5", "a character that a settings file may not contain (U+0000)"),
        ("a: 1\nb: \ud800", "2:4", "a character that a settings file may not contain (U+D800)"),
        ("a: &x 1\nb: &x 2", "2:4", "stands further up already"),
        ("a: *b", "1:4", "without its anchor"),
        ("%YAML 3.0\n---\na: 1", "1:1", "not valid YAML"),
        ("a: >x\n  y", "1:5", "not valid YAML"),
    ],
)
def test_broken_yaml_is_refused_with_place_and_advice(text: str, place: str, advice: str) -> None:
    message = refusal(text)
    assert message.startswith(f"f.yaml:{place}")
    assert advice in message


def test_half_a_character_is_refused_in_values_and_keys() -> None:
    assert flaws('a: "\\ud800"\n"\\udfff": 1\n') == [
        "1:4 an escape that stands for half a character; write the character itself",
        "2:1 an escape that stands for half a character; write the character itself",
    ]


@pytest.mark.parametrize(
    "value",
    [
        "*s3cret",
        "!s3cret!x",
        "!<s3cret",
        "@s3cret",
        "`s3cret`",
        "%s3cret",
        "'s3cret' s3cret",
        "&s3cret! x",
        '"s3cret',
        "s3cret: x",
    ],
)
def test_text_of_the_file_is_not_repeated_in_messages(value: str) -> None:
    try:
        said = " ".join(flaw.message for flaw in doc(f"api_key: {value}\n").flaws)
    except SettingsError as error:
        said = str(error)
    assert said
    assert "s3cret" not in said


def bomb(levels: int) -> str:
    return "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, levels)
    )


@pytest.mark.parametrize(
    "text",
    [
        bomb(9),
        bomb(5),
        "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60)),
        "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 3000)),
        "a: [" + "1," * (MOST_VALUES + 1) + "]",
        "[" * 100_000,
        "{a: " * 20_000,
        "- " * 50_000,
        "? " * 50_000,
    ],
    ids=["bomb", "small bomb", "merge bomb", "alias ladder", "many values", "brackets", "braces", "dashes", "marks"],
)
def test_texts_that_would_grow_without_end_are_refused_quickly(text: str) -> None:
    started_s = time.perf_counter()
    message = refusal(text)
    assert "values" in message or "nested deeper" in message
    assert time.perf_counter() - started_s < 5.0


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: *a}", "a: &a {<<: *a}", "&a [[*a]]"])
def test_an_alias_of_what_surrounds_it_is_refused(text: str) -> None:
    assert "an alias inside the very value that it repeats" in refusal(text)


def test_ordinary_nesting_and_aliasing_is_far_from_the_limits() -> None:
    deep = DEEPEST - 2
    assert doc("a: " + "[" * deep + "]" * deep).flaws == []
    assert len(doc("x: &x {a: 1, b: 2}\nall: [" + ", ".join(["*x"] * 1000) + "]").value["all"]) == 1000  # type: ignore[index]


def test_a_file_that_is_no_settings_file_is_refused_by_its_size() -> None:
    assert refusal("a: " + "x" * MOST_CHARACTERS) == "f.yaml: expected at most 256 KiB of settings"
