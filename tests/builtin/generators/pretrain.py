"""Rebuild the built-in encoder: masked-language training of a small BERT on the built-in corpus.

    python -m tests.builtin.generators.pretrain OUT

The encoder is trained on the training sentences and on sentences that define words, not on graded
pairs. Words are masked as in BERT (Devlin et al. 2019, section 3.1: of the chosen words 80 % become
[MASK], 10 % another word, 10 % are unchanged). Content words are chosen more often than function
words of the templates, which are learned quickly.

Letters: N batch, L tokens, V vocabulary, M masked positions of a batch.
"""

import re
import string
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import BertConfig, BertForMaskedLM, BertModel, BertTokenizer

from mtdlab.builtin import builtin_sentences
from tests.builtin.generators.concepts import ACTIONS, DETAILS, NOUNS, Concept, concepts_under
from tests.builtin.generators.render import conjugate, function_words

_SAME = (
    "another word for {x} is {y}.",
    "{x} means the same as {y}.",
    "{x}, that is to say {y}.",
    "{x} or {y}, it is the same.",
    "{x} is {y}.",
)
_KIND = (
    "{x} is a kind of {kind}.",
    "{x} is a {kind}.",
    "the {kind} is called {x}.",
    "{x} has to do with {field}.",
)
_SIBLINGS = "{x} and {y} are both of the kind {kind}."
_FORMS = ("to {v.base} is {v.ing}.", "{v.base}, {v.past}, {v.pp}, {v.ing}.")


def defining_sentences() -> list[str]:
    """Every defining sentence once, sorted, in lower case."""
    sentences: set[str] = set()
    for action in ACTIONS.values():
        verbs = [conjugate(word) for word in action.words]
        forms = [(v.base, v.past, v.pp, v.ing) for v in verbs]
        sentences.update(_define(action, forms))
        sentences.update(_siblings(action, ACTIONS))
        sentences.update(template.format(v=verb) for verb in verbs for template in _FORMS)
    for table in (NOUNS, DETAILS):
        for concept in table.values():
            sentences.update(_define(concept, [(_bare(word),) for word in concept.words]))
            sentences.update(_siblings(concept, table))
    return sorted(sentences)


def _bare(word: str) -> str:
    return word.lstrip("~")


def _define(concept: Concept, words: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Sentences that define a concept's words; `words` has the forms of each in the same order."""
    for one, other in permutations(words, 2):
        for x, y in zip(one, other, strict=True):
            yield from (template.format(x=x, y=y) for template in _SAME)
    field, kind = concept.path[:2]
    for x in (form for forms in words for form in forms):
        yield from (template.format(x=x, kind=kind, field=field) for template in _KIND)


def _siblings(concept: Concept, table: dict[str, Concept]) -> Iterator[str]:
    for sibling in concepts_under(table, concept.kind):
        if sibling != concept:
            for word in concept.words:
                for other in sibling.words:
                    yield _SIBLINGS.format(x=_bare(word), y=_bare(other), kind=concept.path[1])


_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_POOL = 64  # number of batches that are sorted by length together


@dataclass(frozen=True)
class PretrainSettings:
    """The settings of the built-in encoder. Learning rate: linear warm-up, then linear decay.

    Training stops after a third of the decay. After the full decay, masked-language training alone
    gives [CLS] vectors a score that contrastive training can only lower, which would make the
    encoder useless for studies.
    """

    steps: int = 2_000
    decay_steps: int = 6_000
    batch_size: int = 128
    learning_rate: float = 2e-3
    warmup_steps: int = 200
    weight_decay: float = 0.1
    masked_share: float = 0.3
    masked_share_of_function_words: float = 0.06
    repeat_definitions: int = 2
    max_length: int = 32
    seed: int = 0


def make_tokenizer(sentences: list[str]) -> BertTokenizer:
    """A lower-casing WordPiece tokenizer: the words of `sentences`, characters for other words.

    Its vocabulary is not trained, because the order of merges of equal frequency is not
    deterministic.
    """
    words = set(re.findall(r"[a-z]+", " ".join(sentences).lower()))
    characters = string.ascii_lowercase + string.digits
    pieces = [*_SPECIAL, *string.punctuation, *characters, *(f"##{c}" for c in characters)]
    pieces += sorted(words - set(characters))
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    return BertTokenizer(vocab=vocabulary, do_lower_case=True, model_max_length=64)


def new_model(vocabulary_size: int) -> BertForMaskedLM:
    """A BERT of 2 layers and dimension 128, without dropout: training is too short to overfit."""
    return BertForMaskedLM(
        BertConfig(
            vocab_size=vocabulary_size,
            hidden_size=128,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=512,
            max_position_embeddings=64,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )


def _batches(rows: list[Tensor], size: int, generator: torch.Generator) -> Iterator[list[Tensor]]:
    """Endless batches of sentences of similar length, which saves a third of the time (padding)."""
    while True:
        order = torch.randperm(len(rows), generator=generator).tolist()
        for start in range(0, len(order), size * _POOL):
            pool = sorted(order[start : start + size * _POOL], key=lambda row: len(rows[row]))
            cuts = [pool[cut : cut + size] for cut in range(0, len(pool), size)]
            for cut in torch.randperm(len(cuts), generator=generator).tolist():
                yield [rows[row] for row in cuts[cut]]


def mask_words(
    ids: Tensor, probabilities: Tensor, mask_id: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Masked ids (N, L) and the chosen positions (N, L, bool); `probabilities` (V,) by token."""
    chosen = torch.rand(ids.shape, generator=generator) < probabilities[ids]
    draw = torch.rand(ids.shape, generator=generator)
    others = torch.randint(len(_SPECIAL), len(probabilities), ids.shape, generator=generator)
    masked = torch.where(chosen & (draw < 0.8), mask_id, ids)
    return torch.where(chosen & (draw >= 0.9), others, masked), chosen


def _masking_probabilities(tokenizer: BertTokenizer, settings: PretrainSettings) -> Tensor:
    probabilities = torch.full((len(tokenizer),), settings.masked_share)
    function_ids = tokenizer.convert_tokens_to_ids(sorted(function_words()))
    probabilities[function_ids] = settings.masked_share_of_function_words
    probabilities[: len(_SPECIAL)] = 0.0
    return probabilities


def pretrain(
    model: BertForMaskedLM,
    tokenizer: BertTokenizer,
    sentences: list[str],
    settings: PretrainSettings,
    report: Callable[[int, float], None],
) -> None:
    """Train `model` in place; `report(step, loss)` is called after every step, from 1 on."""
    generator = torch.Generator().manual_seed(settings.seed)
    encoded = tokenizer(sentences, truncation=True, max_length=settings.max_length)["input_ids"]
    batches = _batches([torch.tensor(row) for row in encoded], settings.batch_size, generator)
    probabilities = _masking_probabilities(tokenizer, settings)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    model.train()
    for step in range(settings.steps):
        rate = min((step + 1) / settings.warmup_steps, 1 - step / settings.decay_steps)
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * rate
        ids = pad_sequence(next(batches), batch_first=True)
        masked, chosen = mask_words(ids, probabilities, int(tokenizer.mask_token_id), generator)
        hidden = model.bert(masked, attention_mask=(ids != 0).long()).last_hidden_state
        # logits of the M chosen positions only: (M, D) to (M, V)
        loss = nn.functional.cross_entropy(model.cls(hidden[chosen]), ids[chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        report(step + 1, loss.item())


def encoder_of(model: BertForMaskedLM) -> BertModel:
    """The encoder without the masked-language head, with BERT's default dropout.

    Its pooler is newly initialised: masked-language training has none, but AutoModel expects one.
    """
    config = BertConfig.from_dict(model.config.to_dict())
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.1
    config.architectures = ["BertModel"]
    encoder = BertModel(config)
    encoder.load_state_dict(model.bert.state_dict(), strict=False)
    return encoder


def build(out: Path, settings: PretrainSettings, report: Callable[[int, float], None]) -> None:
    """Write config, weights and tokenizer of a freshly pre-trained encoder to the folder `out`."""
    torch.manual_seed(settings.seed)
    definitions = defining_sentences()
    sentences = builtin_sentences() + definitions * settings.repeat_definitions
    tokenizer = make_tokenizer(sentences)
    model = new_model(len(tokenizer))
    pretrain(model, tokenizer, sentences, settings, report)
    encoder_of(model).save_pretrained(out)
    tokenizer.save_pretrained(out)


def main() -> int:
    """Build into the folder named on the command line."""
    if len(sys.argv) != 2:
        print("usage: python -m tests.builtin.generators.pretrain OUT", file=sys.stderr)
        return 2
    settings = PretrainSettings()

    def progress(step: int, loss: float) -> None:
        if step % 100 == 0 or step == settings.steps:
            print(f"step {step} of {settings.steps}, loss {loss:.3f}", file=sys.stderr, flush=True)

    # one thread: rounding depends on the order of additions, hence on the number of threads
    torch.set_num_threads(1)
    build(Path(sys.argv[1]), settings, progress)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
