"""`sluice plan`: what would be asked for next, why, and how far the harvest reaches. It asks for nothing itself."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from redis.exceptions import RedisError

from service.cli.joined import Joined, joined
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import note, print_json, print_table
from service.domain.harvest.chances import Hint
from service.domain.harvest.planning import Choice, plan
from service.domain.policy import DEFAULT_POLICIES
from service.queue.broker import open_broker, outstanding_ids
from service.queue.messages import Stage
from service.store.engine import reading
from service.store.harvest import planning
from service.store.harvest.planning import REQUESTS
from service.store.harvest.reach import Reach, reach

COLUMNS = ("item", "problem", "agent version", "listed", "requests", "reason")
NUMBERS = ("chance", "judged", "gain", "problem kept", "expected", "version seen on")
LISTED: dict[Hint, str] = {True: "success", False: "failure", None: "\N{EM DASH}"}

Explain = Annotated[bool, typer.Option("--explain", help="Show the numbers behind each choice.")]
Limit = Annotated[int, typer.Option("--limit", min=0, help="Show so many items.")]


def command(data_dir: DataDir = None, explain: Explain = False, limit: Limit = 20, as_json: AsJson = False) -> None:
    """Print what would be asked for next, and why."""
    policies, now = DEFAULT_POLICIES, datetime.now(UTC)
    with joined(settings(data_dir=data_dir)) as at:
        sent = _sent(at)
        with reading(at.engine) as session:
            known = planning.outlook(session, policies.rules.digest, now, sent)
            reached = reach(session, policies.rules.digest, policies.plan.sample_problems)
        is_throttled = bool(at.settings.requests_per_minute)
    most = limit * max(REQUESTS.values())
    choices = plan(known.candidates, known.in_flight, known.knowledge, policies.plan, most)[:limit]
    if as_json:
        print_json(_to_json(choices, reached, len(known.in_flight)))
        return
    if not is_throttled:
        note("requests to this source are not counted: it is asked for what has been due longest, not in this order")
    shown = [[*_columns(choice), *(_numbers(choice) if explain else ())] for choice in choices]
    print_table(f"Next, of what is due ({len(known.in_flight)} under way)", COLUMNS + NUMBERS * explain, shown)
    _print_reach(reached)


def _sent(at: Joined) -> Collection[int]:
    """What is in the queue; nothing, said so, where the queue does not answer."""
    assert at.settings.redis_url is not None
    broker = open_broker(at.settings.redis_url)
    try:
        return outstanding_ids(broker, Stage.INGEST)
    except RedisError:
        note("the queue does not answer: what was sent already is shown as if it were not")
        return ()
    finally:
        broker.close()


def _columns(choice: Choice) -> list[object]:
    item = choice.item
    return [item.ledger_id, item.problem_id, item.agent_version_id, LISTED[item.hint], item.cost, choice.reason]


def _numbers(choice: Choice) -> list[object]:
    return [
        f"{choice.chance.kept:.3f}",
        choice.chance.judged,
        f"{choice.gain:.6f}",
        choice.problem_kept,
        f"{choice.problem_expected:.2f}",
        choice.version_sampled,
    ]


def _print_reach(reached: Reach) -> None:
    problems = (reached.problems_kept, reached.problems_open, reached.problems_without)
    print_table("Problems", ("with a kept trajectory", "without, but items are open", "without either"), [problems])
    enough = DEFAULT_POLICIES.plan.sample_problems
    versions = (reached.versions_sampled, reached.versions_begun, reached.versions_unseen)
    print_table("Agent versions", (f"judged on {enough} problems", "on fewer", "on none"), [versions])


def _to_json(choices: Collection[Choice], reached: Reach, in_flight: int) -> dict[str, Any]:
    policy = DEFAULT_POLICIES.plan
    return {
        "policy": {"name": policy.name, "version": policy.version, "digest": policy.digest},
        "in_flight": in_flight,
        "reach": reached._asdict(),
        "choices": [
            {
                **choice.item._asdict(),
                "reason": choice.reason,
                "gain": choice.gain,
                "chance": choice.chance._asdict(),
                "parts": choice.parts._asdict(),
                "problem_kept": choice.problem_kept,
                "problem_expected": choice.problem_expected,
                "version_sampled": choice.version_sampled,
                "version_in_flight": choice.version_in_flight,
            }
            for choice in choices
        ],
    }
