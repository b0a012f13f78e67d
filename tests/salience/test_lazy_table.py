from refold._salience.lazy_table import LazyTable


def test_what_a_function_gives_for_a_value_is_worked_out_once_and_only_when_asked():
    asked = []
    table = LazyTable(lambda value: asked.append(value) or value * 2)
    assert asked == []
    assert [table[2], table[3], table[2]] == [4, 6, 4]
    assert asked == [2, 3]
