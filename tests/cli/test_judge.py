"""`sluice judge` and `sluice rules`: a second rule set beside the first, funnels that add up, differences by row."""

import json
import subprocess
import sys

from sqlalchemy import func, select

from service.domain.filter.rules import PAPER_2606_10064, RULE_SETS, SLUICE_1
from service.store.engine import reading
from service.store.figures import funnels
from service.store.models import Verdict
from tests.api.conftest import Service

PAPER, OURS = PAPER_2606_10064.name, SLUICE_1.name


def sluice(*arguments: str, service: Service) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from service.cli import main; main()", *arguments]
    return subprocess.run(
        command, env=service.settings.environment(), capture_output=True, text=True, timeout=120, check=False
    )


def told(*arguments: str, service: Service) -> dict:
    ran = sluice(*arguments, "--json", service=service)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def verdicts_of(service: Service, digest: str) -> int:
    with reading(service.engine) as session:
        return session.scalar(select(func.count()).where(Verdict.rules_digest == digest)) or 0


def test_another_rule_set_judges_everything_beside_the_first_and_once(service: Service, client) -> None:
    before = verdicts_of(service, SLUICE_1.digest)
    first = told("judge", "--rules", PAPER, "--processes", "2", service=service)
    # Of the nine trajectories of this corpus one has no verdict of the first set.
    assert (first["judged"], before) == (9, 8)
    assert told("judge", "--rules", PAPER, service=service)["judged"] == 0
    assert verdicts_of(service, SLUICE_1.digest) == before
    assert verdicts_of(service, PAPER_2606_10064.digest) == 9
    ours, paper = first["funnels"]
    assert (ours["rules"], paper["rules"]) == (SLUICE_1.label, PAPER_2606_10064.label)
    assert (ours["unjudged"], paper["unjudged"]) == (1, 0)
    for found in (ours, paper):
        # What a gate fails does not come to the next, and what passes all is kept.
        for one, following in zip(found["gates"], found["gates"][1:], strict=False):
            assert one["reached"] - one["failed"] == following["reached"]
        last = found["gates"][-1]
        assert last["reached"] - last["failed"] == found["outcomes"].get("kept", 0)
    # Each payload holds a bare NaN, which both refuse to read; the corpus was stored with verdicts of its own.
    assert paper["gates"][0] == {"gate": "readable", "reached": 9, "failed": 9}
    assert sum(change["rows"] for change in first["changes"]) == 8
    compared = told("rules", "compare", OURS, PAPER, "--rows", "3", service=service)
    assert compared["changes"] == first["changes"]
    assert [row["after"] for row in compared["rows"]] == ["bare_nan"] * 3
    over_http = client.get("/v1/rules/compare", params={"before": OURS, "after": PAPER}).json()
    assert over_http["changes"] == first["changes"]
    assert over_http["after"]["gates"] == paper["gates"]


def test_the_differences_of_two_rule_sets_are_told_field_by_field(service: Service, client) -> None:
    changed = told("rules", "diff", OURS, PAPER, service=service)
    assert changed["unjudged_reasoning"] == {"before": True, "after": False}
    assert "token_budget" not in changed
    assert told("rules", "diff", OURS, OURS, service=service) == {}
    ran = sluice("rules", "diff", OURS, PAPER, service=service)
    assert "keep_negatives" in ran.stdout
    listed = client.get("/v1/rules").json()["rule_sets"]
    assert [each["digest"] for each in listed] == [each.digest for each in RULE_SETS.values()]
    assert [each["in_force"] for each in listed] == [True, False]
    assert sluice("rules", "show", PAPER, service=service).returncode == 0
    assert client.get("/v1/rules/compare", params={"before": "mine", "after": OURS}).status_code == 404


def test_a_rule_set_that_is_none_is_one_sentence(service: Service) -> None:
    for arguments in (("judge", "--rules", "mine"), ("rules", "show", "mine"), ("rules", "diff", OURS, "mine")):
        ran = sluice(*arguments, service=service)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr == f"sluice: rule sets are {OURS}, {PAPER}; not 'mine'\n"


def test_every_row_is_counted_at_one_gate_of_every_set(service: Service) -> None:
    with reading(service.engine) as session:
        for rules in RULE_SETS.values():
            found = funnels.funnel(session, rules)
            failed = sum(each.failed for each in found.gates)
            assert failed + found.outcomes.get("kept", 0) == found.judged
