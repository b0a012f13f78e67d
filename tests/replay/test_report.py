import itertools
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

from refold.replay._charts import (
    DARK,
    LIGHT,
    ChartLine,
    Dot,
    lines,
    percent,
    points,
    standalone,
    tokens,
)
from refold.replay._quality import Quality
from refold.replay._report import plots, report
from refold.replay._run import ReplayedCompaction, Run
from refold.replay.pricing import CallTokens, Spent

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "br", "hr", "link", "img"}


def run(policy, context, compactions=(), recall=1.0, file="a <b>.jsonl"):
    dollars = tuple(sum(context[: place + 1]) / 1e5 for place in range(len(context)))
    judged = Quality(len(context) - 1, recall, 1 - recall, None, 1.0, 1.0, 1.0, 1.0)
    spent = Spent(fresh=dollars[-1])
    total = CallTokens(sum(context))
    return Run(file, policy, 100_000, context, dollars, compactions, spent, total, quality=(judged,))


def runs(file="a <b>.jsonl"):
    return [
        run("none", (10_000, 60_000, 90_000, 500_000), file=file),
        run("opal", (10_000, 60_000, 30_000, 40_000), (ReplayedCompaction(2, 65_000, 30_000, 900),), 0.7, file),
        run("refold", (10_000, 60_000, 40_000, 50_000), (ReplayedCompaction(2, 65_000, 40_000, 100),), 0.9, file),
    ]


class Reader(HTMLParser):
    """Checks that every tag is closed in order, and collects what a page would load."""

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loads += [value for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)


def drawn(svg):
    return ElementTree.fromstring(svg)


def test_a_report_is_well_formed_and_loads_nothing():
    html = report([runs(), runs("b.jsonl")])
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    assert reader.loads == []
    assert "script" not in reader.tags
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme:dark" in html


def test_a_report_says_what_each_line_of_its_tables_means():
    html = report([runs(), runs("other.jsonl")])
    legend = html.partition("<summary>What the lines mean</summary>")[2]
    for name in ("peak", "US$ cache damage", "recall", "calls too long"):
        assert f"<dt>{name}</dt><dd>" in legend
    assert "<dt>opal" not in legend


def test_names_of_files_are_written_as_text():
    html = report([runs()])
    assert "a &lt;b&gt;.jsonl" in html
    assert "<b>" not in html


def test_a_report_has_plots_of_each_conversation_and_one_of_all():
    reader = Reader()
    reader.feed(report([runs(), runs("b.jsonl")]))
    assert reader.tags.count("svg") == 5


def test_the_best_figures_are_marked_among_the_policies_and_not_where_all_are_alike():
    html = report([runs()])
    best = [part.split("</td>")[0] for part in html.split('class="best">')[1:]]
    assert "90.0%" in best
    assert "70.0%" not in best
    assert "100.0%" not in best
    assert "35,000" in best


def test_each_plot_is_a_file_of_its_own():
    made = plots([runs(), runs("b.jsonl")])
    assert set(made) == {*("quality-against-cost", "001-context", "001-cost", "002-context", "002-cost")}
    for svg in made.values():
        root = drawn(svg)
        assert root.tag == f"{SVG}svg"
        assert root.find(f"{SVG}style") is not None


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_a_plot_in_one_palette_has_no_variables(palette):
    for svg in plots([runs()], palette).values():
        assert "var(" not in svg
        assert "prefers-color-scheme" not in svg
        assert palette["surface"] in svg
        drawn(svg)


def test_a_report_says_what_can_be_told_apart():
    html = report([runs(), runs("b.jsonl")])
    assert "Can they be told apart?" in html
    assert "not supported" in html


def test_compactions_are_marked_where_they_were():
    root = drawn(plots([runs()])["001-context"])
    said = [dot.find(f"{SVG}title").text for dot in root.iter(f"{SVG}circle")]
    assert said == ["opal, call 3: 65,000 → 30,000 tokens", "refold, call 3: 65,000 → 40,000 tokens"]


def test_a_line_that_leaves_the_plot_does_not_press_the_others_flat():
    root = drawn(plots([runs()])["001-context"])
    levels = [text.text for text in root.iter(f"{SVG}text")]
    assert "500k" not in levels
    assert "100k" in levels


def test_a_conversation_that_no_policy_compacted_has_no_table_of_what_was_kept():
    html = report([[run("none", (1_000, 2_000)), run("opal", (1_000, 2_000))]])
    assert "recall" not in html
    assert "mean context" in html


def test_every_point_of_a_line_lies_within_the_plot():
    root = drawn(lines([ChartLine("a", 1, [0, 5, 3]), ChartLine("b", 2, [9.5])], title="t", unit=tokens))
    for line in root.iter(f"{SVG}polyline"):
        for pair in line.get("points").split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= 600
            assert 0 <= y <= 290


@pytest.mark.parametrize("height", [0.0, 0.5, 1.0])
def test_names_at_one_height_do_not_lie_on_top_of_each_other(height):
    svg = points([Dot(f"n{number}", number, 0.1, height) for number in range(8)], title="t", across="x", upward="y")
    heights = sorted(float(text.get("y")) for text in drawn(svg).iter(f"{SVG}text") if text.get("class") == "name")
    assert min(two - one for one, two in itertools.pairwise(heights)) >= 14
    assert heights[0] > 0
    assert heights[-1] < 290


def test_a_long_line_is_thinned_but_keeps_its_compactions():
    values = [float(place % 1_000) for place in range(20_000)]
    svg = lines([ChartLine("a", 1, values, [(12_345, "here")])], title="t", unit=tokens)
    assert len(drawn(svg).find(f"{SVG}polyline").get("points").split()) < 800
    assert "here" in svg


def test_figures_are_short():
    assert [tokens(value) for value in (950, 120_000, 1_500_000)] == ["950", "120k", "1.5M"]
    assert percent(-0.125) == "-12%"
    assert standalone(lines([], title="t", unit=tokens)).endswith("</svg>\n")


def test_the_report_counts_in_singular_and_plural():
    assert "<p>1 conversation, " in report([runs()])
    assert "<p>2 conversations, " in report([runs(), runs("b.jsonl")])
