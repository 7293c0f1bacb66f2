"""`/v1/rules`: the rule sets, and what two of them make of the corpus."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query

from service.api.context import Here, Reading
from service.api.rules_schemas import Change, Comparison, Funnel, GateCount, RuleSet, RuleSets
from service.domain.filter import rules
from service.domain.filter.rules import RULE_SETS
from service.errors import ErrorCode, SluiceError
from service.store.figures import funnels

router = APIRouter(tags=["corpus"])

Name = Annotated[str, Query(max_length=60, description=f"One of {', '.join(RULE_SETS)}.")]


@router.get("/v1/rules")
def listing(context: Here) -> RuleSets:
    """Every rule set that ships, field by field."""
    in_force = context.rules_digest
    found = [
        RuleSet(
            label=each.label,
            digest=each.digest,
            in_force=each.digest == in_force,
            fields=msgspec.to_builtins(each),
        )
        for each in RULE_SETS.values()
    ]
    return RuleSets(rule_sets=found)


@router.get("/v1/rules/compare")
def compare(session: Reading, before: Name, after: Name) -> Comparison:
    """What two rule sets make of the corpus, gate by gate, and where they differ. Counts alone."""
    a, b = _named(before), _named(after)
    return Comparison(
        before=_funnel(a, funnels.funnel(session, a)),
        after=_funnel(b, funnels.funnel(session, b)),
        changes=[Change.model_validate(change) for change in funnels.compare(session, a, b)],
    )


def _named(name: str) -> rules.RuleSet:
    if name not in RULE_SETS:
        raise SluiceError(ErrorCode.NOT_FOUND, f"rule sets are {', '.join(RULE_SETS)}", name=name)
    return RULE_SETS[name]


def _funnel(of: rules.RuleSet, found: funnels.Funnel) -> Funnel:
    return Funnel(
        rules=of.label,
        judged=found.judged,
        unjudged=found.unjudged,
        outcomes=found.outcomes,
        gates=[GateCount.model_validate(each) for each in found.gates],
    )
