from pathlib import Path

import pytest

from trainscope.cli.main import run

pytest.importorskip("altair")
pytest.importorskip("vl_convert")


def test_a_folder_of_something_else_is_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("mine")
    assert run(["site", "build", "examples/logs/healthy.jsonl", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "holds other files and no site" in said
    assert said.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_no_run_at_all_is_no_data(tmp_path, capsys):
    (tmp_path / "logs").mkdir()
    assert run(["site", "build", str(tmp_path / "logs"), "--out", str(tmp_path / "site")]) == 3
    assert capsys.readouterr().err.startswith("error: ")


def test_only_a_site_is_served(tmp_path, capsys):
    assert run(["site", "serve", str(tmp_path)]) == 2
    assert "is no site; build one with trainscope site build" in capsys.readouterr().err


@pytest.mark.slow
def test_what_was_built_is_said_and_a_log_that_could_not_be_read_is_told(tmp_path, capsys):
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"step": 1, "loss": \n')
    out = tmp_path / "site"
    assert run(["site", "build", "examples/logs/healthy.jsonl", str(broken), "--out", str(out), "--jobs", "1"]) == 2
    said = capsys.readouterr().err
    assert "broken.jsonl" in said
    assert "1 run; 2 logs read, 1 page drawn" in said
    assert (out / "index.html").is_file()


@pytest.mark.parametrize(
    "url",
    [
        "https://x?y=1",
        "https://x#f",
        "https://[::1",
        "https://:80",
        "https://\u00fc.example",
        "javascript:alert(1)",
        '"><script>',
        "example.org",
        "http://",
        "https://a b",
        "ftp://a/",
    ],
)
def test_only_a_web_address_makes_links(tmp_path, capsys, url):
    out = tmp_path / "site"
    assert run(["site", "build", "examples/logs/healthy.jsonl", "--out", str(out), "--base-url", url]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: --base-url {url}: is no web address; ")
    assert said.count("\n") == 1
    assert not out.exists()


def test_a_site_is_never_written_to_a_folder_called_like_an_address(tmp_path, capsys, monkeypatch):
    log = Path("examples/logs/healthy.jsonl").resolve()
    monkeypatch.chdir(tmp_path)
    assert run(["site", "build", str(log), "--out", "memory://x/site"]) == 2
    assert "a site is written to a folder of this machine" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [None, "", '{"step": 1, "loss": \n', '{"step": 1, "accuracy": 2}\n'])
def test_a_build_that_fails_leaves_no_folder(tmp_path, content):
    log, out = tmp_path / "a.jsonl", tmp_path / "site"
    if content is not None:
        log.write_text(content)
    assert run(["site", "build", str(log), "--out", str(out), "--jobs", "1"]) in {2, 3}
    assert not out.exists()
    out.mkdir()
    assert run(["site", "build", str(log), "--out", str(out), "--jobs", "1"]) in {2, 3}
    assert out.is_dir(), "a folder that was there is not ours to remove"
