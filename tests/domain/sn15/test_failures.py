"""Failure categories: every spelling SN15 uses comes to one, and what is none of them stays as it came."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oro_sdk.models.episode_feedback_failure_category_type_0 import EpisodeFeedbackFailureCategoryType0
from oro_sdk.models.episode_result_entry_category_type_0 import EpisodeResultEntryCategoryType0

from service.domain.sn15.failures import FailureCategory, category_of
from service.domain.trajectory import ExecutionKind, Judgement, parse

GUIDE = {
    "did_not_finish": FailureCategory.DID_NOT_FINISH,
    "request_not_met": FailureCategory.REQUEST_NOT_MET,
    "needs_not_found": FailureCategory.NEEDS_NOT_FOUND,
    "changes_missed": FailureCategory.CHANGES_MISSED,
    "process_issue": FailureCategory.PROCESS_REQUIREMENT_MISSED,
    "not_best_option": FailureCategory.NOT_THE_BEST_OPTION,
    "extra_questions": FailureCategory.EXTRA_QUESTIONS,
    "infrastructure": FailureCategory.INFRASTRUCTURE,
}


@pytest.mark.parametrize(("text", "category"), sorted(GUIDE.items()))
def test_the_guides_spelling_is_known(text: str, category: FailureCategory) -> None:
    assert category_of(text) is category


@pytest.mark.parametrize("text", sorted({*EpisodeFeedbackFailureCategoryType0, *EpisodeResultEntryCategoryType0}))
def test_every_spelling_of_the_sdk_is_known(text: str) -> None:
    assert category_of(str(text)) is FailureCategory(str(text).replace(" ", "_"))


@given(
    st.sampled_from(FailureCategory), st.sampled_from(["_", " ", "-", "  "]), st.sampled_from([str.upper, str.title])
)
def test_separators_and_case_do_not_matter(category: FailureCategory, separator: str, case: object) -> None:
    assert callable(case)
    assert category_of(case(category.replace("_", separator))) is category


@given(st.text())
def test_any_text_is_a_category_or_stays_as_it_came(text: str) -> None:
    found = category_of(text)
    assert isinstance(found, FailureCategory) or found == text


def test_the_payload_and_the_judgement_give_the_category_and_keep_the_text() -> None:
    payload = json.dumps({"failure_category": "process issue"}).encode()
    feedback = parse(payload, ExecutionKind.ENVPACK).feedback
    assert feedback is not None
    assert feedback.failure_category == FailureCategory.PROCESS_REQUIREMENT_MISSED
    assert feedback.failure_given == "process issue"
    judgement = Judgement(failure_category="process issue")
    assert (judgement.failure_category, judgement.failure) == (
        "process issue",
        FailureCategory.PROCESS_REQUIREMENT_MISSED,
    )
    assert Judgement(failure_category="cosmic rays").failure == "cosmic rays"
    assert Judgement().failure is None
