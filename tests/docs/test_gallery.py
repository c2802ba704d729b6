"""The pages of the gallery: what is kept of them, their links, and how they are made anew."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from gallery import (
    CLAIMS,
    GALLERY,
    PAGES,
    WITH_PAGES,
    differences,
    pack,
    prune,
    shown_figures,
    sources_of,
    written_with,
)
from markdown_blocks import ROOT

from mtdlab.analysis.data.stored_frames import from_parquet, to_parquet

NAMES = [name for page in PAGES for name in written_with(page)]
MADE = """<meta name="generator" content="mtdlab {version}">
<p class="made">{date} · mtdlab {version}</p>
<svg><path id="m{name}" d="L {x} 69.5"/></svg>
<p>{text}</p>
<a href="figures/methods.png">PNG</a>, <a href="figures/methods.svg">SVG</a>
<a href="tables/methods.csv">methods.csv</a>
<p>Cite: mtdlab {version}, page of {date}</p>
<p>This page is self-contained: it loads nothing from the network. Beside it are more.</p>
"""
PAGE = {"version": "1.0", "date": "2026-11-26", "name": "a50b99ecdf", "x": "1.2345678", "text": "a"}
STUB = """import sys
from pathlib import Path
page = Path(sys.argv[-1]) / "methods"
for name in ("figures/methods.png", "figures/methods.svg", "tables/methods.csv", "index.html"):
    (page / name).parent.mkdir(parents=True, exist_ok=True)
    (page / name).write_bytes(Path({made!r}).read_bytes())
"""


def test_the_gallery_has_these_pages() -> None:
    assert sorted(path.parent.name for path in GALLERY.glob("*/index.html")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_kept_with_its_data_and_what_documents_show(name: str) -> None:
    folder = GALLERY / name
    files = {path for path in folder.rglob("*") if path.is_file()}
    own = {path for path in files if path.suffix != ".parquet"}
    assert own == {folder / "index.html", *(each for each in shown_figures() if each in files)}
    if files != own:
        for source in sources_of(name):
            assert len(from_parquet(folder / source)[0].trials)
    # the page of claims has the data of all of its studies
    most = 7 if name == CLAIMS else 2
    assert sum(path.stat().st_size for path in files) <= most * 2**20


@pytest.mark.parametrize("name", NAMES)
def test_links_of_a_page_lead_somewhere(name: str) -> None:
    folder = GALLERY / name
    html = {folder / "index.html": (folder / "index.html").read_text(encoding="utf-8")}
    [own] = html.values()
    links = set(re.findall(r'<a [^>]*href="([^"]*)"', own))
    assert "#files" in links
    ids = re.findall(r'\sid="([^"]+)"', re.sub(r"<svg.*?</svg>", "", own, flags=re.DOTALL))
    assert len(ids) == len({*ids})
    for link in links:
        if link.startswith("https:"):
            continue
        file, _, anchor = link.partition("#")
        path = (folder / (file or "index.html")).resolve()
        assert path.is_file(), link
        if anchor:
            text = html.setdefault(path, path.read_text(encoding="utf-8"))
            assert f'id="{anchor}"' in text, link


def test_the_page_of_claims_leads_to_the_pages_of_its_studies() -> None:
    html = (GALLERY / CLAIMS / "index.html").read_text(encoding="utf-8")
    for study in WITH_PAGES:
        assert f'href="../{study}/index.html#' in html
        assert f"../{study}/data/study.parquet" in sources_of(CLAIMS)


def test_links_to_files_that_are_not_kept_lead_to_the_command() -> None:
    pruned = prune(MADE.format(**PAGE), "methods", ["figures/methods.png"])
    assert re.findall('href="(.*?)"', pruned) == ["figures/methods.png", "#files", "#files"]
    assert '<p id="files">' in pruned
    assert "<code>mtdlab report --from data/study.parquet</code>" in pruned
    with pytest.raises(ValueError, match="methods: 0 lines say what is beside the page"):
        prune(pruned, "methods", [])


def test_rows_of_studies_whose_pages_are_not_kept_have_no_link() -> None:
    own = f'<a href="../{WITH_PAGES[0]}/index.html#claims"><bdi>a claim</bdi></a>'
    other = '<a href="../slides/index.html#claims"><bdi>another</bdi></a>'
    pruned = prune(f"{own}\n{other}\n{MADE.format(**PAGE)}", CLAIMS, [])
    assert pruned.splitlines()[:2] == [own, "<bdi>another</bdi>"]
    assert "</code> makes this page, and those of its studies, with all figures" in pruned
    html = (GALLERY / CLAIMS / "index.html").read_text(encoding="utf-8")
    assert '<a href="#files"><bdi>' not in html


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ({"version": "2.0", "date": "2027-01-01"}, 0),
        ({"name": "788f0a2fbc", "x": "1.2345679"}, 0),
        ({"x": "1.2385678"}, 2),
        ({"text": "b"}, 2),
    ],
)
def test_version_date_and_last_bits_are_no_difference(changed: dict[str, str], count: int) -> None:
    assert len(differences(MADE.format(**PAGE), MADE.format(**PAGE | changed))) == count


def test_data_are_encoded_anew_where_that_makes_them_smaller(tmp_path: Path) -> None:
    study, generated = from_parquet(GALLERY / "ema-rule/data")
    for name, content in to_parquet(study, generated=generated).items():
        (tmp_path / name).write_bytes(content)
    before = sum(path.stat().st_size for path in tmp_path.iterdir())
    pack(tmp_path)
    packed = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert sum(map(len, packed.values())) < 0.9 * before
    again, when = from_parquet(tmp_path)
    assert when == generated
    for frame in ("trials", "curves", "spectra", "scores", "probes"):
        pd.testing.assert_frame_equal(getattr(study, frame), getattr(again, frame))
    assert study.items is not None
    assert again.items is not None
    assert (study.items.values == again.items.values).all()
    pack(tmp_path)
    assert packed == {path: path.read_bytes() for path in tmp_path.iterdir()}


def test_a_page_is_made_anew_and_said_to_differ(tmp_path: Path) -> None:
    for name in ("docs/gallery/methods/data", "tests/docs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    kept = tmp_path / "docs/gallery/methods"
    (kept.parent / "README.md").write_text("![nine methods by score](methods/figures/methods.png)")
    made = tmp_path / "made"
    (tmp_path / "stub/mtdlab").mkdir(parents=True)
    (tmp_path / "stub/mtdlab/__main__.py").write_text(STUB.format(made=str(made)))
    command = [sys.executable, str(tmp_path / "tests/docs/gallery.py"), "methods"]

    def make(**changed: str) -> list[str]:
        made.write_text(MADE.format(**PAGE | changed), encoding="utf-8")
        variables = os.environ | {"PYTHONPATH": str(tmp_path / "stub")}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert make()[0] == "methods: 6 differences"
    assert make()[0] == "methods: as before"
    assert make(text="b")[:4] == [
        "methods: 3 differences",
        "  figures/methods.png",
        "  -<p>a</p>",
        "  +<p>b</p>",
    ]
    files = [path for path in kept.rglob("*") if path.is_file() and path.suffix != ".parquet"]
    assert {str(path.relative_to(kept)) for path in files} == {"index.html", "figures/methods.png"}
    refused = subprocess.run([*command, "none"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "none: choose from wiki-minilm" in refused.stderr
