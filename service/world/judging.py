"""What SN15 says of a run: the score, the reasoning grade and the row its backend would receive.

It stands for scorer, reporter and judge; it changes no run. The reasoning judge is a seeded stand-in: it sees a
harness, not a text. Null where nothing was judged, never a number.
"""

import random
from typing import Any

import msgspec

from service.domain.sn15.scoring import Score, score
from service.world.agents import Harness
from service.world.catalogue import Catalogue
from service.world.problems import Problem, title_similarity

GRADES = (0.1, 0.3, 0.5, 0.7, 0.9)
_WEIGHTS = {
    Harness.REACT: (1, 3, 6, 35, 55),
    Harness.NATIVE: (1, 3, 8, 38, 50),
    Harness.MIXED: (3, 12, 25, 40, 20),
    Harness.SUB_TASK: (15, 30, 30, 20, 5),
    Harness.ECHOED: (5, 15, 25, 35, 20),
    Harness.FORGED: (5, 10, 25, 35, 25),
}
_DUMB = (75, 20, 5, 0, 0)
_UNJUDGED = 0.12
_JUDGE_MODELS = ("GLM-5-TEE", "gemma-4-31B-turbo-TEE")


class Ruling(msgspec.Struct, frozen=True):
    """The two rows a recorded folder keeps of one judged run."""

    scores: dict[str, Any]
    update: dict[str, Any]


class Judge:
    """Scores runs over one catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._products = catalogue.raw()

    def judge(self, problem: Problem, envelope: dict[str, Any] | None, harness: Harness, rng: random.Random) -> Ruling:
        """Rule on one run; no envelope, or one without a dialogue, ends as TIMED_OUT or FAILED with nothing scored."""
        dialogue = (envelope or {}).get("dialogue")
        scored = self.score(problem, dialogue) if dialogue else None
        success = scored is not None and scored.success
        status = _status(envelope, success)
        counted = envelope or {}
        if status == "TIMED_OUT" and counted.get("status") == "SUCCESS":
            counted = {}
        grade = _grade(harness, rng) if dialogue else None
        total = counted.get("inference_total") or None
        update = {
            "problem_id": problem.problem_id,
            "status": status,
            "score": float(success),
            "score_components_summary": None if grade is None else _summary(grade, rng),
            "reasoning_score": grade,
            "inference_failure_count": counted.get("inference_failure_count") if total else None,
            "inference_total": total,
            "execution_time": counted.get("execution_time"),
        }
        return Ruling(_scores_row(problem, envelope, scored, success, status), update)

    def score(self, problem: Problem, dialogue: list[dict[str, Any]]) -> Score:
        """Score the answer a dialogue ends with."""
        answer = recommended(dialogue)
        return score(answer, problem.reward, problem.raw_voucher, self._products, problem.category, title_similarity)


def recommended(dialogue: list[dict[str, Any]]) -> list[str]:
    """Ids of the last recommendation, as given."""
    given = ""
    for step in dialogue:
        for call in step["completion"]["message"].get("tool_call", []):
            if call["name"] == "recommend_product":
                given = call["parameters"]["product_ids"]
    return given.split(",")


def _status(envelope: dict[str, Any] | None, success: bool) -> str:
    if envelope is None or envelope["status"] == "TIMED_OUT":
        return "TIMED_OUT"
    if envelope["status"] == "SUCCESS" and not envelope["dialogue"]:
        return "TIMED_OUT"
    return "SUCCESS" if success else "FAILED"


def _scores_row(
    problem: Problem, envelope: dict[str, Any] | None, scored: Score | None, success: bool, status: str
) -> dict[str, Any]:
    ran = envelope or {}
    components = None
    if scored is not None:
        components = {"product": scored.product, "gt": scored.gt, "rule": scored.rule, **scored.fields}
        asked = {"shop": scored.shop, "budget": scored.budget}
        components |= {name: value for name, value in asked.items() if value is not None}
    return {
        "problem_id": problem.problem_id,
        "category": problem.category.value,
        "envelope_status": ran.get("status"),
        "score_dict": components,
        "score": float(success),
        "score_error": None,
        "success": success,
        "execution_time": ran.get("execution_time"),
        "inference_total": ran.get("inference_total"),
        "inference_failure_count": ran.get("inference_failure_count"),
        "error": ran.get("error"),
        "n_steps": len(ran.get("dialogue") or []),
        "validator_status": status,
    }


def _grade(harness: Harness, rng: random.Random) -> float | None:
    if rng.random() < _UNJUDGED:
        return None
    return rng.choices(GRADES, _WEIGHTS.get(harness, _DUMB))[0]


def _summary(grade: float, rng: random.Random) -> dict[str, str]:
    quality = "follows from the observations" if grade >= 0.5 else "is generic"
    return {
        "reasoning_explanation": f"The reasoning {quality}.",
        "reasoning_model": rng.choice(_JUDGE_MODELS),
    }
