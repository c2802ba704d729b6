"""Momentum-contrastive training: the whole life of a step on one page.

MoCoSE, algorithm 1, by default in the variant `intended`: `mtdlab/config/presets.py` has the
others, and SimCSE, which is the same loop around other parts (`model.py`).
"""

import copy
import itertools
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize
from transformers import PreTrainedModel

from mtdlab.config import TrainerSettings
from mtdlab.config.schedules import ema_decay_at, learning_rate_at
from mtdlab.device import Device, choose_device
from mtdlab.errors import TrialError
from mtdlab.evaluation.sts import Evaluation
from mtdlab.evaluation.suite import Embedder, score_tasks
from mtdlab.methods.mocose import Model
from mtdlab.methods.perturbations import changed_share, perturb, sign_step
from mtdlab.training.batches import Views
from mtdlab.training.inputs import EncoderScores, RunInputs
from mtdlab.training.outcome import Best, Curve, Outcome

OnStep = Callable[[int, Evaluation | None], None]


def train(settings: TrainerSettings, materials: RunInputs, on_step: OnStep) -> Outcome:
    """Train one encoder; score its best checkpoint, chosen on the pairs that `select_on` names.

    `on_step(steps_done, evaluation)` is called after every step, with that evaluation where
    there was one; what it raises ends the run. Raises TrialError where the run breaks down,
    MtdlabError where the corpus is smaller than a batch.
    """
    started = time.perf_counter()
    torch.manual_seed(settings.seed)
    device = choose_device(settings)
    encoder = copy.deepcopy(materials.encoder.model)
    model = Model(encoder, settings, device)
    optimizer = torch.optim.AdamW(model.trained(), weight_decay=settings.weight_decay, fused=True)
    batches = materials.batches(settings.batch_size, settings.seed)
    curve, best, gradient = Curve(settings.steps, device.device), Best(), None
    chooser = materials.test if settings.select_on == "test" else materials.dev
    parts = model.parts()

    for step, views in enumerate(itertools.islice(batches, settings.steps)):
        decay = ema_decay_at(step, settings)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(step, settings)
        if settings.ema_order == "before-target":
            model.average(decay)

        ids, masks = _moved(views, device)
        clean = model.look_up(ids)
        if settings.fgsm_gradient == "current" and settings.fgsm_epsilon:
            gradient = model.gradient(clean, masks)
        nudge = sign_step(gradient, settings.fgsm_epsilon)
        words = [perturb(one, nudge) for one in clean]
        words[0].retain_grad()
        queries, keys = model.encode(words, masks)

        loss = model.loss(queries, keys)
        loss.backward()
        gradient = words[0].grad
        optimizer.step()
        optimizer.zero_grad()

        if settings.ema_order == "after-step":
            model.average(decay)
        curve.record(step, loss, changed_share(clean[0], words[0]), decay, model.queue.fill)
        model.queue.enqueue(normalize(keys.float(), dim=1))

        evaluation = None
        if (step + 1) % settings.evaluate_every == 0 or step + 1 == settings.steps:
            curve.check(step)
            vectors = chooser.embed(encoder, settings.pooling, device)
            evaluation = chooser.evaluate(vectors)
            curve.evaluations[step] = evaluation
            best.consider(step, evaluation.score, vectors, parts)
        on_step(step + 1, evaluation)

    return _finish(settings, materials, device, encoder, curve, best, started)


def _moved(views: Views, device: Device) -> tuple[list[Tensor], list[Tensor]]:
    """Ids and masks of a batch's views, each (N, L), on the device."""
    moved = [[part.to(device.device, non_blocking=True) for part in view] for view in views]
    return [ids for ids, _ in moved], [mask for _, mask in moved]


def _finish(
    settings: TrainerSettings,
    materials: RunInputs,
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
    after = EncoderScores.of(materials.dev, dev_vectors, materials.test, test_vectors)
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
