"""Why the calls of some sources cannot be told from the request alone, where figures show that they are not."""

from __future__ import annotations

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "metagpt_steps": (
        "steps of a pipeline that offer no tools and have no history: one message with an instruction, a document and "
        "a demanded form, which is what a batch job sends as well; that other steps follow is not in the call"
    ),
    "bfcl_live": (
        "one short question of a person, with tools: the first call of an agent and a chat window with tools are the "
        "same bytes; the data's own description says so"
    ),
    "gorilla_rag": (
        "a question in the first person with documents behind it and no word on the form of the answer: a person who "
        "pastes documents into a chat sends the same"
    ),
    "docprev_minutes": (
        "a document and what to make of it: only that somebody watches the page makes it differ from offline "
        "summaries, of which a third stream too"
    ),
    "docprev_finance": "as docprev_minutes",
    "docprev_kb": "as docprev_minutes",
    "qmsum_sum": (
        "a long transcript and what to make of it: the third that streams looks like a preview for a waiting person"
    ),
}
