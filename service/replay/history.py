"""The tallies of the public API: leaderboard, trajectories per day. Counted from the archive on request."""

from collections import Counter
from datetime import datetime

from service.replay.recorded import Archive, LegacyItem, Suite
from service.replay.shapes import Json, moment, qualifying_score, suite


def leaderboard(archive: Archive, board: Suite, limit: int, offset: int) -> Json:
    """LeaderboardResponse: every agent version with a qualifying score on the suite, best first."""
    scored = [
        (score, agent)
        for agent in archive.agents.values()
        if agent.suite_id == board.suite_id and (score := qualifying_score(archive, agent)) is not None
    ]
    scored.sort(key=lambda pair: (-pair[0], pair[1].agent_version_id))
    entries = [
        {
            "rank": rank,
            "agent_version_id": agent.agent_version_id,
            "agent_name": agent.agent_name,
            "miner_hotkey": agent.miner_hotkey,
            "version_number": agent.version_number,
            "final_score": score,
            "is_discarded": agent.is_discarded,
            "is_current_top": rank == 1,
        }
        for rank, (score, agent) in enumerate(scored, 1)
    ]
    return {
        "total": len(entries),
        "limit": limit,
        "offset": offset,
        "suite": suite(board),
        "entries": entries[offset : offset + limit],
        "unique_miners": len({agent.miner_hotkey for _, agent in scored}),
    }


def trajectories(archive: Archive, now: datetime) -> Json:
    """TrajectoryHistoryResponse: distinct (agent version, problem) pairs by the day their run ended."""
    first_seen: dict[tuple[str, str], str] = {}
    for run in sorted(archive.runs.values(), key=lambda run: run.completed_at):
        for item in run.items:
            name = item.problem_id if isinstance(item, LegacyItem) else item.task_id
            first_seen.setdefault((run.agent_version_id, name), run.completed_at.date().isoformat())
    series: list[Json] = []
    cumulative = 0
    for day, distinct in sorted(Counter(first_seen.values()).items()):
        cumulative += distinct
        series.append({"date": day, "distinct": distinct, "cumulative": cumulative})
    last_week = [int(day["distinct"]) for day in series[-7:]]
    return {
        "series": series,
        "total": cumulative,
        "daily_rate": last_week[-1] if last_week else 0,
        "weekly_rate": sum(last_week),
        "updated_at": moment(now),
    }
