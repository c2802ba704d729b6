"""How fast the trainer trains, and how fast the same machine multiplies matrices.

Letters: N batch, L tokens, D dimension.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import torch
from transformers import BertConfig, BertModel, BertTokenizer

from mtdlab.corpus.corpus import Corpus, open_corpus
from mtdlab.corpus.tokens import TokenStore, tokenise
from mtdlab.device import Device, choose_device
from mtdlab.encoders import pooling
from mtdlab.encoders.embed import Embedder
from mtdlab.encoders.loading import Encoder, load_tokenizer
from mtdlab.evaluation.pairs import Pairs
from mtdlab.evaluation.suite import Evaluation, StsTask, Suite
from mtdlab.methods.registry import make_settings
from mtdlab.settings import Representation, TrainerSettings
from mtdlab.training.inputs import OpenedInputs, RunInputs
from mtdlab.training.loop import train

VOCABULARY, LENGTH, SENTENCES, PAIRS = 30_522, 32, 4096, 8
UNCOUNTED = 3
"""First steps that are not timed: they allocate, and the very first has no FGSM gradient."""
PRODUCT_SECONDS = 0.15
"""How long one square size is multiplied for one measurement."""


@dataclass(frozen=True)
class Size:
    """An encoder, and how many times `--steps` it is timed: a small one's step is short."""

    layers: int
    width: int
    repeat: int

    def __str__(self) -> str:
        return f"{self.layers}x{self.width}"

    def flops(self, sentences: int, tokens: float) -> float:
        """Floating point operations of a step's matrix products, as executed.

        A layer multiplies 12 D² a token (four D x D and two D x 4D matrices), and 2 L D a padded
        place in attention; each is a multiplication and an addition. The last layer does so for
        [CLS] alone, but for keys and values, 2 D² a token. Forward once and backward twice in
        the online branch, forward once in the target's: 4 in all.
        """
        dense, seen = 12 * self.width**2, 2 * LENGTH * self.width
        layer = dense * tokens + seen * LENGTH * sentences
        last = 2 * self.width**2 * (tokens - sentences) + (dense + seen) * sentences
        return 4 * 2 * ((self.layers - 1) * layer + last)


SIZES = (Size(2, 128, 6), Size(4, 256, 2), Size(6, 384, 1))
"""What is called tiny, mini and MiniLM."""
DECILES = (3, 8, 13, 16, 20, 23, 26, 30, 32, 32, 32)
"""Tokens of sentences from Wikipedia, cut at 32: every tenth of them, from the shortest."""
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


def settings_for(steps: int) -> TrainerSettings:
    """The paper's settings, evaluated after the last step only."""
    return make_settings(
        batch_size=64,
        queue_size=512,
        initial_queue_size=128,
        dropout=0.1,
        fgsm_epsilon=5e-9,
        max_length=LENGTH,
        steps=steps,
        evaluate_every=steps,
    )


def sentences(corpus: str | None) -> TokenStore:
    """A text's tokens by MiniLM's tokenizer; without one, random ones, as many as sentences have.

    Raises MtdlabError where the text or the tokenizer (extra minilm) is not there.
    """
    if corpus is not None:
        return tokenise(open_corpus(corpus), load_tokenizer(MINILM), LENGTH)
    random = np.random.default_rng(0)
    ids = random.integers(1000, VOCABULARY, (SENTENCES, LENGTH), dtype=np.int32)
    shares = np.linspace(0, 1, len(DECILES))
    lengths = np.interp(random.random(SENTENCES), shares, DECILES).round().astype(np.int32)
    return TokenStore(ids, lengths, "random")


def inputs_of(size: Size, tokens: TokenStore, device: Device) -> RunInputs:
    """A BERT with random weights, those tokens, a handful of graded pairs."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.width // 64,
        intermediate_size=4 * size.width,
    )
    model = BertModel(config, add_pooling_layer=False)
    torch.nn.Module.to(model, device.device)
    words = [f"word{index}" for index in range(2 * PAIRS)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = BertTokenizer(vocab={word: at for at, word in enumerate(special + words)})
    encoder = Encoder(model, tokenizer)
    task = StsTask(Pairs(words[:PAIRS], words[PAIRS:], np.linspace(0, 5, PAIRS)), encoder)
    embedder = Embedder(model, Representation("cls"), device)
    vectors = task.embed(embedder)
    opened = OpenedInputs(
        encoder=encoder,
        corpus=Corpus("random", "random"),
        dev=task,
        test=task,
        suite=Suite((), None, encoder.sentences),
        external=(),
    )
    before = opened.evaluate(embedder, vectors, vectors)
    return RunInputs(**vars(opened), tokens=tokens, before=before)


def seconds_per_step(
    inputs: RunInputs, steps: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Mean time of `steps` steps of a real run, in seconds of a clock.

    The run has a few steps before them, and one after them: that one ends with the evaluation.
    """
    settings = settings_for(UNCOUNTED + steps + 1)
    device = choose_device(settings).device
    marks: dict[int, float] = {}

    def on_step(done: int, _evaluation: Evaluation | None) -> None:
        if done in (UNCOUNTED, UNCOUNTED + steps):
            wait(device)
            marks[done] = clock()

    train(settings, inputs, on_step)
    return (marks[UNCOUNTED + steps] - marks[UNCOUNTED]) / steps


@contextmanager
def plainly() -> Iterator[None]:
    """The same trainer on transformers' own forward pass, with torch's dropout."""
    with patch.object(pooling, "is_fast", lambda _model: False):
        yield


def product_rate(device: torch.device, dtype: torch.dtype) -> float:
    """Floating point operations a second of the best of a few square matrix products."""
    return max(_rates(device, dtype))


def _rates(device: torch.device, dtype: torch.dtype) -> Iterator[float]:
    for side in (2048, 4096, 8192) if device.type == "cuda" else (512, 1024, 2048):
        left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
        out = left @ right
        wait(device)
        count, start = 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < PRODUCT_SECONDS:
            torch.matmul(left, right, out=out)
            wait(device)
            count += 1
        yield 2 * side**3 * count / passed


def wait(device: torch.device) -> None:
    """Let a GPU finish: it works while the loop is already further on."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
