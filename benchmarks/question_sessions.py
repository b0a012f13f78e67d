"""Words of five languages for `benchmarks.questions`, and sessions of tool outputs made of them.

Everything is invented and follows from a seed. Outputs are logs, tables and notes with many numbers and names, as an
agent sees them; what is asked for stands in one of them, old enough that the newest quarter of the text has it not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

from msgspec import Struct

OUTPUTS = 12  # of a session

ENDINGS = ("svc", "api", "worker", "gate", "store", "cron")
COLOURS = (
    "amber",
    "cobalt",
    "crimson",
    "indigo",
    "jade",
    "maroon",
    "ochre",
    "saffron",
    "scarlet",
    "teal",
    "umber",
    "violet",
)


class Language(Struct, frozen=True):
    """Words and sentences of one language; fields in braces are filled in."""

    name: str
    task: str
    remarks: tuple[str, ...]
    turns: tuple[str, ...]  # of the user, in between
    services: tuple[str, ...]  # named by plain words
    places: tuple[str, ...]
    people: tuple[str, ...]
    events: tuple[str, ...]  # of a log
    titles: tuple[str, ...]  # of tickets and pages
    prose: tuple[str, ...]
    months: tuple[str, ...]
    thousands: str = ","
    sentences: Mapping[str, str] = {}  # by shape: what an output says, and what is asked


ENGLISH = Language(
    "english",
    "Please look through the logs and reports of our systems one after another, and tell me what stands out.",
    ("Next I look at {0}.", "That shows nothing unusual. On to {0}.", "Now {0}.", "I read {0} as well."),
    ("Good, go on.", "Keep going, I am in a meeting.", "Fine. What else is there?"),
    (
        "billing service",
        "mail relay",
        "invoice printer",
        "stock monitor",
        "ticket desk",
        "login portal",
        "report engine",
        "delivery planner",
        "search index",
        "archive keeper",
        "payment router",
        "photo resizer",
    ),
    (
        "Leeds",
        "Bristol",
        "Norwich",
        "Dundee",
        "Exeter",
        "Swansea",
        "Carlisle",
        "Lincoln",
        "Oxford",
        "Preston",
        "Durham",
        "Bath",
        "Chester",
        "Derby",
        "Ipswich",
        "Luton",
        "Poole",
        "Reading",
        "Stirling",
        "Truro",
        "Wells",
        "York",
        "Perth",
        "Newport",
        "Salford",
        "Hull",
        "Bolton",
        "Crewe",
        "Dover",
        "Epsom",
    ),
    ("Alice Moore", "Peter Walsh", "Nina Clarke", "Owen Price", "Ruth Baker", "Simon Hale"),
    (
        "request {0} handled in {1} ms",
        "cache refreshed, {0} entries, {1} evicted",
        "worker {0} took job {1}",
        "session {0} closed after {1} s",
        "checkpoint {0} written, {1} bytes",
        "queue length {0}, oldest {1} s",
        "retry {1} of request {0}",
        "connection {0} reused {1} times",
    ),
    (
        "Button has the wrong colour",
        "Export takes long",
        "Typo on the start page",
        "Slow search on Mondays",
        "Help text is missing",
        "Sorting is lost after reload",
        "Print view cuts the margin",
        "Filter forgets its choice",
    ),
    (
        "The office was moved to the second floor and the shelves were numbered again.",
        "Most visitors come in the early afternoon and stay for about an hour.",
        "Deliveries are taken at the rear entrance by whoever is on duty.",
        "The heating was checked before winter and found to be in order.",
        "Several readers asked for longer opening hours in summer.",
        "The garden is looked after by volunteers from the neighbourhood.",
    ),
    (
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ),
    ",",
    {
        "port": "{0} listens on port {1}",
        "port?": "On which port does {0} listen?",
        "table": "Orders by branch|Branch|Orders|Returns|Staff|Stock",
        "table?": "How many returns did the branch in {0} have?",
        "json": "critical",
        "json?": "Which ticket has the priority critical? I need its number.",
        "value": "connection limit of {0} is {1}",
        "value?": "What is the connection limit of {0} at present?",
        "mind": "For the preview of {0}, use port {1}.",
        "mind again": "I changed my mind about the preview of {0}: use {1} instead.",
        "mind?": "Please start the preview of {0} now, on the port that I want for it.",
    },
)
GERMAN = Language(
    "german",
    "Bitte sieh die Protokolle und Berichte unserer Systeme nacheinander durch und sag mir, was auffällt.",
    (
        "Als Nächstes sehe ich mir {0} an.",
        "Das zeigt nichts Ungewöhnliches. Weiter mit {0}.",
        "Jetzt {0}.",
        "Ich lese auch {0}.",
    ),
    ("Gut, mach weiter.", "Weiter so, ich bin in einer Besprechung.", "In Ordnung. Was gibt es noch?"),
    (
        "Rechnungsdienst",
        "Postverteiler",
        "Belegdrucker",
        "Lagerwächter",
        "Auftragsannahme",
        "Anmeldeportal",
        "Berichtswesen",
        "Tourenplaner",
        "Suchverzeichnis",
        "Archivpflege",
        "Zahlungsweiche",
        "Bildverkleinerer",
    ),
    (
        "Augsburg",
        "Bremen",
        "Chemnitz",
        "Dresden",
        "Erfurt",
        "Freiburg",
        "Göttingen",
        "Hannover",
        "Ingolstadt",
        "Jena",
        "Kassel",
        "Lübeck",
        "Mannheim",
        "Nürnberg",
        "Osnabrück",
        "Potsdam",
        "Regensburg",
        "Saarbrücken",
        "Trier",
        "Ulm",
        "Weimar",
        "Zwickau",
        "Bonn",
        "Celle",
        "Gera",
        "Halle",
        "Kiel",
        "Mainz",
        "Passau",
        "Siegen",
    ),
    ("Anna Krüger", "Jens Vogt", "Maria Engel", "Uwe Lorenz", "Petra Busch", "Tom Seidel"),
    (
        "Anfrage {0} in {1} ms bearbeitet",
        "Zwischenspeicher erneuert, {0} Einträge, {1} verdrängt",
        "Arbeiter {0} hat Auftrag {1} übernommen",
        "Sitzung {0} nach {1} s geschlossen",
        "Sicherungspunkt {0} geschrieben, {1} Bytes",
        "Länge der Schlange {0}, ältester {1} s",
        "Versuch {1} der Anfrage {0}",
        "Verbindung {0} zum {1}. Mal benutzt",
    ),
    (
        "Knopf hat die falsche Farbe",
        "Ausgabe dauert lange",
        "Tippfehler auf der Startseite",
        "Suche montags langsam",
        "Hilfetext fehlt",
        "Sortierung geht verloren",
        "Druckansicht schneidet den Rand ab",
        "Filter vergisst seine Auswahl",
    ),
    (
        "Das Büro ist in den zweiten Stock umgezogen, und die Regale wurden neu beziffert.",
        "Die meisten Besucher kommen am frühen Nachmittag und bleiben etwa eine Stunde.",
        "Lieferungen nimmt am Hintereingang entgegen, wer gerade Dienst hat.",
        "Die Heizung wurde vor dem Winter geprüft und war in Ordnung.",
        "Mehrere Leser wünschten sich im Sommer längere Öffnungszeiten.",
        "Den Garten pflegen Freiwillige aus der Nachbarschaft.",
    ),
    (
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ),
    ".",
    {
        "port": "{0} lauscht auf Port {1}",
        "port?": "Auf welchem Port lauscht {0}?",
        "table": "Bestellungen nach Filialen|Filiale|Bestellungen|Rückgaben|Personal|Bestand",
        "table?": "Wie viele Rückgaben hatte die Filiale in {0}?",
        "json": "kritisch",
        "json?": "Welches Ticket hat die Priorität kritisch? Ich brauche seine Nummer.",
        "value": "Verbindungsgrenze von {0} ist {1}",
        "value?": "Wie hoch ist die Verbindungsgrenze von {0} zurzeit?",
        "mind": "Nimm für die Vorschau von {0} Port {1}.",
        "mind again": "Ich habe es mir für die Vorschau von {0} anders überlegt: nimm stattdessen {1}.",
        "mind?": "Starte bitte jetzt die Vorschau von {0} auf dem Port, den ich dafür will.",
    },
)
FRENCH = Language(
    "french",
    "Merci de parcourir l'un après l'autre les journaux et les rapports de nos systèmes et de me dire ce qui ressort.",
    ("Je regarde ensuite {0}.", "Rien d'inhabituel ici. Je passe à {0}.", "Maintenant {0}.", "Je lis aussi {0}."),
    ("Bien, continue.", "Continue, je suis en réunion.", "D'accord. Qu'y a-t-il d'autre ?"),
    (
        "facturation",
        "messagerie",
        "imprimante des factures",
        "surveillance du stock",
        "guichet des demandes",
        "portail des accès",
        "moteur des rapports",
        "planification des tournées",
        "annuaire de recherche",
        "garde des archives",
        "aiguillage des paiements",
        "atelier des photos",
    ),
    (
        "Angers",
        "Besançon",
        "Caen",
        "Dijon",
        "Évreux",
        "Fréjus",
        "Grenoble",
        "Hyères",
        "Issoire",
        "Lille",
        "Metz",
        "Nantes",
        "Orléans",
        "Poitiers",
        "Quimper",
        "Rennes",
        "Strasbourg",
        "Toulouse",
        "Valence",
        "Annecy",
        "Bayonne",
        "Chartres",
        "Dax",
        "Gap",
        "Laval",
        "Mâcon",
        "Nevers",
        "Pau",
        "Rodez",
        "Tours",
    ),
    ("Claire Morel", "Luc Bernard", "Julie Petit", "Marc Fournier", "Élise Garnier", "Paul Renaud"),
    (
        "requête {0} traitée en {1} ms",
        "cache renouvelé, {0} entrées, {1} évincées",
        "l'ouvrier {0} a pris la tâche {1}",
        "session {0} fermée après {1} s",
        "point de reprise {0} écrit, {1} octets",
        "longueur de la file {0}, plus ancienne {1} s",
        "essai {1} de la requête {0}",
        "connexion {0} réutilisée {1} fois",
    ),
    (
        "Le bouton a la mauvaise couleur",
        "L'export est lent",
        "Coquille sur la page d'accueil",
        "Recherche lente le lundi",
        "Le texte d'aide manque",
        "Le tri se perd",
        "L'impression coupe la marge",
        "Le filtre oublie son choix",
    ),
    (
        "Le bureau a été déplacé au deuxième étage et les rayons ont reçu de nouveaux numéros.",
        "La plupart des visiteurs viennent en début d'après-midi et restent une heure environ.",
        "Les livraisons sont reçues à l'entrée arrière par la personne de service.",
        "Le chauffage a été vérifié avant l'hiver et fonctionne bien.",
        "Plusieurs lecteurs ont demandé des horaires plus longs en été.",
        "Le jardin est entretenu par des bénévoles du quartier.",
    ),
    (
        "janvier",
        "février",
        "mars",
        "avril",
        "mai",
        "juin",
        "juillet",
        "août",
        "septembre",
        "octobre",
        "novembre",
        "décembre",
    ),
    " ",
    {
        "port": "{0} écoute sur le port {1}",
        "port?": "Sur quel port écoute {0} ?",
        "table": "Commandes par agence|Agence|Commandes|Retours|Personnel|Stock",
        "table?": "Combien de retours l'agence de {0} a-t-elle eus ?",
        "json": "critique",
        "json?": "Quel ticket a la priorité critique ? Il me faut son numéro.",
        "value": "limite de connexions de {0} : {1}",
        "value?": "Quelle est actuellement la limite de connexions de {0} ?",
        "mind": "Pour l'aperçu de {0}, prends le port {1}.",
        "mind again": "J'ai changé d'avis pour l'aperçu de {0} : prends plutôt {1}.",
        "mind?": "Lance maintenant l'aperçu de {0} sur le port que je veux.",
    },
)
SPANISH = Language(
    "spanish",
    "Revisa uno tras otro los registros e informes de nuestros sistemas y dime qué llama la atención.",
    ("Ahora miro {0}.", "Aquí no hay nada raro. Sigo con {0}.", "Ahora {0}.", "Leo también {0}."),
    ("Bien, sigue.", "Sigue, estoy en una reunión.", "De acuerdo. ¿Qué más hay?"),
    (
        "facturación",
        "correo saliente",
        "impresora de facturas",
        "vigilante del almacén",
        "mesa de pedidos",
        "portal de acceso",
        "motor de informes",
        "planificador de repartos",
        "índice de búsqueda",
        "guardián del archivo",
        "pasarela de pagos",
        "reductor de fotos",
    ),
    (
        "Albacete",
        "Burgos",
        "Cádiz",
        "Denia",
        "Elche",
        "Figueras",
        "Gijón",
        "Huelva",
        "Irún",
        "Jaén",
        "León",
        "Málaga",
        "Oviedo",
        "Palencia",
        "Reus",
        "Segovia",
        "Teruel",
        "Úbeda",
        "Vigo",
        "Zamora",
        "Ávila",
        "Badajoz",
        "Cuenca",
        "Gandía",
        "Lugo",
        "Murcia",
        "Ronda",
        "Soria",
        "Toledo",
        "Valencia",
    ),
    ("Lucía Romero", "Diego Santos", "Elena Vidal", "Pablo Cano", "Marta Reyes", "Jorge Luna"),
    (
        "petición {0} atendida en {1} ms",
        "caché renovada, {0} entradas, {1} expulsadas",
        "el proceso {0} tomó la tarea {1}",
        "sesión {0} cerrada tras {1} s",
        "punto de control {0} escrito, {1} bytes",
        "longitud de la cola {0}, la más antigua {1} s",
        "intento {1} de la petición {0}",
        "conexión {0} reutilizada {1} veces",
    ),
    (
        "El botón tiene mal color",
        "La exportación tarda",
        "Errata en la portada",
        "Búsqueda lenta los lunes",
        "Falta el texto de ayuda",
        "Se pierde el orden",
        "La impresión corta el margen",
        "El filtro olvida la elección",
    ),
    (
        "La oficina se trasladó al segundo piso y se numeraron de nuevo las estanterías.",
        "La mayoría de los visitantes llega a primera hora de la tarde y se queda una hora.",
        "Las entregas las recibe por detrás quien esté de turno.",
        "La calefacción se revisó antes del invierno y estaba en orden.",
        "Varios lectores pidieron horarios más largos en verano.",
        "El jardín lo cuidan voluntarios del barrio.",
    ),
    (
        "enero",
        "febrero",
        "marzo",
        "abril",
        "mayo",
        "junio",
        "julio",
        "agosto",
        "septiembre",
        "octubre",
        "noviembre",
        "diciembre",
    ),
    ".",
    {
        "port": "{0} escucha en el puerto {1}",
        "port?": "¿En qué puerto escucha {0}?",
        "table": "Pedidos por sucursal|Sucursal|Pedidos|Devoluciones|Personal|Existencias",
        "table?": "¿Cuántas devoluciones tuvo la sucursal de {0}?",
        "json": "crítica",
        "json?": "¿Qué incidencia tiene la prioridad crítica? Necesito su número.",
        "value": "límite de conexiones de {0}: {1}",
        "value?": "¿Cuál es ahora el límite de conexiones de {0}?",
        "mind": "Para la vista previa de {0}, usa el puerto {1}.",
        "mind again": "He cambiado de idea sobre la vista previa de {0}: usa {1} en su lugar.",
        "mind?": "Arranca ya la vista previa de {0} en el puerto que quiero.",
    },
)
JAPANESE = Language(
    "japanese",
    "システムのログと報告書を順番に確認して、気になる点を教えてください。",
    ("次に{0}を確認します。", "特に異常はありません。{0}に進みます。", "今度は{0}です。", "{0}も読みます。"),
    ("はい、続けてください。", "会議中なので、そのまま進めてください。", "わかりました。ほかにはありますか。"),
    (
        "請求サービス",
        "メール配送",
        "伝票印刷",
        "在庫監視",
        "受付窓口",
        "認証ポータル",
        "報告エンジン",
        "配達計画",
        "検索索引",
        "書庫管理",
        "決済振分",
        "写真縮小",
    ),
    (
        "札幌",
        "青森",
        "盛岡",
        "仙台",
        "秋田",
        "山形",
        "福島",
        "水戸",
        "宇都宮",
        "前橋",
        "千葉",
        "横浜",
        "新潟",
        "富山",
        "金沢",
        "福井",
        "甲府",
        "長野",
        "岐阜",
        "静岡",
        "名古屋",
        "大津",
        "京都",
        "神戸",
        "奈良",
        "鳥取",
        "松江",
        "岡山",
        "高松",
        "長崎",
    ),
    ("佐藤花子", "鈴木一郎", "高橋美咲", "田中健", "伊藤恵", "渡辺翔"),
    (
        "要求{0}を{1}ミリ秒で処理しました",
        "キャッシュを更新、{0}件、{1}件を破棄",
        "ワーカー{0}がジョブ{1}を取得",
        "セッション{0}を{1}秒後に終了",
        "チェックポイント{0}を書込み、{1}バイト",
        "待ち行列の長さ{0}、最古{1}秒",
        "要求{0}の{1}回目の再試行",
        "接続{0}を{1}回再利用",
    ),
    (
        "ボタンの色が違う",
        "書き出しが遅い",
        "トップページの誤字",
        "月曜日の検索が遅い",
        "説明文がない",
        "並べ替えが消える",
        "印刷で余白が切れる",
        "絞り込みが保存されない",
    ),
    (
        "事務所は二階に移り、棚の番号が付け直された。",
        "来館者の多くは昼過ぎに訪れ、一時間ほど過ごす。",
        "荷物は裏口で当番が受け取る。",
        "暖房は冬の前に点検され、問題はなかった。",
        "夏の開館時間を延ばしてほしいという声があった。",
        "庭は近所の有志が手入れしている。",
    ),
    tuple(f"{month}月" for month in range(1, 13)),
    ",",
    {
        "port": "{0}はポート{1}で待機しています",
        "port?": "{0}が待機しているポートは何番ですか。",
        "table": "支店別の注文|支店|注文|返品|人員|在庫",
        "table?": "{0}支店の返品は何件でしたか。",
        "json": "緊急",
        "json?": "優先度が緊急のチケットはどれですか。番号が必要です。",
        "value": "{0}の接続上限は{1}です",
        "value?": "{0}の接続上限は現在いくつですか。",
        "mind": "{0}のプレビューにはポート{1}を使ってください。",
        "mind again": "{0}のプレビューは考え直しました。代わりに{1}を使ってください。",
        "mind?": "{0}のプレビューを、私が希望したポートで起動してください。",
    },
)
LANGUAGES = {each.name: each for each in (ENGLISH, GERMAN, FRENCH, SPANISH, JAPANESE)}


class Question(Struct, frozen=True):
    """A session that ends with a question, and what tells that its answer was kept."""

    messages: list[dict[str, Any]]
    named: tuple[str, ...]  # any of it
    value: str
    replaced: str = ""  # a value that no longer holds


class Output(Struct, frozen=True):
    """A tool call and what it shows; `before` is what the user says in front of it."""

    tool: str
    what: str
    text: str
    before: str = ""


def names_of_services(language: Language, random: Random) -> list[str]:
    """Return twelve services: in half of all sessions by plain words, else by compound names."""
    if random.random() < 0.5:
        return random.sample(language.services, len(language.services))
    colours = random.sample(COLOURS, len(COLOURS))
    return [f"{colour}_{random.choice(ENDINGS)}" for colour in colours]


def log(
    language: Language, random: Random, service: str, lines: int, facts: Mapping[int, str] | None = None, day: int = 7
) -> str:
    """Return a log of a service from a day of March on; `facts` are lines at their places."""
    second = random.randrange(80_000) + day * 86_400
    written: list[str] = []
    for place in range(lines):
        second += random.randrange(1, 9)
        fact = (facts or {}).get(place)
        event = fact or random.choice(language.events).format(
            random.randrange(10_000, 99_999), random.randrange(2, 4_000)
        )
        stamp = f"2026-03-{second // 86_400:02} {second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}"
        written.append(f"{stamp} INFO [{service}] {event}" if fact is None else f"{stamp} INFO {event}")
    return "\n".join(written)


def figure(language: Language, number: int) -> str:
    """Return a number as the language writes it."""
    return f"{number:,}".replace(",", language.thousands)


def table(
    language: Language, random: Random, title: str, columns: Sequence[str], style: int
) -> tuple[str, list[list[str]]]:
    """Return a table of places, as Markdown, as CSV or with blanks, and its cells."""
    places = random.sample(language.places, len(language.places))
    cells = [[place, *(figure(language, random.randrange(1_000, 99_999)) for _ in columns[1:])] for place in places]
    rows = [list(columns), *cells]
    if style == 0:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + "---|" * len(columns))
    elif style == 1:
        lines = [";".join(row) for row in rows]
    else:
        lines = ["".join(cell.ljust(16) for cell in row).rstrip() for row in rows]
    return "\n".join([title, "", *lines]), cells


def filler(language: Language, random: Random, number: int) -> Output:
    """Return an output that has nothing to do with what is asked."""
    kind = random.randrange(4)
    if kind == 0:
        lines = [random.choice(language.prose) for _ in range(40)]
        return Output(
            "read_page", f"page-{number}.html", "\n".join(" ".join(lines[at : at + 4]) for at in range(0, 40, 4))
        )
    if kind == 1:
        rows = [
            f"{random.choice(language.people)}  {figure(language, random.randrange(100, 9_999))}  {random.choice(language.titles)}"
            for _ in range(45)
        ]
        return Output("read_report", f"report-{number}.txt", "\n".join(rows))
    return Output("read_log", f"node-{number}.log", log(language, random, f"node-{number}", 45))


def session(language: Language, random: Random, outputs: Sequence[Output], question: str) -> list[dict[str, Any]]:
    """Return a conversation in the shape of OpenAI's chat completions that shows outputs in turn, and ends with a question."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are an assistant with tools."},
        {"role": "user", "content": language.task},
    ]
    for number, output in enumerate(outputs):
        if output.before:
            messages.append({"role": "assistant", "content": random.choice(language.remarks).format(output.what)})
            messages.append({"role": "user", "content": output.before})
        elif number and number % 5 == 0:
            messages.append({"role": "assistant", "content": random.choice(language.remarks).format(output.what)})
            messages.append({"role": "user", "content": random.choice(language.turns)})
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": output.tool, "arguments": json.dumps({"name": output.what}, ensure_ascii=False)},
        }
        remark = random.choice(language.remarks).format(output.what)
        messages.append({"role": "assistant", "content": remark, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": output.text})
    messages.append({"role": "assistant", "content": random.choice(language.turns)})
    messages.append({"role": "user", "content": question})
    return messages


def old(language: Language, random: Random, output: Output) -> list[Output]:
    """Return a session's outputs, one of the first half being the one with the answer."""
    outputs = [filler(language, random, number) for number in range(OUTPUTS - 1)]
    outputs.insert(random.randrange(OUTPUTS // 2), output)
    return outputs


Shape: TypeAlias = Callable[[Language, Random], Question]
