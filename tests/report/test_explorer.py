"""The explorer: what its pages say and where they lead, and what a real browser makes of them."""

from __future__ import annotations

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from small_study import KERNEL, PROBLEMS, write_study

from dice.errors import DiceError
from dice.jsonl import write_jsonl
from dice.kernels.problems.problem import Problem
from dice.report.explorer import ExplorerConfig, answers_of_seed, explore, pair_lines

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
UNITS = ("8B-base", "8B-dice")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("explorer")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        write_study()
        assert explore(ExplorerConfig(results="results", out="site")) == 8
    return place / "site"


class Page(HTMLParser):
    """What a page links to, what it says, and whether its tags close."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.links += [str(value) for name, value in attrs if name == "href" and tag == "a"]
        self.sources += [str(value) for name, value in attrs if name in ("src", "href") and tag != "a"]
        if tag not in ("meta", "link", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_every_page_is_whole_and_leads_only_to_pages_of_the_site(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) == 8
    for path in pages:
        page = Page(path)
        assert not page.open
        for link in [*page.links, *page.sources]:
            target = link.partition("#")[0]
            assert not target or (path.parent / target).resolve().is_relative_to(site.resolve())
            assert not target or (path.parent / target).is_file(), f"{path.name} leads to {link}"
    assert "50.0" in Page(site / "index.html").text


def test_a_problems_page_has_problem_answer_verdict_and_tokens_all_escaped(site):
    path = site / "8B-dice" / "level1-2_Halve.html"
    text = Page(path).text
    assert "return x + 1" in text
    assert KERNEL.format(k="1.0f").rstrip() in text
    assert "first at [0, 0]: expected 1.0, got <b>2.0" in text
    assert "1.250" in text
    assert "seed 0, sample 0" in text
    assert "<b>2.0" not in path.read_text(encoding="utf-8")
    deceptive = Page(site / "8B-base" / "level1-2_Halve.html").text
    assert "kernel_never_launched (paper_1): 0 < 1" in " ".join(deceptive.split())
    assert "before the robust check correct" in deceptive


def test_rows_that_were_asked_other_problems_are_not_compared(tmp_path, monkeypatch):
    """Exams lie beside the benchmark: each is compared within itself."""
    monkeypatch.chdir(tmp_path)
    write_study()
    scores = Path("results/scores")
    for unit in UNITS:
        exam = (scores / f"{unit}.json").read_text().replace("level1/", "level1/exam_")
        (scores / f"{unit}@exam.json").write_text(exam)
    exams = [f"{unit}@exam" for unit in UNITS]
    pairs = {(line["row"], line["against"]) for line in pair_lines(Path("results"), [*UNITS, *exams])}
    assert pairs == {UNITS, tuple(exams)}


def test_an_exams_answers_stand_beside_the_exams_problems(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_study()
    exam = Problem(id="level1/1_Other", level=1, number=1, name="Other", code="the exam's own code", version="e")
    write_jsonl("results/data/exams/more/problems.jsonl", [exam])
    for kind in ("generations", "verdicts"):
        path = Path("results", kind, "8B-dice@more", "seed0.jsonl")
        path.parent.mkdir()
        text = Path("results", kind, "8B-dice", "seed0.jsonl").read_text().splitlines()[0]
        path.write_text(text.replace(PROBLEMS[0], exam.id) + "\n")
    explore(ExplorerConfig(results="results", out="site"))
    assert exam.code in Page(Path("site/8B-dice@more/level1-1_Other.html")).text
    assert "return x + 0" in Page(Path("site/8B-dice/level1-1_Add.html")).text
    assert exam.id in Page(Path("site/compare.html")).text
    assert (
        "results/data/exams/more/problems.jsonl"
        in json.loads(Path("site/index.html.manifest.json").read_text())["inputs"]
    )


def test_published_solutions_are_shown_although_they_name_problems_by_number(tmp_path):
    write_jsonl(tmp_path / "generations/supplied/seed0.jsonl", [{"level_id": 1, "task_id": 19, "custom_code": "x = 1"}])
    write_jsonl(tmp_path / "verdicts/supplied/seed0.jsonl", [{"problem_id": "level1/19_ReLU", "sample": 0}])
    (answer,) = answers_of_seed(tmp_path, "supplied", 0)
    assert answer["code"] == "x = 1"


def test_a_study_without_verdicts_is_one_sentence(tmp_path):
    with pytest.raises(DiceError, match="there is nothing to show"):
        explore(ExplorerConfig(results=str(tmp_path), out=str(tmp_path / "site")))


@pytest.fixture(scope="module")
def browser():
    """A real browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra dev")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"needs one of {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser):
    """A page that must neither fail nor ask the network for anything."""
    opened, wrong = browser.new_page(), []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    opened.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith("file:") else None)
    yield opened
    opened.close()
    assert not wrong


def rows(page) -> list[str]:
    """First cells of the rows that are seen."""
    return page.locator("tbody tr:visible td:first-child").all_inner_texts()


def test_a_cell_leads_to_its_answers_and_they_are_filtered(site, page):
    page.goto((site / "index.html").as_uri())
    assert [row.partition(":")[0] for row in rows(page)] == ["SDAR", "DICE", "other"]
    page.select_option("[name=status]", "reported")
    assert rows(page) == ["other"]
    page.select_option("[name=status]", "")
    page.get_by_role("link", name="50.0").first.click()
    assert page.url.endswith("8B-dice.html#level=1")
    assert page.locator("[name=level]").input_value() == "1"
    assert rows(page) == list(PROBLEMS)
    page.select_option("[name=status]", "wrong_value")
    assert rows(page) == [PROBLEMS[1]]
    assert page.locator("form output").inner_text() == "1 of 2 rows"
    page.select_option("[name=status]", "")
    page.fill("[name=text]", "EXPECTED 1.0")
    assert rows(page) == [PROBLEMS[1]]
    page.fill("[name=text]", "")
    page.locator(".counts a", has_text="correct").click()
    assert rows(page) == [PROBLEMS[0]]
    page.get_by_role("link", name=PROBLEMS[0]).click()
    assert "x[0] = 0.0f" in page.locator("article pre.code").inner_text()
    page.get_by_role("link", name="next problem").click()
    assert "x[0] = 1.0f" in page.locator("article pre.code").inner_text()


def test_tokens_appear_in_the_order_in_which_they_were_fixed(site, page):
    page.goto((site / "8B-dice" / "level1-2_Halve.html").as_uri())
    slider, tokens = page.locator(".denoising input"), page.locator(".tokens span")
    code = KERNEL.format(k="1.0f")
    assert "".join(tokens.all_text_contents()) == code

    def fixed() -> list[str]:
        return page.locator(".tokens span:not(.masked)").all_text_contents()

    steps = {0: [], 1: ["source"], 2: ["source", '"""\n#include <torch/extension.h>\n'], 3: ["source", " = "]}
    steps[3] += [steps[2][1], ""]
    for forward, expected in steps.items():
        slider.fill(str(forward))
        assert fixed() == expected
    assert page.locator(".tokens span.new").all_text_contents() == [" = ", ""]
    assert page.locator(".denoising output").inner_text() == "after forward 3 of 5: 4 of 6 tokens fixed"
    colour = "element => getComputedStyle(element).color"
    assert tokens.nth(4).evaluate(colour) == "rgba(0, 0, 0, 0)", "what is not fixed yet is not seen"
    slider.fill("4")
    assert "".join(fixed()) == code
    assert tokens.nth(4).text_content() == code.partition("extension.h>\n")[2], "also beyond characters of four bytes"
    slider.fill("0")
    page.get_by_role("button", name="play").click()
    page.wait_for_function("document.querySelector('.denoising output').value.startsWith('after forward 5 ')")
    assert page.locator(".denoising button").inner_text() == "play"


def test_two_rows_are_compared_problem_by_problem(site, page):
    page.goto((site / "compare.html").as_uri())
    differences = page.locator("#differences tbody tr td")
    assert page.locator("[name=one]").input_value() == UNITS[0]
    turned = differences.all_inner_texts()
    page.select_option("[name=one]", UNITS[1])
    page.select_option("[name=other]", UNITS[0])
    shown = differences.all_inner_texts()
    pairs = json.loads(page.locator("#pairs").text_content() or "")
    assert [line["row"] for line in pairs] == [UNITS[0]]
    assert shown[:5] == ["1", "2", "50.0", "0.0", "50.0"]
    assert shown[6:] == ["1", "0"]
    assert (turned[4], turned[6:]) == ("-50.0", ["0", "1"])
    assert [float(end) for end in shown[5].split(" to ")] == [-float(end) for end in turned[5].split(" to ")][::-1]
    for show, expected in {
        "differ": [PROBLEMS[0]],
        "better": [PROBLEMS[0]],
        "worse": [],
        "all": list(PROBLEMS),
    }.items():
        page.select_option("[name=show]", show)
        assert page.locator("#matrix tbody tr:visible td:first-child").all_inner_texts() == expected
    page.select_option("[name=other]", UNITS[1])
    assert differences.all_inner_texts() == []
    page.locator("#matrix a:visible").first.click()
    assert page.url.endswith("8B-dice/level1-1_Add.html")
