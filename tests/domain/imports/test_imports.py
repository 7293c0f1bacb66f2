"""Rows of imported files: what is stored of each format, what is refused and why, and what a row is known by."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.attribution.evidence import Evidence
from service.domain.filter.structure import Reason
from service.domain.imports.formats import EXCERPT_CHARACTERS, Format, Refused, RowFault, excerpt, format_of, is_newer
from service.domain.imports.identity import Naming
from service.domain.imports.rows import DEEPEST_ROW, LONGEST_ROW_BYTES, Imported, read_row
from service.domain.leaks.leakage import LEAK_1
from service.domain.leaks.problems import FamilyReport, PublishedProblem, describe
from service.domain.rows.prompts import tool_set
from service.domain.rows.splits import Config, row_config
from service.domain.trajectory import LARGEST_PAYLOAD_BYTES, MOST_PARTS, ExecutionKind, parse
from tests.domain.dialogues import agentic_run
from tests.domain.sample_rows import to_a_row

PROBLEM = "4b0ec436-6595-502e-bf33-1d976750fe7b"
DIALOGUE = json.loads(agentic_run().payload())
ENVELOPE = {
    "problem_id": PROBLEM,
    "status": "SUCCESS",
    "execution_time": 1.5,
    "inference_failure_count": 0,
    "inference_total": 4,
    "error": None,
    "dialogue": DIALOGUE,
}
ATIF = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "teacher", "version": "2"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "A red  bag"},
        {"step_id": 2, "source": "agent", "message": "No."},
    ],
}
MESSAGES = {
    "messages": [{"role": "user", "content": "a red bag"}, {"role": "assistant", "content": "No."}],
    "tools": [],
}
ROWS: dict[Format, dict[str, Any]] = {Format.ENVELOPE: ENVELOPE, Format.ATIF: ATIF, Format.MESSAGES: MESSAGES}
NOBODY = Naming()


def read(row: object, wanted: Format | None = None, naming: Naming = NOBODY) -> Imported:
    found = read_row(json.dumps(row).encode(), wanted, naming)
    assert isinstance(found, Imported), found
    return found


def fault(row: object, wanted: Format | None = None) -> RowFault:
    line = row if isinstance(row, bytes) else json.dumps(row).encode()
    found = read_row(line, wanted, NOBODY)
    assert isinstance(found, Refused), found
    return found.fault


@pytest.mark.parametrize("format_", Format)
def test_a_row_shows_its_format(format_: Format) -> None:
    assert format_of(ROWS[format_]) is format_
    assert read(ROWS[format_]).format is read(ROWS[format_], format_).format is format_
    for other in set(Format) - {format_}:
        assert fault(ROWS[format_], other) is RowFault.OTHER_FORMAT


def test_the_dialogue_is_kept_byte_for_byte() -> None:
    spelled = json.dumps(DIALOGUE, indent=1)
    line = json.dumps({**ENVELOPE, "dialogue": None}).replace('"dialogue": null', f'"dialogue": {spelled}')
    found = read_row(line.encode(), None, NOBODY)
    assert isinstance(found, Imported)
    assert found.payload == spelled.encode()
    assert read({**ENVELOPE, "dialogue": None}).payload == b"[]"
    odd = '[{"extra_info": {"step": NaN}}]'  # as Python writes it: no strict reader takes this, and it is to be seen
    bare = read_row(json.dumps({"dialogue": 0, **ENVELOPE}).replace(json.dumps(DIALOGUE), odd).encode(), None, NOBODY)
    assert isinstance(bare, Imported)
    assert bare.payload == odd.encode()


@pytest.mark.parametrize(
    ("fields", "success"),
    [
        ({}, None),  # SUCCESS says that the agent returned
        ({"success": True}, True),
        ({"success": False}, False),
        ({"success": "yes"}, None),
        ({"score": 1.0}, True),
        ({"score": 0.99}, False),
        ({"score": True}, None),
        ({"success": True, "score": 0.0}, True),
        ({"status": "FAILED"}, False),
        ({"status": "TIMED_OUT"}, False),
        ({"status": "ODD"}, None),
    ],
)
def test_success_of_an_envelope_is_what_it_says(fields: dict[str, Any], success: bool | None) -> None:
    judgement = read({**ENVELOPE, **fields}).judgement
    assert judgement.success is success
    assert judgement.status is None  # the filter would read a bare SUCCESS as a success
    assert (judgement.inference_total, judgement.inference_failure_count, judgement.execution_seconds) == (4, 0, 1.5)


@pytest.mark.parametrize("base", [ATIF, MESSAGES])
def test_success_of_other_rows_is_what_they_say(base: dict[str, Any]) -> None:
    assert read({**base, "reward": 1.0, "score": 1.0, "outcome": "completed"}).judgement.success is None
    assert read({**base, "success": True}).judgement.success is True
    assert read({**base, "passed": False}).judgement.success is False
    assert read({**base, "extra": {"success": True}, "metadata": {"success": False}}).judgement.success is True
    told = read({**base, "metadata": {"aggregate_reward": 0.5, "outcome": "x" * 999, "reasoning_score": 0.7}}).judgement
    assert (told.paid_reward, told.outcome, told.reasoning_score) == (0.5, "x" * 200, 0.7)


def test_a_hub_row_holds_its_document_as_text() -> None:
    row = {
        "atif_json": json.dumps(ATIF),
        "aggregate_reward": 0.5,
        "success": True,
        "steps": 2,
        "schema_version": "ATIF-v1.7",
    }
    found = read(row)
    assert found.row_sha256 == read(ATIF).row_sha256
    assert parse(found.payload, ExecutionKind.ATIF).query == "A red  bag"
    assert (found.judgement.success, found.judgement.paid_reward) == (True, 0.5)
    assert fault({**row, "atif_json": "{"}) is RowFault.NO_TRAJECTORY


@given(st.sampled_from(list(Format)), st.randoms(), st.sampled_from([None, 2]), st.booleans())
def test_spelling_makes_no_difference(format_: Format, random: Any, indent: int | None, ascii_only: bool) -> None:
    row = ROWS[format_]
    names = list(row)
    random.shuffle(names)
    spelled = json.dumps({name: row[name] for name in names}, indent=indent, ensure_ascii=ascii_only)
    found = read_row(f"  {spelled}\r".encode(), None, NOBODY)
    assert isinstance(found, Imported)
    assert found.eval_run_id == read(row).eval_run_id
    assert found.problem_id == read(row).problem_id


def test_content_makes_the_run_and_nothing_else() -> None:
    assert read(ATIF).eval_run_id == read(ATIF, naming=Naming("x", "y")).eval_run_id
    assert read({**ENVELOPE, "execution_time": 2.0}).eval_run_id != read(ENVELOPE).eval_run_id
    same_words = {**MESSAGES, "metadata": {"split": "train"}}
    assert read(same_words).eval_run_id != read(MESSAGES).eval_run_id


def test_a_row_may_claim_no_id_but_its_problems() -> None:
    claims = {
        "eval_run_id": "run-1",
        "trajectory_id": "1",
        "episode_result_id": "e",
        "race_id": "r",
        "miner_hotkey": "5H",
    }
    for row in ROWS.values():
        found = read({**row, **claims})
        assert found.eval_run_id.startswith("import:")
        assert found.agent.agent_version_id.startswith("import:")
        assert found.agent.family.startswith("import:")


@pytest.mark.parametrize(
    ("stated", "is_taken"),
    [
        (PROBLEM, True),
        ("epoch-1/task-7", True),
        ("7", False),
        ("task-7", False),
        (PROBLEM.upper(), False),
        ("a b/c", False),
        ("x/" + "y" * 600, False),
        ("", False),
        (7, False),
    ],
)
def test_a_problem_id_counts_in_sn15s_form_alone(stated: object, is_taken: bool) -> None:
    derived = read(MESSAGES).problem_id
    assert derived.startswith("import:")
    found = read({**MESSAGES, "metadata": {"problem_id": stated}}).problem_id
    assert found == (stated if is_taken else derived)


def test_without_an_id_the_query_is_the_problem() -> None:
    # "A red  bag" and "a red bag": case, width and white space make no other problem; words do.
    assert read(ATIF).problem_id == read(MESSAGES).problem_id
    other = {"messages": [{"role": "user", "content": "a red bag under 100"}, MESSAGES["messages"][1]]}
    assert read(other).problem_id != read(MESSAGES).problem_id
    assert fault({"messages": [MESSAGES["messages"][1]]}) is RowFault.NO_PROBLEM


def test_who_made_it() -> None:
    assert read(ATIF).agent[1:] == ("teacher@2", "import:teacher", False)
    assert read({**MESSAGES, "model": "qwen"}).agent[1:] == ("qwen", "import:qwen", False)
    assert read(ENVELOPE).agent[1:] == read(MESSAGES).agent[1:] == ("unnamed", "import:unnamed", False)
    assert read(ATIF, naming=Naming("mine")).agent[1:] == ("mine", "import:mine", True)
    assert read(ATIF, naming=Naming(None, "5Hotkey")).agent[1:] == ("teacher@2", "5Hotkey", True)
    vouched = {read(ATIF, naming=naming).agent.agent_version_id for naming in (NOBODY, Naming("teacher@2"))}
    assert len(vouched) == 2  # the file's own word and the importer's are two things


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"{", RowFault.NOT_JSON),
        (b"\x00\xff", RowFault.NOT_JSON),
        (b"[]", RowFault.NOT_AN_OBJECT),
        ({}, RowFault.UNKNOWN_FORMAT),
        ({**ATIF, "schema_version": "ATIF-v2.0"}, RowFault.UNKNOWN_VERSION),
        ({**ATIF, "schema_version": None}, RowFault.UNKNOWN_VERSION),
        ({**ATIF, "steps": {}}, RowFault.NO_TRAJECTORY),
        ({**ATIF, "steps": None}, RowFault.NO_TRAJECTORY),
        ({**ENVELOPE, "dialogue": {}}, RowFault.NO_TRAJECTORY),
        ({**MESSAGES, "messages": "x"}, RowFault.NO_TRAJECTORY),
        ({**ENVELOPE, "problem_id": None, "dialogue": None}, RowFault.NO_PROBLEM),
        ({**ENVELOPE, "dialogue": [{}] * (MOST_PARTS + 1)}, RowFault.TOO_MANY_STEPS),
        ({**MESSAGES, "messages": MESSAGES["messages"] * (MOST_PARTS + 1)}, RowFault.TOO_MANY_STEPS),
        ({**ATIF, "steps": ATIF["steps"] * (MOST_PARTS + 1)}, RowFault.TOO_MANY_STEPS),
        ({**ENVELOPE, "dialogue": ["x" * LARGEST_PAYLOAD_BYTES]}, RowFault.TOO_LONG),
        (b" " * (LONGEST_ROW_BYTES + 1), RowFault.TOO_LONG),
        (b'{"messages":' + b"[" * DEEPEST_ROW + b"]" * DEEPEST_ROW + b"}", RowFault.TOO_DEEP),
        (b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}", RowFault.NOT_JSON),
    ],
    ids=[*map(str, range(18))],
)
def test_refusals(row: object, reason: RowFault) -> None:
    assert fault(row) is reason


def test_newer_minor_versions_are_read_and_known_to_be_newer() -> None:
    assert read({**ATIF, "schema_version": "ATIF-v1.9"}).schema_version == "ATIF-v1.9"
    assert is_newer("ATIF-v1.9")
    assert not any(is_newer(version) for version in ("ATIF-v1.8", "ATIF-v1.0", "ATIF-v2.0", None))


@given(st.binary(max_size=300))
def test_an_excerpt_is_short_and_printable(line: bytes) -> None:
    shown = excerpt(line)
    assert len(shown) <= EXCERPT_CHARACTERS
    assert shown.isprintable()


def chat(*turns: dict[str, Any], **fields: Any) -> Imported:
    return read({"messages": [{"role": "user", "content": "a red bag"}, *turns], "success": True, **fields})


def use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [{"id": name, "name": name, "arguments": arguments}]}


def answered(name: str, result: Any, **arguments: Any) -> list[dict[str, Any]]:
    return [use(name, **arguments), {"role": "tool", "tool_call_id": name, "content": json.dumps(result)}]


FOUND = answered("find_product", [{"product_id": "77"}], q="bag")
ANSWER = answered("recommend_product", "ok", product_ids="77")


@pytest.mark.parametrize(
    ("turns", "fields", "reason"),
    [
        ([*FOUND, *answered("recommend_product", "ok", product_ids="77"), use("terminate")], {}, Reason.KEPT),
        ([*FOUND, use("recommend_product", product_ids="77")], {}, Reason.KEPT),
        ([*FOUND, use("find_product", q="bag")], {}, Reason.UNPAIRED_CALL),
        ([use("terminate"), *FOUND], {}, Reason.UNPAIRED_CALL),
        ([*FOUND, use("recommend_product", product_ids="78")], {}, Reason.UNGROUNDED_ID),
        ([*FOUND, use("recommend_product", product_ids="77")], {"success": False}, Reason.NOT_SUCCESSFUL),
        ([*FOUND, use("recommend_product", product_ids="77")], {"success": None}, Reason.UNJUDGED),
        ([*FOUND * 3, *ANSWER], {}, Reason.LOOP),
        ([*FOUND, {"role": "assistant", "content": ""}, *ANSWER], {}, Reason.DEFECTIVE_FORMAT),
        ([*FOUND], {}, Reason.RECOMMEND_COUNT),
        ([*FOUND, *ANSWER, *FOUND], {}, Reason.THINK_THEN_STOP),
        ([*FOUND, *ANSWER, {"role": "assistant", "content": "There you are."}], {}, Reason.KEPT),
    ],
    ids=[*map(str, range(12))],
)
def test_gates_of_imported_formats(turns: list[dict[str, Any]], fields: dict[str, Any], reason: Reason) -> None:
    found = chat(*turns, **fields)
    verdict = to_a_row(found.payload, found.kind, Evidence(judgement=found.judgement))
    assert verdict.reason is reason
    expected = {Reason.KEPT: Config.UNATTRIBUTED, Reason.NOT_SUCCESSFUL: Config.NEGATIVE}
    assert row_config(verdict) is expected.get(reason, Config.REJECTED)


def test_a_row_offers_published_tools_where_they_fit_and_no_others() -> None:
    calls = parse(chat(*FOUND).payload, ExecutionKind.MESSAGES).tool_calls
    offered = tool_set(ExecutionKind.MESSAGES, calls)
    assert [tool["function"]["name"] for tool in offered.schemas] == ["find_product"]
    assert offered.source == "published"
    odd = parse(chat(*answered("find_product", [], query="bag")).payload, ExecutionKind.MESSAGES).tool_calls
    assert tool_set(ExecutionKind.MESSAGES, odd).source == "inferred"


def test_hearsay_speaks_where_no_one_else_does_and_confirms_nothing() -> None:
    problem = PublishedProblem("p", "legacy_shoppingbench", "product", None, None)
    hearsay = [FamilyReport(f"import:{name}", "hearsay", ("77", "78"), True, is_hearsay=True) for name in "abc"]
    alone = describe(problem, hearsay, LEAK_1)
    assert (alone.query, alone.query_confirmed, alone.winner_ids) == ("hearsay", False, frozenset())
    assert alone.suspect_winner_ids == {"77"}  # a product problem scores one id
    heard = [FamilyReport(name, "heard", ("77",), True) for name in ("f", "g")]
    both = describe(problem, [*hearsay, *heard], LEAK_1)
    assert (both.query, both.query_confirmed, both.winner_ids) == ("heard", True, {"77"})
    assert both.suspect_winner_ids == frozenset()
    one = describe(problem, [*hearsay, heard[0]], LEAK_1)
    assert (one.query, one.query_confirmed, one.suspect_winner_ids) == ("heard", False, {"77"})
