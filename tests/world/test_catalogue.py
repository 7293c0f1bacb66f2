"""A generated catalogue is the same for a seed, tells its products apart only by view, and reads back from a file."""

import gzip
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from service.errors import ErrorCode, SluiceError
from service.world.catalogue import Catalogue, generate_catalogue, load_catalogue
from service.world.search import find_row, words


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return generate_catalogue(15, families=80)


def test_a_seed_gives_one_catalogue_and_another_seed_another(catalogue: Catalogue) -> None:
    assert generate_catalogue(15, families=80) == catalogue
    assert not set(generate_catalogue(16, families=80).by_id) & set(catalogue.by_id)


def test_siblings_share_every_indexed_word_and_their_title(catalogue: Catalogue) -> None:
    contents = {document.id: document.contents for document in catalogue.documents}
    for family in catalogue.families:
        assert 3 <= len(family) <= 5
        assert len({tuple(sorted(words(contents[member]))) for member in family}) == 1
        assert len({catalogue.by_id[member].title for member in family}) == 1


def test_siblings_differ_in_what_a_view_shows_or_in_price(catalogue: Catalogue) -> None:
    for family in catalogue.families:
        members = [catalogue.by_id[member] for member in family]
        details = [msgspec.json.encode((member.sku_options, member.attributes)) for member in members]
        # Four ways to combine the options; a fifth member repeats one of them at three times the price.
        assert len(set(details)) == (4 if len(members) == 5 else len(members) - (max(Counter(details).values()) - 1))
        repeated = [detail for detail, count in Counter(details).items() if count > 1]
        for detail in repeated:
            low, high = sorted(member.price for member, own in zip(members, details, strict=True) if own == detail)
            assert high > 1.9 * low  # 3 * 0.8 / 1.25 = 1.92


def test_rows_show_neither_options_nor_attributes(catalogue: Catalogue) -> None:
    shown = set(find_row(catalogue.documents[0].product))
    assert shown == {"price", "product_id", "service", "shop_id", "sold_count", "title"}


def test_ids_are_sorted_unique_and_say_nothing_about_the_family(catalogue: Catalogue) -> None:
    ids = [document.id for document in catalogue.documents]
    assert ids == sorted(set(ids))
    # If ids followed generation order, most families would be runs of neighbours.
    place = {product_id: index for index, product_id in enumerate(ids)}
    spans = [place[family[-1]] - place[family[0]] for family in catalogue.families]
    assert sum(spans) / len(spans) > len(ids) / 4


def test_a_catalogue_file_reads_back(tmp_path: Path, catalogue: Catalogue) -> None:
    lines = b"\n".join(msgspec.json.encode(document) for document in reversed(catalogue.documents))
    plain, packed = tmp_path / "products.jsonl", tmp_path / "products.jsonl.gz"
    plain.write_bytes(lines)
    packed.write_bytes(gzip.compress(lines))
    assert load_catalogue(plain).documents == catalogue.documents
    assert load_catalogue(packed).by_id == catalogue.by_id


def test_what_is_no_catalogue_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(SluiceError) as fault:
        load_catalogue(tmp_path / "x.jsonl")
    assert fault.value.code is ErrorCode.BAD_INPUT
    with pytest.raises(SluiceError) as fault:
        load_catalogue(tmp_path / "absent.jsonl")
    assert fault.value.code is ErrorCode.NOT_FOUND


@pytest.mark.shared
def test_the_recorded_catalogue_loads_whole(shared_data: Path) -> None:
    recorded = load_catalogue(shared_data / "catalog" / "products.jsonl.gz")
    assert len(recorded.documents) == 1818
    assert all(document.id == document.product.product_id for document in recorded.documents)
