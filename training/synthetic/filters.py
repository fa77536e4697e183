"""Random building blocks that run over all series of a batch at once, without a loop over samples.

Axes: N series, L samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_NEGLIGIBLE = 1e-3


def log_uniform(
    rng: np.random.Generator, low: float, high: float, size: int | tuple[int, ...]
) -> NDArray[np.float32]:
    """Draws of `size` whose logarithm is uniform between log(low) and log(high)."""
    return np.exp(rng.uniform(np.log(low), np.log(high), size)).astype(np.float32)


def chance(rng: np.random.Generator, probability: float, size: int) -> NDArray[np.bool_]:
    """(size,) independent coins that show True with `probability`."""
    return rng.random(size) < probability


def delayed(series: NDArray[np.float32], steps: NDArray[np.intp]) -> NDArray[np.float32]:
    """Every row of (N, L) later by its own number of steps (N,); its first value fills in."""
    source = np.maximum(np.arange(series.shape[1]) - steps[:, None], 0)  # (N, L)
    return np.take_along_axis(series, source, axis=1)


def geometric_filter(
    series: NDArray[np.float32], ratio: NDArray[np.float32]
) -> NDArray[np.float32]:
    """y[t] = series[t] + ratio · y[t-1] for every row of (N, L), ratio (N,) in 0..1.

    The recursion is unrolled by doubling: after pass j a sample holds the sum over 2^j lags, so
    log2(L) vector operations give what a loop over samples would.
    """
    out = series.copy()
    length = out.shape[1]
    factor = ratio[:, None].astype(np.float32)
    span = 1
    while span < length and float(factor.max(initial=0.0)) > _NEGLIGIBLE:
        out[:, span:] += factor * out[:, :-span]
        factor = factor * factor
        span *= 2
    return out


def autoregressive(
    rng: np.random.Generator, length: int, ratio: NDArray[np.float32]
) -> NDArray[np.float32]:
    """(N, L) stationary AR(1) series of unit variance, ratio (N,) in [0, 1)."""
    shocks = rng.standard_normal((len(ratio), length), dtype=np.float32)
    shocks[:, 1:] *= np.sqrt(1.0 - ratio**2)[:, None]
    return geometric_filter(shocks, ratio)


def power_law_noise(
    rng: np.random.Generator, length: int, slope: NDArray[np.float32]
) -> NDArray[np.float32]:
    """(N, L) noise with a power spectrum of frequency^-slope, slope (N,), zero mean, unit variance.

    Made in the frequency domain on a longer circle than is returned, because on the circle itself
    the end would continue into the start and give the future away.
    """
    size = _fast_size(length + length // 2)
    bins = size // 2 + 1
    frequency = np.arange(bins, dtype=np.float32)
    frequency[0] = 1.0
    amplitude = np.exp(-0.5 * slope[:, None] * np.log(frequency))
    amplitude[:, 0] = 0.0
    parts = rng.standard_normal((len(slope), bins, 2), dtype=np.float32)
    spectrum = parts.view(np.complex64)[..., 0] * amplitude
    noise = np.fft.irfft(spectrum, size, axis=1)[:, :length].astype(np.float32)
    noise -= noise.mean(axis=1, keepdims=True)
    noise /= noise.std(axis=1, keepdims=True) + np.float32(1e-9)
    return noise


def slow_curve(rng: np.random.Generator, rows: int, length: int, knots: int) -> NDArray[np.float32]:
    """(rows, length) unit-variance wander: an AR(1) over `knots` points, joined by lines."""
    ratio = rng.uniform(0.5, 0.97, rows).astype(np.float32)
    points = autoregressive(rng, knots, ratio)
    position = np.linspace(0.0, knots - 1.001, length, dtype=np.float32)
    left = position.astype(np.intp)
    weight = position - left
    return points[:, left] * (1.0 - weight) + points[:, left + 1] * weight


def unit_mean(series: NDArray[np.float32]) -> NDArray[np.float32]:
    """Every row of (N, L) divided by its mean; rows of zeros stay as they are."""
    mean = series.mean(axis=1, keepdims=True)
    return np.asarray(series / np.where(mean > 0.0, mean, np.float32(1.0)), dtype=np.float32)


def _fast_size(least: int) -> int:
    """The smallest 2^a or 3·2^a that is not under `least`."""
    power = 1 << (least - 1).bit_length()
    return power * 3 // 4 if power * 3 // 4 >= least else power
