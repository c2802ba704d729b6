"""`make gallery`: the pages of docs/gallery, made anew from the data beside them.

    python tests/docs/gallery.py [PAGE ...]

The gallery keeps of a page its `index.html`, its `data/` and the figures that a document shows. A
link of the page to any other file leads to its last lines, which have the command that makes it; a
row of a study whose page is not kept has no link. A page is added by its name in PAGES and its
`data/` in docs/gallery.
"""

import argparse
import hashlib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from difflib import unified_diff
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
from markdown_blocks import DOCUMENTS, ROOT, prose_of

GALLERY = ROOT / "docs" / "gallery"
PAGES = (
    "wiki-minilm",
    "sufficiency-minilm-3",
    "queue-or-batch",
    "age-or-number",
    "methods",
    "methods-published-code",
    "methods-minilm",
    "best-history",
    "rate-tolerance-minilm-3",
    "simcse-to-mocose-minilm-3",
    "simcse-to-mocose-minilm-3-one-rate",
    "table7-initial-queue-minilm-3",
    "figure2-mtd-minilm-3",
    "figure2-mtd-minilm-3-n128",
    "table8-queue-slices-minilm-3",
    "table8-queue-slices-minilm-3-branches",
    "paper",
)
SEVERAL = {
    "best-history": (
        "ema-rule",
        "ema-rule-large-batch",
        "ema-rule-short-run",
        "ema-rule-long-queue",
    )
}
"""The studies of a page over several, smallest first; their own pages are written with it."""
CLAIMS = "paper"
"""The page of claims, which has the data of most of its studies beside it and not their pages."""
WITH_PAGES = (
    "figure2-mtd-minilm-3",
    "figure2-mtd-minilm-3-n128",
    "table7-initial-queue-minilm-3",
    "table8-queue-slices-minilm-3",
    "table8-queue-slices-minilm-3-branches",
)
"""The studies of the page of claims that have pages of their own."""
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+\.(?:png|svg))\)")
_FILE_LINK = re.compile(r'(?<=href=")(?:figures|tables)/[^"]+(?=")')
_OWN_PAGE = re.compile(
    rf'<a href="\.\./(?!(?:{"|".join(WITH_PAGES)})/)[^/"]+/index\.html[^"]*">(.*?)</a>'
)
_LAST_LINES = re.compile(r"<p>(This page is self-contained: [^.]*\.) Beside it are .*</p>")
_OF_VERSION_OR_DATE = ('<meta name="generator"', '<p class="made">', "<p>Cite: ")
_PATH = re.compile(r'(?<= d=")[^"]+')
_SPARE = re.compile(r" \n|(?<=[A-Z]) ")
_DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)
_LEAST_SAVED = 0.1
_MOST, _WIDTH = 10, 150


def main() -> None:
    """Make the named pages, all by default, and print which differ from those that were there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=", ".join(PAGES))
    chosen = parser.parse_args()
    if unknown := set(chosen.pages) - set(PAGES):
        parser.error(f"{', '.join(sorted(unknown))}: choose from {', '.join(PAGES)}")
    for page in chosen.pages or PAGES:
        for source in sources_of(page):
            pack((GALLERY / page / source).parent)
        with tempfile.TemporaryDirectory() as made:
            command = [sys.executable, "-m", *command_of(page), "--out", made]
            folder = GALLERY / page
            folder.mkdir(exist_ok=True)
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            for name in written_with(page):
                changes = put_back(Path(made) / name, GALLERY / name)
                print(f"{name}: {len(changes)} differences" if changes else f"{name}: as before")
                print(*(f"  {each[:_WIDTH]}\n" for each in changes[:_MOST]), sep="", end="")
    size = sum(path.stat().st_size for path in GALLERY.rglob("*") if path.is_file())
    print(f"{GALLERY.relative_to(ROOT)}: {size / 1e6:.1f} MB")


def written_with(page: str) -> tuple[str, ...]:
    """The pages that the command of a page writes."""
    return (*SEVERAL.get(page, ()), page)


def sources_of(page: str) -> list[str]:
    """The data from which a page is made, seen from the page's folder."""
    if page == CLAIMS:
        found = (GALLERY / page).glob("data/*/study.parquet")
        own = sorted(path.relative_to(GALLERY / page).as_posix() for path in found)
        return [*own, *(f"../{study}/data/study.parquet" for study in WITH_PAGES)]
    if page in SEVERAL:
        return [f"../{study}/data/study.parquet" for study in SEVERAL[page]]
    return ["data/study.parquet"]


def command_of(page: str) -> list[str]:
    """The command that makes a page, as it is typed in the page's folder."""
    sources = chain.from_iterable(("--from", source) for source in sources_of(page))
    named = ["--name", page] if page == CLAIMS or page in SEVERAL else []
    return ["mtdlab", "report", *named, *(["--transfer"] if page in SEVERAL else []), *sources]


def shown_figures() -> set[Path]:
    """The figures that documents show."""
    return {
        (document.parent / name).resolve()
        for document in DOCUMENTS
        for name in IMAGE.findall(prose_of(document))
    }


def put_back(made: Path, kept: Path) -> list[str]:
    """Put what is kept of a page in its place; what differs from what was there.

    `made` is the folder of the page with all of its files, `kept` that of the gallery.
    """
    figures = sorted(
        f"{path.relative_to(kept)}" for path in shown_figures() if path.is_relative_to(kept)
    )
    html = prune((made / "index.html").read_bytes().decode(), kept.name, figures)
    contents = {"index.html": html.encode()}
    contents |= {name: (made / name).read_bytes() for name in figures}
    before = {name: path.read_bytes() for name in contents if (path := kept / name).exists()}
    for folder in ("figures", "tables"):
        shutil.rmtree(kept / folder, ignore_errors=True)
    for name, content in contents.items():
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        (kept / name).write_bytes(content)
    drawn = [name for name in figures if before.get(name) != contents[name]]
    return drawn + differences(before.get("index.html", b"").decode(), html)


def prune(html: str, page: str, figures: list[str]) -> str:
    """A page whose links to files that are not kept lead to its last lines, which make them.

    Its paths have no spare blanks, which take a tenth of a page.
    """
    kept = [*figures, *(["data/"] if page not in SEVERAL else [])]
    beside = " and ".join(f"<code>{name}</code>" for name in kept)
    of_studies = "" if page != CLAIMS else ", and those of its studies,"
    last = (
        rf'<p id="files">\1 The gallery keeps {beside} beside it. '
        f"<code>{shlex.join(command_of(page))}</code> makes this page{of_studies} with all figures "
        "(PNG, SVG) and tables (CSV, LaTeX, Markdown).</p>"
    )
    if page == CLAIMS:
        html = _OWN_PAGE.sub(r"\1", html)
    html, count = _LAST_LINES.subn(last, html)
    if count != 1:
        raise ValueError(f"{page}: {count} lines say what is beside the page, not 1")
    html = _PATH.sub(lambda path: _SPARE.sub("", path[0]), html)
    return _FILE_LINK.sub(lambda link: link[0] if link[0] in kept else "#files", html)


def differences(before: str, after: str) -> list[str]:
    """The lines that differ by more than version, date and the last bits of drawings."""
    old, new = ([*_lasting(html)] for html in (before, after))
    lines = islice(unified_diff(old, new, n=0, lineterm=""), 2, None)
    return [line for line in lines if line.startswith(("-", "+"))]


def _lasting(html: str) -> Iterator[str]:
    for line in _DRAWING.sub(_without_last_bits, html).splitlines():
        if not line.startswith(_OF_VERSION_OR_DATE):
            yield line


def _without_last_bits(drawing: re.Match[str]) -> str:
    """A drawing whose coordinates have three decimals, without hashes of more in its names."""
    named = re.sub(r"[0-9a-f]{10}", "HASH", drawing[0])
    return re.sub(r"-?\d+\.\d{4,}", lambda number: f"{float(number[0]):.3f}", named)


def pack(data: Path) -> None:
    """Encode the tables of a page's data anew, unchanged, where that saves a tenth.

    A report encodes numbers by a dictionary, which is longer than numbers that do not repeat.
    """
    main = data / "study.parquet"
    table = parquet.read_table(main)
    about = json.loads(table.schema.metadata[b"mtdlab"])
    packed = {name: _encode(parquet.read_table(data / name)) for name in about["files"]}
    about["files"] = {name: hashlib.sha256(each).hexdigest() for name, each in packed.items()}
    others = {name: value for name, value in about.items() if name != "digest"}
    text = json.dumps(others, sort_keys=True) + str(table.to_pylist())
    # as `stored_frames` computes it
    about["digest"] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    own = {**table.schema.metadata, b"mtdlab": json.dumps(about).encode()}
    packed[main.name] = _encode(table.replace_schema_metadata(own))
    size = sum((data / name).stat().st_size for name in packed)
    if sum(map(len, packed.values())) < (1 - _LEAST_SAVED) * size:
        for name, content in packed.items():
            (data / name).write_bytes(content)


def _encode(table: Any) -> bytes:
    """A table as Parquet: floats byte by byte of all values, other columns by a dictionary."""
    plain = io.BytesIO()
    parquet.write_table(table, plain)
    schema = parquet.ParquetFile(plain).schema
    columns = [schema.column(index) for index in range(len(schema))]
    floats = [each.path for each in columns if each.physical_type in ("FLOAT", "DOUBLE")]
    packed, bare = io.BytesIO(), table.replace_schema_metadata(None)
    with parquet.ParquetWriter(
        packed,
        bare.schema,
        compression="zstd",
        compression_level=19,
        use_byte_stream_split=floats,
        use_dictionary=[each.path for each in columns if each.path not in floats],
        store_schema=False,
        write_statistics=False,
    ) as writer:
        writer.write_table(bare)
        writer.add_key_value_metadata(table.schema.metadata)
    return packed.getvalue()


if __name__ == "__main__":
    main()
