"""The card and the Croissant document say what manifest and audit say, and nothing in them breaks their form."""

import json

from service.domain.rows.card import ABOUT, dataset_card
from service.domain.rows.croissant import croissant
from service.domain.rows.formats.kto import balance
from service.domain.rows.manifest import FileEntry, Manifest, build_manifest
from service.domain.rows.records import Row
from service.domain.rows.splits import Config, Split
from tests.domain.rows.test_manifest import AUDIT, EVAL, TRAIN, contents
from tests.domain.sample_rows import SPEC

FUNNEL = {
    "trajectories": 10,
    "verdicts": {"kept": 6, "loop": 3, "empty": 1},
    "pools": {"train": 4, "eval": 2},
    "selection": {"duplicate": 3},
    "rows": 3,
    "negatives": {"rows": 1, "selection": {}},
    "rejected_rows": 5,
}
FIGURES = {
    "families": {"train": 4, "eval": 3},
    "largest_family_share": {"train": 0.4, "eval": 0.5},
    "eval_known_by": {"gold": 1, "winner": 0, "text": 0},
    "benchmarks": {
        "bench": {
            "items": 9,
            "excluded_from_train": True,
            "problems": {"train": {"gold_id": 0}, "eval": {"gold_id": 2, "near_query": 1}},
        }
    },
}


def manifest() -> Manifest:
    names = {"parquet": "data/agentic/train-00000.parquet", "kto": "formats/kto/agentic/train-00000.jsonl.zst"}
    files = [
        FileEntry(name=name, config=Config.AGENTIC, split=Split.TRAIN, format=form, rows=2, bytes=9, sha256=form * 8)
        for form, name in names.items()
    ]
    parts = [contents(TRAIN, "a", "b"), contents(EVAL, "c")]
    return build_manifest(SPEC, parts, files, FUNNEL, AUDIT, ["race-1"], kto=balance(8, 2))


def test_the_card_tells_rows_reasons_audit_and_licence() -> None:
    card = dataset_card(manifest(), {"figures": FIGURES})
    for told in (
        "| agentic | train | 2 |",
        "| all trajectories | 10 |",
        "| verdict: loop | 3 |",
        "| kept, left out: duplicate | 3 |",
        "| rows to be followed | 3 |",
        "| failures given as `negative` | 1 |",
        "| of train, given as `rejected` | 5 |",
        "from\n1 race. ",
        "| kto | 1 | 2 |",
        "8 desirable, 2 undesirable",
        "Licence: unknown",
        "audit passed",
        "| shared_gold | 0 |",
        "| gold | 1 |",
        "4 in train, the largest has 40%; 3 in eval, the largest has 50%",
        "| bench | 9 | yes | 0 | 2 by gold_id, 1 by near_query |",
    ):
        assert told in card, told
    assert "{" not in card


def test_the_card_says_so_where_there_is_no_benchmark_and_no_label() -> None:
    bare = build_manifest(SPEC, [contents(TRAIN, "a")], [], {}, AUDIT, [])
    card = dataset_card(bare, {"figures": {}})
    assert "No public benchmark was registered" in card
    assert "KTO labels" not in card


def test_every_configuration_is_explained() -> None:
    assert set(ABOUT) == set(Config)


def test_croissant_names_every_file_with_its_digest_and_every_plain_column() -> None:
    made = manifest()
    told = json.loads(json.dumps(croissant(made)))
    assert told["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert {one["contentUrl"]: one["sha256"] for one in told["distribution"]} == {
        entry.name: entry.sha256 for entry in made.files
    }
    (records,) = told["recordSet"]
    assert {field["name"] for field in records["field"]} == set(Row.__struct_fields__) - {"messages"}
    ids = [field["@id"] for field in records["field"]] + [one["@id"] for one in told["distribution"]]
    assert len(ids) == len(set(ids))
