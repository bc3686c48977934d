"""pydantic's errors in words of the file."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import ConfigDict, Field, ValidationError, create_model

from router.settings.outline import sections
from router.settings.wording import OTHER_WORDS, Complaint, complaints


def said(kind: Any, value: object) -> list[Complaint]:
    model = create_model("Section", __config__=ConfigDict(strict=True), value=(kind, ...))
    with pytest.raises(ValidationError) as caught:
        model.model_validate({"value": value})
    return [item for error in caught.value.errors() for item in complaints(error, {"value": value})]


def test_a_kind_of_error_that_nobody_foresaw_is_told_in_the_words_of_the_library() -> None:
    (complaint,) = said(Annotated[int, Field(multiple_of=5)], 3)
    assert complaint.message == "Input should be a multiple of 5"


def test_upper_bounds_are_told() -> None:
    (complaint,) = said(Annotated[int, Field(le=5)], 9)
    assert complaint.message == "expected at most 5"


def test_a_wrong_key_is_told_apart_from_a_wrong_value() -> None:
    (complaint,) = said(dict[Annotated[str, Field(max_length=2)], int], {"abc": 1})
    assert (complaint.path, complaint.of_key, complaint.message) == (
        ("value", "abc"),
        True,
        "expected at most 2 characters",
    )


def test_words_of_other_programs_lead_to_keys_that_exist() -> None:
    keys = {key for known in sections().values() for key in known}
    assert set(OTHER_WORDS.values()) <= keys
