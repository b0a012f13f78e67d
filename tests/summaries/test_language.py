import pytest

from refold.summaries._language import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Please mend the login, and do not touch that file of the shop.", "English"),
        ("Bitte repariere das Login und fasse die Datei nicht an, sie ist für den Laden.", "German"),
        ("Répare la connexion et ne touche pas le fichier qui est dans le dossier.", "French"),
        ("Arregla el inicio de sesión y no toques los archivos que están en la carpeta.", "Spanish"),
        ("ログインを直してください。ファイルには触れないで。", "Japanese"),
        ("请修复登录，不要修改那个文件。", "Chinese"),
        ("로그인을 고쳐 주세요.", "Korean"),
        ("Почини вход и не трогай этот файл.", "Russian"),
        ("Полагодь вхід і не чіпай цей файл, її потрібно зберегти.", "Ukrainian"),
        ("Διόρθωσε τη σύνδεση.", "Greek"),
        ("أصلح تسجيل الدخول.", "Arabic"),
        ("def main(): return 3", ""),
        ("42", ""),
        ("", ""),
    ],
)
def test_the_language_is_told_by_script_or_common_words(text, language):
    assert language_of(text) == language


def test_a_name_in_another_script_does_not_decide():
    assert language_of("Please mend the login of the user Сергей, and test it for that name.") == "English"
