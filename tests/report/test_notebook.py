"""Results in a notebook: everything that counts, nothing that runs, no text of others as markup."""

import re
from dataclasses import replace

from audits import HOSTILE, hostile, skipped, tabular
from r2et.audit import Audit
from r2et.reason.result import PersonReasons, Reason, Reasons


def words(html):
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def person(row, proved=None, **own):
    reasons = (
        Reason(1, "income", "900", "2000", 0.7, proved, 1.0, sentence="income of 900"),
        Reason(2, "age", "20", "40", 0.1, False, 0.0, broken_by="income 920"),
    )
    return PersonReasons(row, "no", 0.8, "no", reasons, proved, **own)


def test_an_audit():
    text = Audit(tabular())._repr_html_()
    assert "Rows proved" in words(text)
    assert re.search(r"■ proved [\d.]+ %", words(text).replace("&#9632;", "■"))
    assert "Within a change of" in words(text)
    widths = [float(w) for w in re.findall(r"flex:([\d.]+)", text)]
    assert abs(sum(widths) - 1) < 1e-3
    assert "<script" not in text


def test_what_could_not_be_measured():
    text = words(Audit(skipped())._repr_html_())
    assert "Neither a proof nor an attack was run" in text


def test_texts_of_others_are_texts():
    assert HOSTILE not in Audit(hostile())._repr_html_()
    given = Reasons((person(HOSTILE), person("<b>")), 2, HOSTILE, changes="<i>", notes=(HOSTILE,))
    text = given._repr_html_()
    assert HOSTILE not in text
    assert "<b>" not in text
    assert "<i>" not in text


def test_reasons():
    given = Reasons(
        (person(3, True), *(person(i, False, broken_by="age 21") for i in range(12))),
        2,
        "the mean",
        changes="age within 1",
    )
    text = words(given._repr_html_())
    assert "Row 3: no (80 %)" in text
    assert "1 income of 900 +0.70 proved" in text
    assert "2 age: 20 +0.10 lost with income 920" in text
    assert "... and 3 more rows" in text
    assert "under the changes" in text
    # What takes a reason away is often a long sentence: the reason beside it keeps its room.
    roomy = re.findall(r'<td style="[^"]*min-width[^"]*">([^<]*)', given._repr_html_())
    assert roomy[:2] == ["income of 900", "age: 20"]
    plain = replace(given[0], reasons=(Reason(1, "age", "20", "40", 0.1),))
    assert "under the changes" not in Reasons((plain,), 2, "the mean")._repr_html_()
    assert "Contributions are compared with the mean." in text
    nobody = Reasons((PersonReasons(0, "yes", 0.9, "no", ()),), 2, "the mean")
    text = words(nobody._repr_html_())
    assert "Row 0: yes (90 %), toward no" in text
    assert "no column speaks for no" in text
