from itertools import combinations

import numpy as np
import pytest

from processors.dataset.sampler import (
    BatchShape,
    Draw,
    FixedBatches,
    FrameBudgetSampler,
    Shape,
    choose_shapes,
    fitting,
    frame_budget,
)
from utils.errors import InputError


def ljspeech_lengths(n_utterances=13100):
    """LJSpeech's lengths: 1.1 to 10.1 s, mean 6.6 s, more long ones than short ones."""
    seconds = 1.1 + 9.0 * np.random.default_rng(0).beta(2.2, 1.4, n_utterances)
    return np.round(seconds * 22050 / 256).astype(np.int64)


def batches_of(sampler):
    return [[draw.item for draw in batch] for batch in sampler]


def test_the_budget_of_a_batch_size_or_a_given_one_pads_ljspeech_by_less_than_three_percent():
    assert frame_budget([100, 200, 300], batch_size=16, batch_frames=0) == 3200
    assert frame_budget([100, 200, 300], batch_size=16, batch_frames=5000) == 5000
    lengths = ljspeech_lengths()
    budget = frame_budget(lengths, batch_size=16, batch_frames=0)
    plan = FrameBudgetSampler(lengths, budget, seed=1).plan(0)
    computed = sum(len(batch) * lengths[batch].max() for batch in plan)
    assert 1 - lengths.sum() / computed < 0.03
    assert 14.5 < np.mean([len(batch) for batch in plan]) <= 16


def test_no_batch_exceeds_its_budget_but_a_single_long_utterance():
    lengths = np.array([10, 11, 12, 9, 500, 10, 11])
    plan = FrameBudgetSampler(lengths, budget=36, seed=0).plan(3)
    assert [4] in plan
    assert all(len(b) * lengths[b].max() <= 36 for b in plan if b != [4])


def assert_each_once(plan, n_utterances):
    assert sorted(i for batch in plan for i in batch) == list(range(n_utterances))


def test_the_order_is_a_function_of_seed_and_epoch_alone():
    lengths = ljspeech_lengths(300)
    one, other = (FrameBudgetSampler(lengths, 8000, seed=5) for _ in range(2))
    np.random.seed(3)  # noqa: NPY002
    assert one.plan(7) == other.plan(7)
    assert one.plan(7) != one.plan(8)
    assert one.plan(7) != FrameBudgetSampler(lengths, 8000, seed=6).plan(7)


def test_neighbours_change_from_epoch_to_epoch():
    sampler = FrameBudgetSampler(ljspeech_lengths(2000), 8000, seed=0)
    first, second = ({frozenset(batch) for batch in sampler.plan(epoch)} for epoch in (1, 2))
    assert len(first & second) < 0.05 * len(first)


def test_the_longest_utterances_come_first_in_the_first_epoch_alone():
    lengths = ljspeech_lengths(1000)
    sampler = FrameBudgetSampler(lengths, 8000, seed=0, processes=2)
    longest = sorted((lengths[batch].max() for batch in sampler.plan(0)), reverse=True)
    assert [lengths[batch].max() for batch in sampler.plan(0)[:2]] == longest[:2]
    assert [lengths[batch].max() for batch in sampler.plan(0)] != longest
    assert lengths[sampler.plan(1)[0]].max() != longest[0]


def test_every_utterance_comes_once_per_epoch_and_processes_share_it_in_whole_windows():
    lengths = ljspeech_lengths(307)
    options = {"seed": 0, "window": 3, "processes": 2}
    samplers = [FrameBudgetSampler(lengths, 8000, **options, rank=rank) for rank in range(2)]
    shares = [batches_of(sampler) for sampler in samplers]
    assert len(shares[0]) == len(shares[1]) == len(samplers[0])
    assert len(shares[0]) % 3 == 0
    for plan in (shares[0] + shares[1], *map(samplers[0].plan, range(3))):
        assert_each_once(plan, 307)


@pytest.mark.parametrize(("n_utterances", "window"), [(3, 2), (5, 4), (7, 3)])
def test_too_few_long_utterances_for_whole_windows_are_joined(n_utterances, window):
    lengths = np.arange(100, 100 + n_utterances)
    plan = FrameBudgetSampler(lengths, budget=100, seed=0, window=window).plan(0)
    assert len(plan) == n_utterances // window * window
    assert_each_once(plan, n_utterances)
    assert [n_utterances - 1] in plan  # the longest stays alone


def test_fewer_utterances_than_micro_batches_are_refused():
    with pytest.raises(InputError, match=r"3 training utterances .* 2 processes x 2"):
        FrameBudgetSampler([10, 20, 30], budget=100, seed=0, window=2, processes=2)


def test_a_start_skips_batches_of_the_next_iteration_only_and_draws_carry_the_epoch():
    sampler = FrameBudgetSampler(ljspeech_lengths(200), 8000, seed=0)
    sampler.set_epoch(4)
    whole = list(sampler)
    sampler.set_epoch(4, start=5)
    assert list(sampler) == whole[5:]
    assert list(sampler) == whole
    assert sorted(draw for batch in whole for draw in batch) == [Draw(4, n) for n in range(200)]
    assert not hasattr(sampler, "batch_size")  # by which accelerate would shard


def corpus(n_utterances=300, seed=0):
    """Phones and frames; about 6 frames a phone, more or less."""
    generator = np.random.default_rng(seed)
    phones = generator.integers(5, 60, n_utterances)
    return phones, np.round(phones * generator.uniform(3, 9, n_utterances)).astype(np.int64)


def cost(shapes, phones, frames):
    """Phones and frames of all utterances, padded to the smallest shape that holds them."""
    return sum(sum(fitting(shapes, *item)) for item in zip(phones, frames, strict=True))


@pytest.mark.parametrize("n_shapes", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_no_other_choice_of_shapes_pads_less(n_shapes, seed):
    phones, frames = corpus(9, seed)
    choices = (c for n in range(n_shapes) for c in combinations(np.unique(frames)[:-1], n))
    chains = [
        [Shape(phones[frames <= T].max(), T) for T in (*lengths, frames.max())]
        for lengths in choices
    ]
    found = choose_shapes(phones, frames, n_shapes)
    assert cost(found, phones, frames) == min(cost(chain, phones, frames) for chain in chains)
    assert len(found) == n_shapes


def test_the_smallest_shape_that_fits_both_ways_is_taken_and_nothing_is_cut():
    shapes = choose_shapes(np.array([2, 3, 3]), np.array([9, 12, 12]), 5)
    assert shapes == (Shape(2, 9), Shape(3, 12))  # no more than lengths
    shapes = (Shape(10, 50), Shape(20, 100))
    assert fitting(shapes, 10, 50) == shapes[0]
    assert fitting(shapes, 11, 50) == fitting(shapes, 10, 51) == shapes[1]
    with pytest.raises(ValueError, match=r"21 phones and 30 frames; the largest .* 20 and 100"):
        fitting(shapes, 21, 30)


@pytest.mark.parametrize("multiple", [1, 2, 6])
def test_every_utterance_comes_once_per_epoch_in_batches_of_the_planned_shapes(multiple):
    phones, frames = corpus()
    batches = FixedBatches(phones, frames, 4, budget=1600, multiple=multiple)
    shapes = set()
    for epoch in range(3):
        plan = batches.fill(np.random.default_rng(epoch))
        assert_each_once(plan, 300)
        assert len(plan) % multiple == 0
        for batch in plan:
            shape = fitting(batches.shapes, phones[batch].max(), frames[batch].max())
            shapes.add(BatchShape(len(batch), *shape))
    assert shapes == set(batches.batch_shapes)
    assert len(shapes) <= 5
    assert all(shape.items * shape.frames <= 1600 for shape in shapes)


def test_the_utterances_of_a_batch_change_from_epoch_to_epoch():
    batches = FixedBatches(*corpus(), 4, budget=1600)
    first, second = ({*map(frozenset, batches.fill(np.random.default_rng(n)))} for n in range(2))
    assert len(first & second) < 0.05 * len(first)


def test_a_small_corpus_has_two_batch_shapes_and_segments_one():
    phones, frames = np.array([2, 4, 4, 4]), np.array([10, 40, 40, 20])
    batches = FixedBatches(phones, frames, 2, budget=80)
    # 2 x (4 phones, 40 frames), and 2 x (4 phones, 20 frames)
    assert batches.batch_shapes == (BatchShape(2, 4, 40), BatchShape(2, 4, 20))
    segments = FixedBatches(np.zeros(40, np.int64), np.full(40, 32), 6, budget=8 * 32)
    assert segments.batch_shapes == (BatchShape(8, 0, 32),)
    assert str(segments.batch_shapes[0]) == "8 x 32"


@pytest.mark.parametrize(("n_utterances", "multiple"), [(3, 2), (5, 4), (7, 3), (4, 4)])
def test_a_corpus_that_is_too_small_for_whole_windows_gets_larger_batches(n_utterances, multiple):
    frames = np.arange(100, 100 + n_utterances)
    batches = FixedBatches(frames // 6, frames, 3, budget=100, multiple=multiple)
    plan = batches.fill(np.random.default_rng(0))
    assert len(plan) == n_utterances // multiple * multiple
    assert_each_once(plan, n_utterances)
