"""Runs every command and block of the tutorials and guides, one with ``--page=tutorials/sparse-product``."""

from page_blocks import ROOT, run_page


def test_the_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source").symlink_to(ROOT)
    run_page(ROOT / "docs" / f"{page}.md", tmp_path, lambda: capsys.readouterr().out)
