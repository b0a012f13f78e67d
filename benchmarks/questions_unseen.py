"""Never looked at while tuning: five shapes for `benchmarks.questions` that are for judging only. Read their totals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.question_sessions import (
    OUTPUTS,
    Language,
    Output,
    Question,
    log,
    names_of_services,
    old,
    session,
)

if TYPE_CHECKING:
    from random import Random

    from benchmarks.question_sessions import Shape

LINES = 8_600 // OUTPUTS  # of each log, together about 215,000 tokens

# by language: what is in the output, and what is asked
SETTINGS = {
    "retry_backoff_ms": (
        "retry backoff",
        "Wartezeit vor Wiederholungen",
        "délai avant nouvel essai",
        "espera antes de reintentar",
        "再試行までの待ち時間",
    ),
    "upload_limit_mb": (
        "upload limit",
        "Obergrenze für Uploads",
        "taille maximale des envois",
        "límite de subida",
        "アップロードの上限",
    ),
    "session_idle_minutes": (
        "session idle time",
        "Leerlaufzeit der Sitzung",
        "durée d'inactivité de la session",
        "tiempo de inactividad de la sesión",
        "セッションの無操作時間",
    ),
    "preview_quality": (
        "preview quality",
        "Güte der Vorschau",
        "qualité de l'aperçu",
        "calidad de la vista previa",
        "プレビューの画質",
    ),
    "archive_after_days": (
        "archiving delay",
        "Frist bis zur Archivierung",
        "délai d'archivage",
        "plazo de archivado",
        "書庫へ移すまでの日数",
    ),
}
KEYS = (
    "batch_size",
    "log_level_id",
    "max_threads",
    "poll_interval",
    "cache_slots",
    "queue_depth",
    "page_length",
    "burst_rate",
    "lease_seconds",
    "shard_count",
    "min_replicas",
    "flush_bytes",
)
PLACES = {
    "english": (
        "In the configuration, what is {0} set to?",
        "{0} ({1})",
        "Which document of the search results is about {0}? Give me its id.",
        "Which function in the listing computes {0}?",
        "computes {0}",
        "When was the {0} opened to the public?",
        "The {0} was opened to the public on {1}.",
        "{1} {2} {0}",
        "nightly run of {0} failed, reason {1}",
        "Why did the nightly run of {0} fail?",
    ),
    "german": (
        "Worauf steht in der Konfiguration {0}?",
        "{0} ({1})",
        "Welches Dokument der Suche handelt von {0}? Nenne mir die Kennung.",
        "Welche Funktion im Quelltext berechnet {0}?",
        "berechnet {0}",
        "Wann wurde die Anlage {0} eröffnet?",
        "Die Anlage {0} wurde am {1} eröffnet.",
        "{1}. {2} {0}",
        "Nachtlauf von {0} gescheitert, Grund {1}",
        "Warum ist der Nachtlauf von {0} gescheitert?",
    ),
    "french": (
        "Dans la configuration, quelle valeur a {0} ?",
        "{0} ({1})",
        "Quel document de la recherche parle de {0} ? Donne-moi son identifiant.",
        "Quelle fonction du code calcule {0} ?",
        "calcule {0}",
        "Quand le site {0} a-t-il été ouvert au public ?",
        "Le site {0} a été ouvert au public le {1}.",
        "{1} {2} {0}",
        "échec du traitement nocturne de {0}, motif {1}",
        "Pourquoi le traitement nocturne de {0} a-t-il échoué ?",
    ),
    "spanish": (
        "En la configuración, ¿qué valor tiene {0}?",
        "{0} ({1})",
        "¿Qué documento de la búsqueda trata de {0}? Dame su identificador.",
        "¿Qué función del código calcula {0}?",
        "calcula {0}",
        "¿Cuándo se abrió al público el recinto {0}?",
        "El recinto {0} se abrió al público el {1}.",
        "{1} de {2} de {0}",
        "falló el proceso nocturno de {0}, motivo {1}",
        "¿Por qué falló el proceso nocturno de {0}?",
    ),
    "japanese": (
        "設定ファイルの{0}の値は何ですか。",
        "{0} ({1})",
        "検索結果のうち{0}に関する文書はどれですか。識別子を教えてください。",
        "コードの中で{0}を計算する関数はどれですか。",
        "{0}を計算する",
        "{0}はいつ公開されましたか。",
        "{0}は{1}に公開された。",
        "{0}年{2}{1}日",
        "{0}の夜間処理が失敗、原因{1}",
        "{0}の夜間処理はなぜ失敗しましたか。",
    ),
}
SUBJECTS = {
    "english": (
        "the loyalty discount",
        "the freight surcharge",
        "the overdue interest",
        "the packing weight",
        "the deposit refund",
        "the holiday bonus",
    ),
    "german": (
        "den Treuerabatt",
        "den Frachtzuschlag",
        "die Verzugszinsen",
        "das Packgewicht",
        "die Pfandrückgabe",
        "das Urlaubsgeld",
    ),
    "french": (
        "la remise de fidélité",
        "le supplément de fret",
        "les intérêts de retard",
        "le poids d'emballage",
        "le retour de consigne",
        "la prime de vacances",
    ),
    "spanish": (
        "el descuento por fidelidad",
        "el recargo de flete",
        "los intereses de demora",
        "el peso del embalaje",
        "la devolución del depósito",
        "la paga de vacaciones",
    ),
    "japanese": ("会員割引", "運賃割増", "延滞利息", "梱包重量", "保証金返却", "休暇手当"),
}
SITES = ("Almandine", "Belvedere", "Calanthe", "Dorveille", "Estrella", "Falkenau", "Girasol", "Hesperia")
TITLES = {
    "english": (
        "winter tyres",
        "tax forms",
        "bee keeping",
        "harbour fees",
        "school meals",
        "roof repairs",
        "river levels",
        "choir practice",
    ),
    "german": (
        "Winterreifen",
        "Steuerformulare",
        "Bienenzucht",
        "Hafengebühren",
        "Schulessen",
        "Dachreparaturen",
        "Pegelstände",
        "Chorproben",
    ),
    "french": (
        "pneus d'hiver",
        "formulaires fiscaux",
        "apiculture",
        "droits de port",
        "cantines scolaires",
        "réparation de toitures",
        "niveaux des rivières",
        "répétitions de chorale",
    ),
    "spanish": (
        "neumáticos de invierno",
        "impresos fiscales",
        "apicultura",
        "tasas portuarias",
        "comedores escolares",
        "arreglo de tejados",
        "niveles de los ríos",
        "ensayos del coro",
    ),
    "japanese": ("冬用タイヤ", "税務書類", "養蜂", "港湾料金", "学校給食", "屋根の修理", "河川の水位", "合唱の練習"),
}
ORDER = ("english", "german", "french", "spanish", "japanese")


def setting(language: Language, random: Random) -> Question:
    """A value in a configuration file, asked for by its key or by words."""
    values = iter(random.sample(range(1_001, 9_999), 80))
    key = random.choice(list(SETTINGS))
    lines: list[str] = []
    sections = random.sample(range(100, 999), 6)
    where = random.randrange(6)
    comment = SETTINGS[key][ORDER.index(language.name)]
    value = str(next(values))
    equals = random.choice((" = ", ": ", "="))
    for place, section in enumerate(sections):
        lines += ["", f"[section_{section}]"]
        lines += [f"{name}_{section}{equals}{next(values)}" for name in random.sample(KEYS, 10)]
        if place == where:
            lines += [f"# {comment}", f"{key}{equals}{value}"]
    words = random.random() < 0.5
    question = PLACES[language.name][0].format(comment if words else key)
    output = Output("read_file", "settings.ini", "\n".join(lines))
    return Question(session(language, random, old(language, random, output), question), (key, comment), value)


def search_result(language: Language, random: Random) -> Question:
    """An id in a search result."""
    titles = random.sample(TITLES[language.name], 8)
    ids = [
        f"{random.choice('bcdfgkmp')}{random.randrange(10_000, 99_999)}x{random.randrange(10, 99)}" for _ in range(8)
    ]
    hits = [
        f"{place + 1}. {title} [id={id}]\n   {' '.join(random.sample(language.prose, 3))}"
        for place, (title, id) in enumerate(zip(titles, ids, strict=True))
    ]
    which = random.randrange(8)
    output = Output("web_search", random.choice(language.titles), "\n".join(hits))
    question = PLACES[language.name][2].format(titles[which])
    return Question(session(language, random, old(language, random, output), question), (titles[which],), ids[which])


def function_name(language: Language, random: Random) -> Question:
    """The name of a function in a listing, asked for by its comment."""
    subjects = random.sample(SUBJECTS[language.name], 6)
    names = [
        f"calc_{random.choice('abcdefgh')}{random.randrange(10, 99)}_{random.choice(('net', 'sum', 'raw', 'fix'))}"
        for _ in range(40)
    ]
    which = random.randrange(6)
    places = dict(zip(random.sample(range(40), 6), range(6), strict=True))
    lines: list[str] = []
    value = ""
    for place, name in enumerate(names):
        if place in places:
            lines.append(f"# {PLACES[language.name][4].format(subjects[places[place]])}")
            value = name if places[place] == which else value
        lines += [
            f"def {name}(order):",
            f"    total = order.lines[{place}].amount * {random.randrange(11, 99)}",
            "    return total // 100",
            "",
        ]
    output = Output("read_file", "pricing.py", "\n".join(lines))
    question = PLACES[language.name][3].format(subjects[which])
    return Question(session(language, random, old(language, random, output), question), (subjects[which],), value)


def date_in_prose(language: Language, random: Random) -> Question:
    """A date in the prose of an old page, in one long line of several."""
    words = PLACES[language.name]
    sites = random.sample(SITES, 4)
    dates = [
        words[7].format(random.randrange(1_870, 1_990), random.randrange(1, 29), random.choice(language.months))
        for _ in sites
    ]
    facts = [words[6].format(site, date) for site, date in zip(sites, dates, strict=True)]
    paragraphs = []
    for fact in facts:
        sentences = [random.choice(language.prose) for _ in range(9)]
        sentences.insert(random.randrange(9), fact)
        paragraphs.append(" ".join(sentences))
    which = random.randrange(4)
    output = Output("read_page", "history.html", "\n\n".join(paragraphs))
    question = words[5].format(sites[which])
    return Question(session(language, random, old(language, random, output), question), (sites[which],), dates[which])


def failed_run(language: Language, random: Random) -> Question:
    """The reason of a failure, in 215,000 tokens of logs."""
    services = names_of_services(language, random)
    reason = f"Q{random.randrange(1_000, 9_999)}"
    where, line = random.randrange(OUTPUTS // 2), random.randrange(60, LINES - 60)
    fact = PLACES[language.name][8].format(services[0], reason)
    outputs = [
        Output(
            "read_log",
            f"node-{number}.log",
            log(language, random, f"node-{number}", LINES, {line: fact} if number == where else None),
        )
        for number in range(OUTPUTS)
    ]
    return Question(
        session(language, random, outputs, PLACES[language.name][9].format(services[0])), (services[0],), reason
    )


UNSEEN: dict[str, Shape] = {
    "setting": setting,
    "search result": search_result,
    "function": function_name,
    "date": date_in_prose,
    "failed run": failed_run,
}
LARGE = {"failed run": 4}  # seeds a language: twenty in all
