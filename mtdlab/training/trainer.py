"""Momentum-contrastive training: the whole life of a step on one page.

MoCoSE, algorithm 1, in the variant `intended`: see the README for what it takes from the
paper and what from the published code.
"""

import copy
import itertools
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import normalize
from transformers import PreTrainedModel

from mtdlab.device import Device, choose_device
from mtdlab.errors import TrialError
from mtdlab.evaluation.sts import Evaluation
from mtdlab.evaluation.suite import Embedder, score_tasks
from mtdlab.spec import TrainerSettings
from mtdlab.spec.schedules import ema_decay_at, learning_rate_at
from mtdlab.spec.settings import parse_slices
from mtdlab.text.dropout import Dropout
from mtdlab.training.augment import changed_share, perturb, sign_step
from mtdlab.training.heads import Branch, embedding_block, predictor, word_table
from mtdlab.training.losses import info_nce
from mtdlab.training.materials import Materials, View
from mtdlab.training.momentum import averaged_pairs, ema_update, make_target
from mtdlab.training.outcome import Best, Curve, Outcome
from mtdlab.training.queue import KeyQueue

OnStep = Callable[[int, Evaluation | None], None]


def train(settings: TrainerSettings, materials: Materials, on_step: OnStep) -> Outcome:
    """Train one encoder; score its best checkpoint, chosen on the pairs that `select_on` names.

    `on_step(steps_done, evaluation)` is called after every step, with that evaluation where
    there was one; what it raises ends the run. Raises TrialError where the run breaks down,
    MtdlabError where the corpus is smaller than a batch.
    """
    started = time.perf_counter()
    torch.manual_seed(settings.seed)
    device = choose_device(settings)
    online = Branch(copy.deepcopy(materials.encoder.model), settings).to(device.device)
    encoder = online.encoder
    table = word_table(encoder)
    target = make_target(online, shared=embedding_block(encoder))
    head = _predictor(encoder, settings, device)
    queue = _queue(encoder, settings, device)
    averaged = averaged_pairs(target, online)
    dropout = Dropout(settings.dropout, settings.seed)
    trained = [*online.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(trained, weight_decay=settings.weight_decay, fused=True)
    batches = materials.tokens.batches(settings.batch_size, settings.seed)
    curve, best, gradient = Curve(settings.steps, device.device), Best(), None
    chooser = materials.test if settings.select_on == "test" else materials.dev
    for module in (online, target, head):
        module.train()
    heads = {"pooler": online.pooler, "projection": online.projection, "predictor": head}
    parts = {
        "encoder": encoder, "heads": nn.ModuleDict(heads), "target": target, "queue": queue,
        "dropout": dropout,
    }

    for step, batch in enumerate(itertools.islice(batches, settings.steps)):
        decay = ema_decay_at(step, settings)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(step, settings)

        ids, mask = (part.to(device.device, non_blocking=True) for part in batch)
        clean = table(ids)
        words = perturb(clean, sign_step(gradient, settings.fgsm_epsilon))
        words.retain_grad()
        with device.autocast():
            queries = head(online(words, mask, dropout))
            with torch.no_grad():
                keys = target(words, mask, dropout)

        loss = info_nce(
            queries,
            keys,
            queue.negatives(),
            settings.temperature,
            in_batch_negatives=settings.in_batch_negatives,
        )
        loss.backward()
        gradient = words.grad
        optimizer.step()
        optimizer.zero_grad()

        ema_update(*averaged, decay)
        curve.record(step, loss, changed_share(clean, words), decay, queue.fill)
        queue.enqueue(normalize(keys.float(), dim=1))

        evaluation = None
        if (step + 1) % settings.evaluate_every == 0 or step + 1 == settings.steps:
            curve.check(step)
            vectors = chooser.embed(encoder, settings.pooling, device)
            evaluation = chooser.evaluate(vectors)
            curve.evaluations[step] = evaluation
            best.consider(step, evaluation.score, vectors, parts)
        on_step(step + 1, evaluation)

    return _finish(settings, materials, device, encoder, curve, best, started)


def _predictor(encoder: PreTrainedModel, settings: TrainerSettings, device: Device) -> nn.Module:
    dimension = int(encoder.config.hidden_size)
    hidden = settings.prediction_dim or dimension
    head = predictor(dimension, hidden, settings.prediction_layers, settings.dropout)
    return head.to(device.device)


def _queue(encoder: PreTrainedModel, settings: TrainerSettings, device: Device) -> KeyQueue:
    return KeyQueue(
        settings.queue_size,
        int(encoder.config.hidden_size),
        initial=settings.initial_queue_size,
        slices=parse_slices(settings.queue_slice),
    ).to(device.device)


def _finish(
    settings: TrainerSettings,
    materials: Materials,
    device: Device,
    encoder: PreTrainedModel,
    curve: Curve,
    best: Best,
    started: float,
) -> Outcome:
    """Put the best checkpoint back and score it on what it was not chosen by: only now."""
    if best.step < 0:
        raise TrialError("collapsed: every cosine is the same, so there is no score to choose by")
    encoder.load_state_dict(best.states["encoder"])
    dev_vectors, test_vectors = (
        best.vectors
        if split == settings.select_on
        else pairs.embed(encoder, settings.pooling, device)
        for split, pairs in (("dev", materials.dev), ("test", materials.test))
    )
    after = View.of(materials.dev, dev_vectors, materials.test, test_vectors)
    scores = score_tasks(Embedder(encoder, settings.pooling, device), materials.suite)
    seconds = time.perf_counter() - started
    return Outcome(
        best_step=best.step + 1,
        before=materials.before,
        after=after,
        curve=curve.columns(),
        states=best.states,
        scores=tuple(scores),
        scores_before=materials.scores_before,
        wall_seconds=seconds,
    )
