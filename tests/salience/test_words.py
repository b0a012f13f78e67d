from hypothesis import given
from hypothesis import strategies as st

from refold._salience.words import occurrences, phrases_of, small, words_of


def test_words_are_small_without_the_plural_and_names_are_their_parts_too():
    assert words_of("Which ports has maxRetryCount, on the HTTPServer?") == {
        *("which", "port", "has", "the", "httpserver"),
        *("maxretrycount", "max", "retry", "count"),
    }
    assert words_of("Umsätze der Filiale 2024 in №5") == {"umsätze", "der", "filiale", "2024"}
    assert words_of("порт сервиса") == {"порт", "сервиса"}


def test_scripts_without_blanks_have_pairs_of_signs():
    assert {"监听", "听端", "端口"} <= words_of("监听端口是多少")
    assert {"ポー", "ート"} <= words_of("ポート")


def test_words_beside_each_other_are_phrases():
    assert set(phrases_of("Port of onyx-gateway, please")) == {"onyx-gateway"}
    assert phrases_of("the Onyx gateway")["onyx gateway"] == {"onyx", "gateway"}


def test_a_word_is_located_as_a_word_of_its_own():
    text = "ports portal maxPort report PORT Port8 port"
    assert [text[at:].split()[0] for at in occurrences("port", text, small(text))] == ["ports", "Port", "PORT", "port"]


@given(st.text(max_size=200))
def test_every_word_of_a_text_can_be_located_in_it(text):
    lower = small(text)
    assert len(lower) == len(text)
    assert all(word in lower for word in words_of(text) if len(word.lower()) == len(word))
