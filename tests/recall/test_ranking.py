from refold._recall.ranking import PassageIndex, terms_of

OTHERS = [(f"read {name}.md", f"nothing of the kind in {name}") for name in "uvwxyz"]


def best(texts, query):
    return [passage.text for passage in PassageIndex(texts).best(query)]


def filler(name, count=200):
    return "\n".join(f"{name} row {number} of the table" for number in range(count))


def test_a_word_is_found_by_the_words_inside_of_it():
    assert terms_of("loadItems load_items src/store.py") == [
        "loaditems", "load", "items", "load_items", "load", "items", "src", "store", "py",
    ]  # fmt: skip
    assert best([("bash", "def load_items(): pass"), ("bash", "def save(): pass")], "where is loadItems") == [0]


def test_a_long_text_is_begun_at_the_passage_that_fits():
    text = f"{filler('alpha')}\nthe gateway listens on port 8080\n{filler('beta')}"
    (passage,) = PassageIndex([("bash `cat log`", text)]).best("gateway port")
    assert 100 < passage.line <= 200


def test_the_words_that_name_a_text_count():
    assert best([("read a.py", "value"), ("read store.py", "value")], "value in store.py")[0] == 1


def test_the_first_results_are_of_several_sources_and_the_newest_of_equals_is_first():
    texts = [
        ("read a.py", "needle in a"),
        ("read b.py", "a needle"),
        ("read b.py", "a needle"),
        ("read b.py", "a needle"),
    ]
    assert best(texts, "needle")[:2] == [3, 0]


def test_a_query_without_a_known_word_finds_nothing():
    assert best([("bash", "one two")], "three") == []
    assert best([], "three") == []


def test_scripts_without_blanks_are_found_by_a_part_of_a_run():
    assert best([("read a.md", "今天天气很好"), ("read b.md", "江苏城市足球联赛的积分榜")], "足球积分") == [1]
    assert best([("read a.md", "使用loadItems読み込み"), ("read b.md", "天気")], "読み込み") == [0]


def test_words_that_stand_side_by_side_in_query_and_text_count_more_than_the_same_words_apart():
    texts = [("read a.md", "the retry budget of uploads"), ("read b.md", "the budget for each retry"), *OTHERS]
    assert best(texts, "change the retry budget")[:2] == [0, 1]


def test_the_first_results_of_a_query_on_several_subjects_are_on_each_of_them():
    parser = [(f"read {name}.py", f"parser tokens grammar lookahead {name}") for name in "abcd"]
    texts = [("bash `df`", "disk quota exceeded"), *parser, *OTHERS]
    assert best(texts, "parser tokens grammar lookahead, then the disk")[:2] == [4, 0]


def test_a_text_that_has_all_words_in_several_places_is_before_one_that_repeats_some_of_them():
    spread = f"lease renewed\n{filler('alpha')}\nthe heartbeat\n{filler('beta')}\nand the fence\n{filler('gamma')}"
    repeats = f"lease lost, lease taken, heartbeat heartbeat\n{filler('delta', 10)}"
    texts = [("read a.md", spread), ("read b.md", repeats), *OTHERS]
    assert best(texts, "lease heartbeat fence")[:2] == [0, 1]
