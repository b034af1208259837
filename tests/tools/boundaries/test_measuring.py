from tools.benchmarks.alignment import DEMO
from tools.benchmarks.boundaries.clips import Reference
from tools.benchmarks.boundaries.comparison import summarize
from tools.benchmarks.boundaries.measuring import measure
from tools.benchmarks.boundaries.textgrids import mfa_clips


def test_an_aligner_is_compared_and_its_costs_are_counted():
    clips = mfa_clips(DEMO)[:2]
    result = measure("pocketsphinx", Reference("MFA", clips, "lexicon"))
    assert (result.reference.name, result.aligner) == ("MFA", "pocketsphinx")
    assert 0 < sum(len(word.starts_s) for word in clips[1].words) <= len(result.onsets)
    assert summarize(result.onsets).median_ms < 20
    assert result.cpu_s > 0
    assert 50 < result.peak_mib < 4000
    assert 0.1 < result.minutes < 0.3
    assert result.failures == ()
