"""Retrieval on a folder in BEIR's layout: nDCG@10 of the documents nearest to each query.

docs/how-to/own-metric.md has the layout. As BEIR does, a document is its title and text joined by a
space, and a document with the id of the query is not a result.

Letters: Q queries, C documents, D dimension.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mtdlab.analysis.measures.geometry import normalise_rows
from mtdlab.corpus.lines import reading
from mtdlab.data_paths import find_data
from mtdlab.encoders.embed import Embedder
from mtdlab.encoders.folders import refuse_retrieval_prompts
from mtdlab.encoders.loading import Encoder
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.items import digest_of, values_in_points
from mtdlab.evaluation.suite import ExternalTask, Split, TaskScore, check_directions
from mtdlab.settings.tasks import BEIR, DEV, score_name

Texts = Mapping[str, str]
Relevance = Mapping[str, Mapping[str, int]]
"""The judged documents of each query, by id."""
CUT = 10
QUERIES = 256
"""How many queries' cosines with all documents are in memory at once."""


class RetrievalTask(ExternalTask):
    """A folder's documents and queries, tokenised once for an encoder."""

    def __init__(self, task: str, encoder: Encoder, prompt: str) -> None:
        """`task` is beir:FOLDER.

        Raises MtdlabError as `read_folder`, and where the encoder has other prompts for queries
        than for documents and none is stated for both.
        """
        if not prompt:
            refuse_retrieval_prompts(str(encoder.model.name_or_path), task)
        self.name = score_name(task)
        folder = find_data("tasks", task.removeprefix(BEIR))
        self._texts, self._asked, self._relevance = read_folder(folder)
        self.has_dev = "dev" in self._relevance
        self._documents = encoder.sentences(self._texts.values(), prompt)
        self._documents_digest = digest_of(*self._texts.items())
        self._queries = {
            split: encoder.sentences([self._asked[query] for query in judged], prompt)
            for split, judged in self._relevance.items()
        }

    def score(self, embedder: Embedder, split: Split) -> list[TaskScore]:
        """The mean nDCG@10 x 100 over the queries of a split, as a list of one score."""
        judged = self._relevance[split]
        name = self.name + (DEV if split == "dev" else "")
        asked, ids = [self._asked[query] for query in judged], np.array(list(self._texts))
        documents = self._documents.embed_all([*self._texts.values()], embedder)
        queries = self._queries[split].embed_all(asked, embedder)
        try:
            check_directions(np.concatenate([documents, queries]).astype(np.float64))
        except ValueError as error:
            return [TaskScore(name, None, str(error), len(judged))]
        rankings = rank_documents(queries, documents, list(judged), ids)
        values = [ndcg(judged[query], ids) for query, ids in rankings]
        digest = digest_of(judged, asked, self._documents_digest)
        items = values_in_points(100 * np.array(values), digest)
        return [TaskScore(name, 100 * float(np.mean(values)), n=len(judged), items=items)]

    def tokens(self, split: Split) -> int:
        return self._documents.token_count + self._queries[split].token_count


def rank_documents(
    queries: NDArray[np.float32],
    documents: NDArray[np.float32],
    names: Sequence[str],
    ids: NDArray[np.str_],
) -> Iterator[tuple[str, list[str]]]:
    """Each query's name and the ids of its nearest documents, nearest first, at most `CUT`.

    The vectors are (Q, D) and (C, D), names (Q,) and ids (C,). Documents of equal similarity stand
    in descending order of their ids, as trec_eval ranks them; it too compares in single precision.
    """
    descending = np.argsort(ids)[::-1]
    unit = normalise_rows(documents[descending])
    for start in range(0, len(queries), QUERIES):
        cosines = (normalise_rows(queries[start : start + QUERIES]) @ unit.T).astype(np.float32)
        for name, row in zip(names[start:], cosines, strict=False):
            # a stable sort keeps the descending order of the ids
            nearest = ids[descending[np.argsort(-row, kind="stable")[: CUT + 1]]]
            yield name, [str(document) for document in nearest if document != name][:CUT]


def ndcg(judged: Mapping[str, int], ids: Sequence[str]) -> float:
    """nDCG@10 of a ranking, 0 to 1, as trec_eval's `ndcg_cut_10`.

    Σ relevance / log2(rank + 1) over the first ten results, divided by that of the best ranking of
    the judged documents. A document that is not judged, or below 0, counts 0; a query without a
    relevant document scores 0.
    """
    gains = [max(0, judged.get(document, 0)) for document in ids[:CUT]]
    best = sorted((max(0, value) for value in judged.values()), reverse=True)[:CUT]
    return _discount(gains) / _discount(best) if any(best) else 0.0


def _discount(gains: Sequence[int]) -> float:
    return float(sum(gain / np.log2(rank + 1) for rank, gain in enumerate(gains, 1)))


def read_folder(folder: Path) -> tuple[Texts, Texts, Mapping[Split, Relevance]]:
    """Documents and queries by id, and the judgments of the splits that exist; test always does.

    Raises MtdlabError with file and line where a file does not fit, and for a query that both
    splits judge: what selects would then be reported.
    """
    if not folder.is_dir():
        raise MtdlabError(f"tasks beir:{folder}: no such folder; give one in BEIR's layout")
    documents = _read_texts(folder / "corpus.jsonl")
    queries = _read_texts(folder / "queries.jsonl")
    splits: tuple[Split, ...] = ("dev", "test")
    relevance = {
        split: _read_relevance(folder / "qrels" / f"{split}.tsv", queries, documents)
        for split in splits
        if split == "test" or (folder / "qrels" / "dev.tsv").is_file()
    }
    if both := sorted(set(relevance.get("dev", {})) & set(relevance["test"])):
        raise MtdlabError(
            f"tasks beir:{folder}: {len(both)} queries are judged in both dev.tsv and test.tsv "
            f"(the first is {both[0]!r}); the splits must have no query in common"
        )
    return documents, queries, relevance


def _read_texts(path: Path) -> dict[str, str]:
    """Title and text by id. An empty document is kept; a repeated id has its last text."""
    texts = {}
    for number, line in _lines(path):
        try:
            row = json.loads(line)
            title, text = row.get("title") or "", row["text"]
            texts[str(row["_id"])] = f"{title} {text}".strip()
        except (ValueError, KeyError, TypeError, AttributeError):
            raise MtdlabError(
                f"tasks {path}:{number}: not a JSON object with the keys _id and text"
            ) from None
    if not texts:
        raise MtdlabError(f"tasks {path}: holds no text; one JSON object is expected a line")
    return texts


def _read_relevance(
    path: Path, queries: Mapping[str, str], documents: Mapping[str, str]
) -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        fields = line.split("\t")
        if number == 1 and not _is_number(fields[-1]):
            continue
        if len(fields) != 3 or not _is_number(fields[2]):
            raise MtdlabError(
                f"tasks {path}:{number}: not query id, document id and a whole number, separated "
                "by tabs"
            )
        query, document, relevance = fields
        if query not in queries:
            raise MtdlabError(f"tasks {path}:{number}: the query {query!r} is not in queries.jsonl")
        if document not in documents:
            raise MtdlabError(
                f"tasks {path}:{number}: the document {document!r} is not in corpus.jsonl"
            )
        judged.setdefault(query, {})[document] = int(relevance)
    if not judged:
        raise MtdlabError(
            f"tasks {path}: judges no query; query id, document id and relevance "
            "are expected a line, below a header"
        )
    return judged


def _is_number(text: str) -> bool:
    return text.strip().removeprefix("-").isdecimal()


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    layout = "BEIR's layout has corpus.jsonl, queries.jsonl, qrels/dev.tsv and qrels/test.tsv"
    with reading(f"tasks {path}", layout):
        text = path.read_text(encoding="utf-8-sig")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.rstrip("\r")
