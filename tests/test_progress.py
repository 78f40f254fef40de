"""The bar is for people: nothing is written where nobody watches."""

import io

import pytest

from r2et import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(io.StringIO, False), (Terminal, True)])
def test_a_bar_only_on_a_terminal(monkeypatch, capsys, stream, shown):
    monkeypatch.setenv("TERM", "xterm")
    screen = stream()
    monkeypatch.setattr(progress.sys, "stderr", screen)
    for in_bytes in (False, True):
        with progress.bar("bank: bank.zip", done=10, total=100, in_bytes=in_bytes) as advance:
            advance(90)
    assert ("bank: bank.zip" in screen.getvalue()) == shown
    assert capsys.readouterr().out == ""
