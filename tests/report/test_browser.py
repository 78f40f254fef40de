"""The page as a reader has it: in a real browser, on a phone, by keyboard, without JavaScript."""

import pytest

from audits import HOSTILE, NAMES, colour, hostile, image, kept, ranked, several, skipped, tabular
from r2et.report import page
from r2et.wording import significant

pytestmark = pytest.mark.slow  # test_page.py reads the same pages without a browser

MAKERS = {
    "tabular": lambda: [tabular()],
    "image": lambda: [image()],
    "colour": lambda: [colour()],
    "skipped": lambda: [skipped()],
    "hostile": lambda: [hostile()],
    "several": several,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, make in MAKERS.items():
        page(make(), folder / f"{name}.html")
    return folder


@pytest.fixture
def show(browser, files):
    """Open a page; whatever it complains about or asks the network for fails the test."""
    contexts, trouble = [], []

    def call(name, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        tab = context.new_page()
        address = (files / f"{name}.html").as_uri()
        tab.on("console", lambda message: trouble.append(f"console: {message.text}"))
        tab.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        tab.on("dialog", lambda dialog: (trouble.append("dialog"), dialog.dismiss()))

        def request(asked):
            if asked.url != address and not asked.url.startswith("data:image/png;base64,"):
                trouble.append(f"request: {asked.url}")

        tab.on("request", request)
        tab.goto(address)
        return tab

    yield call
    for context in contexts:
        context.close()
    assert trouble == []


def words(tab, selector):
    return [" ".join(t.split()) for t in tab.locator(selector).all_text_contents()]


@pytest.mark.parametrize("name", MAKERS)
def test_pages_load_in_peace_and_everything_drawn_has_words(show, name):
    tab = show(name)
    bare = tab.evaluate(
        """() => [...document.querySelectorAll('img, svg')].filter((e) => {
          if (e.getAttribute('aria-hidden') === 'true') return false;
          if (e.tagName === 'IMG') return !e.alt || !e.naturalWidth;
          const names = (e.getAttribute('aria-labelledby') || '').split(' ');
          return !names.every((n) => (document.getElementById(n)?.textContent || '').length > 3);
        }).map((e) => e.outerHTML.slice(0, 200))"""
    )
    assert bare == []
    # What is hidden from those who hear the page has its text beside it.
    alone = tab.evaluate(
        """() => [...document.querySelectorAll('svg[aria-hidden=true]')]
          .filter((e) => !e.parentElement.querySelector('.rank, img[alt]')).length"""
    )
    assert alone == 0
    unlabelled = tab.evaluate(
        """() => [...document.querySelectorAll('select, input')].filter((e) => !e.labels.length)
          .length + [...document.querySelectorAll('th')].filter((e) => !e.scope).length"""
    )
    assert unlabelled == 0
    for landmark in ("header", "nav", "main", "footer"):
        assert tab.locator(f"body {landmark}").count() >= 1


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("width", [320, 390])
def test_nothing_sticks_out_on_a_phone(show, name, width):
    tab = show(name, width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    text = tab.evaluate(
        """() => Math.min(...[...document.querySelectorAll('.chart text')].map((t) =>
          t.getBoundingClientRect().height).filter((h) => h > 0), 99)"""
    )
    assert text >= 10  # letters of charts do not shrink with the chart


def expected(row, number, k=4):
    """What the table of bars must say about a step: name, ranks, and what became of it."""
    before, after = row["scores"], row["steps"][number]["scores"]
    old, new = ranked(before, k), ranked(after, k)
    lines = {}
    for rank, i in enumerate(ranked(before, 12), 1):
        word = "stays" if i in old and i in new else "left" if i in old else "entered"
        now = ranked(after, 12).index(i) + 1
        lines[NAMES[i]] = [str(rank), str(now), word if i in old or i in new else "–"]  # noqa: RUF001
    return lines


def table(tab):
    found = {}
    for line in tab.locator(".explore table.bars tbody tr").all():
        cells = [" ".join(c.split()) for c in line.locator("td").all_text_contents()]
        found[line.locator("th").text_content()] = cells
    return found


def check_step(tab, row, number):
    step = row["steps"][number]
    said = expected(row, number)
    shown = table(tab)
    assert shown == {name: said[name] for name in shown}
    must = {n for n, (_, _, word) in said.items() if word != "–"}  # noqa: RUF001
    assert must <= set(shown)
    stay = round(step["precision"] * 4)
    facts = dict(zip(words(tab, ".explore dt"), words(tab, ".explore dd"), strict=True))
    counted = "all 4" if stay == 4 else f"{stay} of 4"
    assert facts["Kept (P@k)"] == f"{stay * 25} % ({counted})"
    proved = round(step["proved_precision"] * 4)
    assert facts["Proved to stay"] == {4: "all 4", 0: "0 of 4"}.get(
        proved, f"at least {proved} of 4"
    )
    assert words(tab, ".explore output") == [significant(step["radius"])]
    (sentence,) = words(tab, ".explore .say")
    assert sentence.startswith(
        f"Row {row['index']}, change up to {significant(step['radius'])}: {counted} reasons stay."
    )
    out, new = ([n for n, (_, _, w) in said.items() if w == word] for word in ("left", "entered"))
    moved = f"Left: {', '.join(out)}. Entered: " if out else ""
    assert words(tab, ".explore .moved")[0].startswith(moved)
    assert set(new) == {n for n in new if n in words(tab, ".explore .moved")[0]}
    changes = words(tab, ".explore table.changes tbody tr th")
    moves = [abs(b - a) for a, b in zip(row["x"], step["x"], strict=True)]
    assert changes[0] == NAMES[moves.index(max(moves))]


def test_choosing_a_row_and_a_radius_shows_exactly_that(show):
    tab, rows = show("tabular"), tabular()["shown"]
    check_step(tab, rows[0], 3)  # starts with the worst row at the audit's radius, 0.1
    for number in (0, 7):
        tab.locator(".explore input").fill(str(number + 1))
        check_step(tab, rows[0], number)
    for index, row in enumerate(rows):
        tab.locator(".explore select").select_option(str(index))
        check_step(tab, row, 3)
    assert (
        kept(rows[0]["scores"], rows[0]["steps"][7]["scores"], 4) < 1
    )  # so that there is a change


def test_the_unchanged_row_is_the_first_step(show):
    tab = show("tabular")
    tab.locator(".explore input").fill("0")
    assert words(tab, ".explore output") == ["0"]
    assert words(tab, ".explore .say") == ["Row 17, unchanged: the 4 reasons as they are shown."]
    assert {word for _, _, word in table(tab).values()} == {"stays", "–"}  # noqa: RUF001
    assert all(before == after for before, after, _ in table(tab).values())
    assert "The input is unchanged." in words(tab, ".explore .hint")


def test_bars_are_as_long_as_the_scores(show):
    tab, row = show("tabular"), tabular()["shown"][0]
    largest = max(row["scores"])
    for line in tab.locator(".explore table.bars tbody tr").all():
        score = row["scores"][NAMES.index(line.locator("th").text_content())]
        drawn = float(line.locator("rect").first.get_attribute("width"))
        assert drawn == pytest.approx(100 * score / largest, abs=0.06)


def test_by_keyboard_alone(show):
    tab, rows = show("tabular"), tabular()["shown"]
    chooser, slider = tab.locator(".explore select"), tab.locator(".explore input")
    for _ in range(60):
        tab.keyboard.press("Tab")
        if chooser.evaluate("e => e === document.activeElement"):
            break
    outline = chooser.evaluate(
        "e => getComputedStyle(e).outlineStyle + getComputedStyle(e).outlineWidth"
    )
    assert outline == "solid3px"
    tab.keyboard.press("ArrowDown")
    check_step(tab, rows[1], 3)
    tab.keyboard.press("Tab")
    assert slider.evaluate("e => e === document.activeElement")
    tab.keyboard.press("ArrowRight")
    check_step(tab, rows[1], 4)
    assert slider.get_attribute("aria-valuetext") == "radius 0.2"
    tab.keyboard.press("End")
    check_step(tab, rows[1], 7)
    assert tab.locator("[aria-live=polite] .say").count() == 1


def test_the_skip_link_comes_first(show):
    tab = show("tabular")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the findings"
    assert tab.evaluate("document.activeElement.getBoundingClientRect().left") >= 0


@pytest.mark.parametrize(("name", "make"), [("image", image), ("colour", colour)])
def test_maps_and_marks_change_with_the_radius(show, name, make):
    tab, row = show(name), make()["shown"][0]
    seen = set()
    for number in (0, 3, 7):
        tab.locator(".explore input").fill(str(number + 1))
        after = row["steps"][number]["scores"]
        stay = len(set(ranked(row["scores"], 10)) & set(ranked(after, 10)))
        sentence = f"{'all 10' if stay == 10 else f'{stay} of 10'} pixels stay."
        assert sentence in words(tab, ".explore .say")[0]
        pictures = tab.locator(".explore img")
        assert pictures.count() == 4
        marks = [p.get_attribute("d") for p in tab.locator(".explore .mark").all()]
        # before: stay, leave; after: stay, enter
        assert [d.count("M") for d in marks] == [stay, 10 - stay, stay, 10 - stay]
        assert stay in range(11)
        seen.add(pictures.nth(3).get_attribute("src"))
    assert len(seen) == 3
    brightest = max(range(64), key=row["scores"].__getitem__)
    pixel = tab.evaluate(
        """([column, line]) => { const img = document.querySelectorAll('.explore img')[2];
          const canvas = document.createElement('canvas'); canvas.width = canvas.height = 8;
          const pen = canvas.getContext('2d'); pen.drawImage(img, 0, 0);
          return [img.naturalWidth, ...pen.getImageData(column, line, 1, 1).data]; }""",
        [brightest % 8, brightest // 8],
    )
    assert pixel == [8, 255, 236, 140, 255]


@pytest.mark.parametrize("name", MAKERS)
def test_without_javascript_every_static_part_is_there(show, name):
    tab = show(name, java_script_enabled=False)
    assert tab.locator(".verdict").first.is_visible()
    assert tab.locator("table.figures").first.is_visible()
    assert tab.locator("#glossary dt").count() > 5
    if name == "skipped":
        return
    assert tab.locator(".chart svg").first.is_visible()
    rows = tab.locator("article.row")
    audits = len(MAKERS[name]())
    assert rows.count() == audits * (2 if name in ("image", "colour") else 3)
    inside = "img" if name in ("image", "colour") else "table.bars"
    assert rows.first.locator(inside).first.is_visible()
    assert not tab.locator(".explore").first.is_visible()
    assert tab.get_by_text("needs JavaScript").first.is_visible()


def test_hostile_names_are_text(show):
    tab = show("hostile")
    names = tab.locator(".explore table.bars tbody th").all_text_contents()
    assert names
    assert all(name.startswith(HOSTILE) for name in names)
    assert HOSTILE in tab.title()
    assert tab.locator("img").count() == 0
    assert tab.locator("script").count() == 2
    tab.locator(".explore input").fill("8")
    assert HOSTILE in tab.locator(".explore .moved").text_content()
    assert tab.locator("img").count() == 0


CONTRAST = """() => {
  const numbers = (c) => [...c.match(/[\\d.]+/g).map(Number), 1];
  const curve = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => curve(v / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = numbers(getComputedStyle(e).backgroundColor);
      if (c[3] > 0.99) return c;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const e of document.querySelectorAll('body *:not(script, title, desc)')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length) continue;
    const style = getComputedStyle(e), svg = e instanceof SVGElement;
    const ink = numbers(svg ? style.fill : style.color);
    // Words on an area of a chart carry that area's colour around them.
    const back = svg && style.stroke !== 'none' ? numbers(style.stroke) : behind(e);
    const [a, b] = [light(ink), light(back)].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) poor.push([e.outerHTML.slice(0, 80), ratio]);
  }
  return poor;
}"""


@pytest.mark.parametrize("name", ["tabular", "image", "several", "skipped"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(show, name, scheme):
    tab = show(name, color_scheme=scheme)
    dark = tab.evaluate("parseInt(getComputedStyle(document.body).backgroundColor.slice(4)) < 60")
    assert dark == (scheme == "dark")
    assert tab.evaluate(CONTRAST) == []


def test_on_paper_the_controls_are_gone_and_folds_open(show):
    tab = show("several")
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not tab.locator("nav").is_visible()
    for hidden in (".explorer", ".up", "table.numbers"):  # the curve itself is drawn
        some = tab.locator(hidden)
        assert some.count() > 1
        assert not any(part.is_visible() for part in some.all())
    shown = tab.locator("table.figures, table.settings")
    assert shown.count() == 8
    assert all(table.is_visible() for table in shown.all())
    assert tab.locator("article.row").count() == 12
    assert (
        tab.evaluate("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
    )
    assert tab.pdf()[:5] == b"%PDF-"


LINES = """(word) => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), lines = [];
  for (let node; (node = walker.nextNode());) {
    const at = node.data.indexOf(word), range = document.createRange();
    if (at < 0 || !node.parentElement.checkVisibility()) continue;
    range.setStart(node, at);
    range.setEnd(node, at + word.length);
    lines.push(range.getClientRects().length);
  }
  return lines;
}"""


def test_on_paper_words_and_digests_are_not_cut(show):
    tab = show("tabular", width=680)  # A4 between its margins
    tab.emulate_media(media="print")
    for word in (
        "comprehensiveness",
        "sufficiency",
        tab.locator(".settings .code").first.inner_text(),
    ):
        lines = tab.evaluate(LINES, word)
        assert lines
        assert set(lines) == {1}, word
    aligned = "all => new Set(all.map(e => getComputedStyle(e).textAlign)).size"
    assert tab.locator(".changes").first.locator("th, td").evaluate_all(aligned) == 1
    cell, table = tab.locator(".figures th[scope=row]").first, tab.locator(".figures").first
    assert cell.bounding_box()["width"] >= 0.45 * table.bounding_box()["width"]
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert tab.evaluate(wide)


def test_the_link_to_each_model_leads_to_it(show):
    tab = show("several")
    for link in tab.locator("nav a").all():
        target = link.get_attribute("href")
        assert tab.locator(target).count() == 1
    assert words(tab, "h2.model") == ["vanilla", "r2et", "certified", "weak"]
