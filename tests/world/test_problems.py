"""Problems can be solved, by their gold alone; and few give each other away, only where they are meant to."""

import itertools
import math
import re
from collections import Counter

import pytest

from service.domain.sn15.scoring import Category, meets, parse_targets, price_after, score
from service.world.catalogue import Catalogue, generate_catalogue
from service.world.phrasing import voucher_rules
from service.world.problems import Problem, Relation, generate_problems, raw_problem, title_similarity
from service.world.search import Search

COUNT = 120


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return generate_catalogue(15, families=330)


@pytest.fixture(scope="module")
def problems(catalogue: Catalogue) -> list[Problem]:
    return generate_problems(catalogue, 15, COUNT)


def test_a_seed_gives_the_same_problems(catalogue: Catalogue, problems: list[Problem]) -> None:
    assert generate_problems(catalogue, 15, COUNT) == problems
    assert generate_problems(catalogue, 16, COUNT) != problems
    assert len({problem.problem_id for problem in problems}) == COUNT


def test_the_gold_and_nothing_else_in_the_catalogue_meets_each_target(
    catalogue: Catalogue, problems: list[Problem]
) -> None:
    products = catalogue.raw()
    for problem in problems[::3]:
        for target in problem.targets:
            matching = [key for key, product in products.items() if meets(product, target, title_similarity)]
            assert matching == [target.product_id]


def test_the_gold_answer_scores_as_a_success_and_one_wrong_product_does_not(
    catalogue: Catalogue, problems: list[Problem]
) -> None:
    products = catalogue.raw()
    siblings = {member: family for family in catalogue.families for member in family}
    for problem in problems:
        raw = raw_problem(problem, "", "")
        wrong = next(member for member in siblings[problem.gold[0]] if member not in problem.gold)
        for first, success in ((problem.gold[0], True), (wrong, False)):
            answer = (first, *problem.gold[1:])
            judged = score(answer, raw["reward"], raw.get("voucher"), products, problem.category, title_similarity)
            assert judged.success is success


def test_taking_the_first_fitting_row_is_no_strategy(catalogue: Catalogue, problems: list[Problem]) -> None:
    search = Search(catalogue)
    ranks = Counter()
    for problem in problems:
        for target in problem.targets:
            rows = search.find_product(target.title[0])
            alike = [row["product_id"] for row in rows if row["title"] == target.title[0]]
            ranks[alike.index(target.product_id)] += 1
    # Families have 3 to 5 members of equal rank: the first is gold in about a quarter of the cases.
    assert 0.15 < ranks[0] / ranks.total() < 0.35
    assert 0.15 < ranks[1] / ranks.total() < 0.35


def test_shop_golds_are_of_one_shop_and_vouchers_matter(catalogue: Catalogue, problems: list[Problem]) -> None:
    tight = 0
    for problem in problems:
        golds = [catalogue.by_id[product_id] for product_id in problem.gold]
        assert len(golds) == len(set(problem.gold))
        if problem.category is Category.SHOP:
            assert 2 <= len(golds) <= 4
            assert len({gold.shop_id for gold in golds}) == 1
        if problem.voucher is not None:
            total = sum(gold.price for gold in golds)
            assert price_after(total, problem.voucher) <= problem.voucher.budget
            tight += total > problem.voucher.budget
            assert not any(target.price for target in problem.targets)
    assert tight > 0.9 * sum(problem.voucher is not None for problem in problems)


def test_the_voucher_block_is_worded_as_the_benchmark_words_it(problems: list[Problem]) -> None:
    for problem in problems:
        assert ("My budget is only `" in problem.query) is (problem.voucher is not None)
        if problem.voucher is not None:
            assert problem.query.endswith("\n\n" + voucher_rules(problem.voucher))
            assert f"exceeds `{problem.voucher.threshold:g}`" in problem.query


def test_a_query_names_every_constraint(problems: list[Problem]) -> None:
    for problem in problems:
        text = " ".join(problem.query.split()).lower()
        for target in problem.targets:
            for _, value in target.options:
                assert value in text
            for word in target.title[0].lower().split():
                assert word in text


def grams(query: str) -> set[object]:
    """Word 1- and 2-grams, voucher block cut, digits masked: what near-equality is measured on."""
    text = re.sub(r"\d+", "#", query.lower().partition("my budget is only")[0])
    tokens = re.findall(r"[\w#]+", text)
    return {*tokens, *itertools.pairwise(tokens)}


def test_only_relatives_are_near_equal_and_most_clusters_are_singletons(problems: list[Problem]) -> None:
    texts = [grams(problem.query) for problem in problems]
    holding = Counter(gram for text in texts for gram in text)
    weight = {gram: math.log((COUNT + 1) / (count + 0.5)) for gram, count in holding.items()}
    by_id = {problem.problem_id: problem for problem in problems}
    near = set()
    for (a, left), (b, right) in itertools.combinations(zip(problems, texts, strict=True), 2):
        shared = sum(weight[gram] for gram in left & right)
        if shared / sum(weight[gram] for gram in left | right) >= 0.5:
            near.add(b.problem_id)
            assert b.relative_of == a.problem_id
    for problem in problems:
        if problem.relation in (Relation.RENUMBERED, Relation.TWIN):
            assert problem.problem_id in near
        if problem.relation is Relation.TWIN:
            assert not set(problem.gold) & set(by_id[problem.relative_of or ""].gold)
        elif problem.relation is not None:
            assert set(problem.gold) & set(by_id[problem.relative_of or ""].gold)
    related = [problem for problem in problems if problem.relation is not None]
    assert {problem.relation for problem in related} == set(Relation)
    assert len(related) < COUNT / 8
    # No gold is shared but between relatives.
    golds = Counter(gold for problem in problems if problem.relation is None for gold in problem.gold)
    assert max(golds.values()) == 1


def test_raw_rewards_have_the_shape_of_the_benchmark(problems: list[Problem]) -> None:
    for problem in problems:
        assert isinstance(problem.reward, dict) is (problem.category is Category.PRODUCT)
        assert parse_targets(problem.reward) == problem.targets
