from refold._recall.ranking import PassageIndex, terms_of


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
