"""Documents: which lines are joined, and that they are cached under their own key."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedTokenizerBase

from mtdlab.corpus.corpus import open_corpus
from mtdlab.corpus.documents import DocumentCorpus, join_documents
from mtdlab.corpus.tokens import token_folder, tokenise
from mtdlab.errors import MtdlabError
from mtdlab.training.inputs import check_inputs, load_inputs
from tests.conftest import Settings
from tests.corpus.conftest import Write

Documents = Callable[[str, int], DocumentCorpus]


@pytest.fixture
def documents(write: Write, tokenizer: PreTrainedTokenizerBase) -> Documents:
    """The documents of a text, of at most so many tokens."""
    return lambda text, length: join_documents(open_corpus(write(text)), tokenizer, length)


def test_lines_are_joined_until_the_next_one_no_longer_fits(
    documents: Documents, tokenizer: PreTrainedTokenizerBase
) -> None:
    """8 tokens, [CLS] and [SEP] included: 6 words; 2 + 3 + 1 fit, a line of 7 stands alone."""
    text = "a dog\nthe red cat\nsleeps\nbird\nthe old man reads in the park\nruns\nquietly\n"
    found = documents(text, 8)
    assert list(found.sentences()) == [
        "a dog the red cat sleeps",
        "bird",
        "the old man reads in the park",
        "runs quietly",
    ]
    assert tokenise(found, tokenizer, 8).lengths.tolist() == [8, 3, 8, 4]


def test_blank_lines_and_files_keep_documents_apart(
    documents: Documents, write: Write, tmp_path: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    one = documents("\na dog\ncat\n\n  \nbird\nsleeps\n\n", 32)
    assert list(one.sentences()) == ["a dog cat", "bird sleeps"]
    write("runs\nquietly", "two.txt")
    whole = join_documents(open_corpus(str(tmp_path)), tokenizer, 32)
    assert list(whole.sentences()) == ["a dog cat", "bird sleeps", "runs quietly"]


def test_many_lines_are_joined_as_one_by_one(documents: Documents) -> None:
    """More than are tokenised at once; every line stands in exactly one document."""
    lines = [f"{'the ' * (at % 7)}dog" for at in range(3000)]
    found = list(documents("\n".join(lines), 20).sentences())
    assert " ".join(found) == " ".join(lines)
    sizes = [len(text.split()) for text in found]
    assert max(sizes) <= 18
    following = [text.split(" dog")[0].count("the") + 1 for text in found[1:]]
    assert all(size + more > 18 for size, more in zip(sizes, following, strict=False))


def test_documents_have_their_own_cache(
    tiny_corpus: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    corpus = open_corpus(str(tiny_corpus))
    joined = join_documents(corpus, tokenizer, 24)
    short = join_documents(corpus, tokenizer, 16)
    corpora = ((corpus, 24), (joined, 24), (short, 16))
    assert len({token_folder(texts, tokenizer, length) for texts, length in corpora}) == 3


def test_a_method_that_reads_documents_gets_them(settings_of: Settings) -> None:
    settings = settings_of(method="contriever", max_length=24, batch_size=4)
    inputs = load_inputs(settings)
    [view] = inputs.views
    assert len(view) < len(inputs.tokens) / 2
    own, joined = (int(tokens.lengths.sum()) - 2 * len(tokens) for tokens in (inputs.tokens, view))
    assert own == joined
    noisy = load_inputs(settings.model_copy(update={"augmentation": "repetition:0.3"}))
    online, target = noisy.views
    assert np.array_equal(target.ids, view.ids)
    assert len(online) == len(target)
    assert not np.array_equal(online.ids, target.ids)
    with pytest.raises(
        MtdlabError, match=r"is 50, but the corpus has \d+ sentences \(or documents"
    ):
        check_inputs(settings, batch_size=50)
