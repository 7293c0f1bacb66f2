"""Snapshot ids, manifests and cards."""

import dataclasses
import hashlib

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from service.domain.rows.candidates import SelectionPolicy
from service.domain.rows.card import dataset_card
from service.domain.rows.manifest import (
    FileEntry,
    Manifest,
    Part,
    PartContents,
    PartSummary,
    build_manifest,
    document,
    id_of,
    snapshot_id,
)
from service.domain.rows.splits import Config, Split
from service.domain.rows.wanted import Wanted
from tests.domain.sample_rows import SPEC

TRAIN = Part(config=Config.AGENTIC, split=Split.TRAIN)
EVAL = Part(config=Config.AGENTIC, split=Split.EVAL)
LOOSE_TRAIN = Part(config=Config.UNATTRIBUTED, split=Split.TRAIN)
AUDIT = {
    "ok": True,
    "checks": [{"name": "shared_gold", "ok": True, "count": 0, "examples": []}],
    "figures": {"eval_rows": 1},
}


def contents(part: Part, *digests: str) -> PartContents:
    return PartContents(part=part, row_digests=digests)


@given(st.lists(st.text("0123456789abcdef", min_size=64, max_size=64), unique=True), st.randoms(use_true_random=False))
def test_the_id_does_not_depend_on_order(digests, shuffler):
    other = list(digests)
    shuffler.shuffle(other)
    first = [contents(TRAIN, *digests), contents(EVAL, "e")]
    assert snapshot_id(SPEC, first) == snapshot_id(SPEC, [contents(EVAL, "e"), contents(TRAIN, *other)])


def test_the_id_depends_on_every_row_its_split_and_the_spec():
    same = snapshot_id(SPEC, [contents(TRAIN, "a"), contents(EVAL, "b")])
    ids = {
        same,
        snapshot_id(SPEC, [contents(TRAIN, "b"), contents(EVAL, "a")]),
        snapshot_id(SPEC, [contents(TRAIN, "a", "b")]),
        snapshot_id(SPEC, [contents(LOOSE_TRAIN, "a"), contents(EVAL, "b")]),
        *(
            snapshot_id(dataclasses.replace(SPEC, **change), [contents(TRAIN, "a"), contents(EVAL, "b")])
            for change in (
                {"rules_digest": "x"},
                {"leak_plan_digest": "x"},
                {"pool_plan_digest": "x"},
                {"audit_digest": "x"},
                {"selection": SelectionPolicy(per_problem=7)},
                {"wanted": Wanted(configs=(Config.AGENTIC,))},
                {"benchmarks_digest": "x"},
                {"row_schema": "x"},
            )
        ),
    }
    assert len(ids) == 12  # none of the twelve ways to differ gives an id that another has
    # A part without rows is as good as no part.
    assert snapshot_id(SPEC, [contents(TRAIN, "a"), contents(EVAL, "b"), contents(LOOSE_TRAIN)]) == same


def test_part_digest_can_be_computed_by_hand():
    by_hand = hashlib.sha256(b"a\nb").hexdigest()
    assert contents(TRAIN, "b", "a").summary == PartSummary(
        config=Config.AGENTIC, split=Split.TRAIN, rows=2, digest=by_hand
    )


def test_a_manifest_gives_its_own_id_until_it_is_changed(manifest: Manifest):
    assert id_of(manifest.spec_digest, manifest.parts) == manifest.snapshot_id
    fewer = [part for part in manifest.parts if part.config is Config.AGENTIC]
    assert id_of(manifest.spec_digest, fewer) != manifest.snapshot_id
    assert id_of("x", manifest.parts) != manifest.snapshot_id


@pytest.fixture
def manifest() -> Manifest:
    parts = [contents(TRAIN, "a", "b"), contents(EVAL, "c"), contents(LOOSE_TRAIN, "d")]
    name = "data/agentic/train-00000.parquet"
    file = FileEntry(name=name, config=Config.AGENTIC, split=Split.TRAIN, format="parquet", rows=2, bytes=9, sha256="s")
    funnel = {"verdicts": {"kept": 4}, "rows": 4}
    return build_manifest(SPEC, parts, [file], funnel, AUDIT, ["race-b", "race-a", "race-b"])


def test_manifest_counts(manifest: Manifest):
    assert manifest.rows == {"train": 3, "eval": 1}
    assert [(part.config, part.split, part.rows) for part in manifest.parts] == [
        ("agentic", "eval", 1),
        ("agentic", "train", 2),
        ("unattributed", "train", 1),
    ]
    assert manifest.source_races == ("race-a", "race-b")
    assert manifest.audit == {"ok": True, "checks": [{"name": "shared_gold", "ok": True, "count": 0}]}


def test_documents_are_stable_and_read_back(manifest: Manifest):
    text = document(manifest)
    assert text.endswith(b"}\n")
    assert msgspec.json.decode(text, type=Manifest) == manifest
    assert document(msgspec.json.decode(text, type=Manifest)) == text


def test_card_front_matter(manifest: Manifest):
    _, front, body = dataset_card(manifest, AUDIT).split("---\n", 2)
    assert yaml.safe_load(front)["configs"] == [
        {
            "config_name": "agentic",
            "default": True,
            "data_files": [
                {"split": "eval", "path": "data/agentic/eval-*.parquet"},
                {"split": "train", "path": "data/agentic/train-*.parquet"},
            ],
        },
        {
            "config_name": "unattributed",
            "data_files": [{"split": "train", "path": "data/unattributed/train-*.parquet"}],
        },
    ]
    assert manifest.snapshot_id in body
    assert "| agentic | train | 2 |" in body
