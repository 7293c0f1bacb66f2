"""What a snapshot asks for: one reason at a time, and none for what it asks for."""

from typing import Any

import msgspec
import pytest

from service.domain.rows.splits import Config
from service.domain.rows.wanted import Offered, Unwanted, Wanted, unwanted

ROW = Offered(
    config=Config.AGENTIC,
    kind="legacy_shoppingbench",
    structural_class="agentic",
    category="shop",
    race_id="race-1",
    completed_on="2026-03-05",
    reward=0.8,
    reasoning_score=0.6,
    is_disputed=True,
)
SILENT = ROW._replace(race_id=None, completed_on=None, reward=None, reasoning_score=None)


def wanted(**told: Any) -> Wanted:
    return msgspec.convert(told, Wanted)


def test_anything_is_asked_for_unless_something_is_said() -> None:
    assert unwanted(ROW, Wanted()) is None
    assert unwanted(SILENT, Wanted()) is None


@pytest.mark.parametrize(
    ("fits", "does_not", "reason"),
    [
        ({"configs": ["agentic"]}, {"configs": ["unattributed"]}, Unwanted.CONFIG),
        ({"kinds": ["legacy_shoppingbench", "envpack"]}, {"kinds": ["envpack"]}, Unwanted.KIND),
        ({"classes": ["agentic"]}, {"classes": ["unknown"]}, Unwanted.CLASS),
        ({"categories": ["shop"]}, {"categories": ["product"]}, Unwanted.CATEGORY),
        ({"races": ["race-1"]}, {"races": ["race-2"]}, Unwanted.RACE),
        ({"since": "2026-03-05"}, {"since": "2026-03-06"}, Unwanted.DATE),
        ({"until": "2026-03-05"}, {"until": "2026-03-04"}, Unwanted.DATE),
        ({"min_reward": 0.8}, {"min_reward": 0.81}, Unwanted.REWARD),
        ({"min_reasoning": 0.6}, {"min_reasoning": 0.61}, Unwanted.REASONING),
        ({"unanimous": False}, {"unanimous": True}, Unwanted.DISPUTED),
    ],
)
def test_each_wish_has_a_reason_of_its_own(fits: dict, does_not: dict, reason: Unwanted) -> None:
    assert unwanted(ROW, wanted(**fits)) is None
    assert unwanted(ROW, wanted(**does_not)) is reason


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"races": ["race-1"]}, Unwanted.RACE),
        ({"since": "2000-01-01"}, Unwanted.DATE),
        ({"until": "2099-01-01"}, Unwanted.DATE),
        ({"min_reward": 0.0}, Unwanted.REWARD),
        ({"min_reasoning": 0.0}, Unwanted.REASONING),
    ],
)
def test_what_nobody_says_meets_no_wish(told: dict, reason: Unwanted) -> None:
    assert unwanted(SILENT, wanted(**told)) is reason
