"""Files to import, made from a generated archive: the same runs as envelopes, ATIF documents and chat rows."""

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def by_agent(archive: Path, race: str = "race-1") -> dict[str, list[Row]]:
    """Envelopes of a race with a dialogue in them, with `success` as someone who joined the scores would write it."""
    found = {}
    for output in sorted((archive / race).glob("*/output.jsonl.gz")):
        updates = rows_of(output.with_name("progress_updates.jsonl.gz"))
        passed = {row["problem_id"]: row["score"] == 1.0 for row in updates}
        rows = [{**row, "success": passed.get(row["problem_id"])} for row in rows_of(output) if row["dialogue"]]
        found[output.parent.name] = rows
    return found


def envelopes(archive: Path) -> list[Row]:
    """Those of all agents."""
    return [row for rows in by_agent(archive).values() for row in rows]


def rows_of(path: Path) -> list[Row]:
    """Rows of a recorded file."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def lines(rows: Iterable[Row]) -> bytes:
    """Rows as JSONL."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def as_atif(envelope: Row, version: str = "ATIF-v1.7", agent: str = "teacher") -> Row:
    """The dialogue of an envelope as an ATIF document."""
    steps: list[Row] = [{"step_id": 1, "source": "user", "message": query_of(envelope)}]
    for number, (message, calls) in enumerate(_turns(envelope), start=2):
        steps.append(
            {
                "step_id": number,
                "source": "agent",
                "message": message.get("response", ""),
                "reasoning_content": message.get("think"),
                "tool_calls": [
                    {
                        "tool_call_id": f"c{number}-{place}",
                        "function_name": call["name"],
                        "arguments": call["parameters"],
                    }
                    for place, call in enumerate(calls)
                ],
                "observation": {
                    "results": [
                        {"source_call_id": f"c{number}-{place}", "content": json.dumps(call["result"])}
                        for place, call in enumerate(calls)
                    ]
                },
            }
        )
    return {
        "schema_version": version,
        "session_id": f"session-{envelope['problem_id']}",
        "agent": {"name": agent, "version": "1"},
        "steps": steps,
        "extra": {"problem_id": envelope["problem_id"], "success": envelope.get("success")},
    }


def as_messages(envelope: Row) -> Row:
    """The dialogue of an envelope as a chat row."""
    messages: list[Row] = [
        {"role": "system", "content": "You are Teacher."},
        {"role": "user", "content": query_of(envelope)},
    ]
    for number, (message, calls) in enumerate(_turns(envelope)):
        uses = [
            {
                "id": f"c{number}-{place}",
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["parameters"])},
            }
            for place, call in enumerate(calls)
        ]
        think = f"<think>\n{message['think']}\n</think>\n\n" if message.get("think") else ""
        messages.append({"role": "assistant", "content": think + message.get("response", ""), "tool_calls": uses})
        messages += [
            {"role": "tool", "tool_call_id": use["id"], "content": json.dumps(call["result"])}
            for use, call in zip(uses, calls, strict=True)
        ]
    return {"messages": messages, "tools": "[]", "success": envelope.get("success")}


def query_of(envelope: Row) -> str:
    """The query that a dialogue reports."""
    query: str = envelope["dialogue"][0]["extra_info"]["query"]
    return query


def _turns(envelope: Row) -> Iterator[tuple[Row, list[Row]]]:
    for step in envelope["dialogue"]:
        message = step["completion"]["message"]
        yield message, message.get("tool_call", [])
