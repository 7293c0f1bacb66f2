"""What strangers wrote drives neither the terminal nor the table it is shown in."""

import io

import pytest
from rich.console import Console

from service.cli import output


@pytest.mark.parametrize(
    "text",
    ["\x1b[31mred\x1b[0m", "\x1b]8;;http://evil\x07link", "a\rb", "a\nb", "\u202eright to left", "[red]markup[/red]"],
)
def test_hostile_names_are_spelt_out(monkeypatch: pytest.MonkeyPatch, text: str):
    terminal = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=200)
    monkeypatch.setattr(output, "results", terminal)
    output.print_table("t", ("agent",), [(text,)])
    shown = terminal.file.getvalue()
    assert output.visible(text) in shown
    assert "\x1b[31m" not in shown
    assert "\u202e" not in shown
    assert "\x1b]8" not in shown


def test_visible_keeps_readable_text():
    assert output.visible("Käse 东 [x]") == "Käse 东 [x]"


def test_a_title_is_one_line_however_narrow_the_table(monkeypatch: pytest.MonkeyPatch):
    narrow = Console(file=io.StringIO(), width=20)
    monkeypatch.setattr(output, "results", narrow)
    output.print_table("a title longer than [twenty] cells", ("n",), [(1,)])
    assert narrow.file.getvalue().splitlines()[0] == "a title longer than [twenty] cells"
