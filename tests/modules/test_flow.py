import math

import pytest
import torch

from modules.flow import SIGMA, frame_noise, path_point, seeds_of_phones, solve, time_features


def test_a_path_leads_from_the_noise_to_the_target_at_its_velocity():
    noise, target = torch.randn(2, 5, 3), torch.randn(2, 5, 3)
    starts, velocity = path_point(noise, target, torch.zeros(2))
    ends, _ = path_point(noise, target, torch.ones(2))
    torch.testing.assert_close(starts, noise)
    torch.testing.assert_close(ends, target + SIGMA * noise)
    torch.testing.assert_close(ends - starts, velocity)
    points, _ = path_point(torch.zeros(2, 1, 1), torch.ones(2, 1, 1), torch.tensor([0.25, 0.75]))
    assert points.flatten().tolist() == [0.25, 0.75]  # each at its own time


def test_euler_steps_begin_at_time_0_follow_a_constant_velocity_and_approach_the_exponential():
    asked = []

    def growth(point: torch.Tensor, rate: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        asked.append(times.tolist())
        return rate * point

    start, velocity, rate = torch.ones(1, 1, 1), torch.randn(2, 5, 3), torch.ones(1)
    assert solve(growth, start, (rate,), 4).item() == pytest.approx(1.25**4)
    assert asked == [[0.0], [0.25], [0.5], [0.75]]
    assert solve(growth, start, (rate,), 1000).item() == pytest.approx(math.e, rel=1e-3)
    for n_steps in (1, 4):
        end = solve(lambda _point, constant, _times: constant, start, (velocity,), n_steps)
        torch.testing.assert_close(end, start + velocity)


def test_noise_is_normal_and_independent():
    noise = frame_noise(torch.tensor([1, 2]), 2000, 80)
    assert noise.mean().abs() < 0.01
    assert noise.std() == pytest.approx(1, abs=0.01)
    assert (noise**4).mean() == pytest.approx(3, abs=0.1)
    assert noise.abs().max() < 6.7  # of 32 bits
    for one, other in ((noise[0], noise[1]), (noise[:, 1:], noise[:, :-1])):
        assert (one * other).mean().abs() < 0.01
    assert (noise[..., 1:] * noise[..., :-1]).mean().abs() < 0.01


def test_noise_of_a_frame_depends_on_the_seed_of_its_item_and_not_on_batch_and_length():
    noise = frame_noise(torch.tensor([7, 2**32 - 1]), 50, 80)
    assert torch.equal(frame_noise(torch.tensor([2**32 - 1]), 20, 80), noise[1:, :20])
    phone_ids, seeds = torch.tensor([[1, 2, 3], [4, 5, 0]]), [7, 2**63 - 1]
    found = seeds_of_phones(phone_ids, torch.tensor(seeds))
    for item, seed in enumerate(seeds):
        assert found[item] == seeds_of_phones(phone_ids, seed)[item]


def mixed(bits: int) -> int:
    bits ^= bits >> 16
    bits = bits * 0x21F0AAAD % 2**32
    bits ^= bits >> 15
    bits = bits * 0x735A2D97 % 2**32
    return bits ^ bits >> 15


def test_noise_is_that_of_a_counter_in_whole_numbers():
    seed, expected = 5, []
    for counter in range(6):
        first = mixed((mixed(counter) + seed) % 2**32)
        second = mixed((first + seed + 1) % 2**32)
        radius = math.sqrt(-2 * math.log((first + 1) / 2**32))
        expected.append(radius * math.cos(2 * math.pi * second / 2**32))
    noise = frame_noise(torch.tensor([seed]), 2, 3).flatten()
    assert noise.tolist() == pytest.approx(expected, abs=1e-5)
    assert noise[0] == pytest.approx(-0.311094, abs=1e-5)


def test_seeds_differ_by_phones_order_and_seed_and_not_by_padding():
    phones = torch.tensor([[3, 4, 5, 0], [3, 5, 4, 0], [3, 4, 5, 6]])
    seeds = seeds_of_phones(phones, 1)
    assert torch.equal(seeds_of_phones(phones[:1, :3], 1), seeds[:1])
    others = [seeds_of_phones(phones[:1], seed).item() for seed in (0, 2, 1 + 2**32, 2**63 - 1)]
    assert len({*seeds.tolist(), *others}) == 7
    assert all(0 <= seed < 2**32 for seed in (*seeds.tolist(), *others))


def test_times_differ_in_their_features():
    features = time_features(torch.tensor([0.0, 0.5, 1.0]), 8)
    assert features[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert features[1, 0] == pytest.approx(math.sin(500), abs=1e-4)
    assert features[1, 3] == pytest.approx(math.sin(0.05), abs=1e-4)
    assert torch.cdist(features, features)[~torch.eye(3, dtype=torch.bool)].min() > 0.5
