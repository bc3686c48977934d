"""The four figures of a backend's pace, found from how long answers took.

How long anything took is, by the step model (`policies.api.Pace`), linear in the figures with what was counted as
coefficients:

    seconds = calls call_s + tokens prefill_token_s + steps step_s + row_steps sequence_s

so one time teaches all figures that have a share in it. Their logarithms are followed by an extended Kalman filter
(Ljung, System Identification, 1999, ch. 11): no figure can become negative, errors are shares of what was expected, so
that short times count as much as long ones, and a machine that is half as fast is one step in one direction, however
the figures stand to each other. An error that is far off counts less (Huber 1964). Where several in a row are far off
to the same side, that is no outlier: the server has changed, and what was known of it is taken to be less certain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

FIGURES: Final = 4
_START_TOGETHER: Final = 1.5
"""Deviation of the logarithm of how fast a machine is, before anything is known of it: most within 1/20 to 20 times."""
_START_EACH: Final = 0.7
"""The same of each figure, how fast the machine is being known."""
_START_VARIANCE: Final = 1.001 * (_START_TOGETHER**2 + _START_EACH**2)
_DRIFT_TOGETHER: Final = 0.02
_DRIFT_EACH: Final = 0.008
"""What one answer more may have changed."""
_LOOSE_TOGETHER: Final = 0.7
_LOOSE_EACH: Final = 0.25
"""What may have changed where several answers in a row were far off."""
_FAR: Final = 2.0
"""Deviations up to which an error is taken at its face value."""
_IN_A_ROW: Final = 4
_FIRST_NOISE: Final = 0.6
"""Deviation of the first time that is seen, since a server may do things but once; of the n-th, an n-th part."""
_JITTER_S: Final = 0.002
"""By how much any time may be off because somebody was late to look."""
_LOWEST: Final = (1e-5, 1e-7, 1e-5, 1e-7)
_HIGHEST: Final = (10.0, 0.1, 10.0, 1.0)
"""Seconds; nothing that is served to people is slower."""


class Sighting(NamedTuple):
    """A time, and what happened in it."""

    seconds: float
    calls: float = 0.0
    tokens: float = 0.0
    """Prompt tokens that were prefilled."""
    steps: float = 0.0
    row_steps: float = 0.0
    """Sequences decoding, summed over the steps."""
    noise: float = 0.15
    """Deviation of the logarithm of `seconds` where all is well."""


class PaceFilter:
    """What is known of one backend: the figures in the order of `Sighting`, and how sure. Knows no time."""

    def __init__(self, figures: Sequence[float]) -> None:
        """`figures` are the first guess."""
        self.figures = list(figures)
        self.seen = 0
        self._far_in_a_row = 0
        self._covariance = _plus((0.0,) * 10, _START_TOGETHER**2, _START_EACH**2)
        """Of the logarithms of the figures: the upper triangle, by rows."""

    @property
    def variances(self) -> tuple[float, float, float, float]:
        """Of the logarithms of the figures."""
        aa, _, _, _, bb, _, _, cc, _, dd = self._covariance
        return aa, bb, cc, dd

    def loosen(self) -> None:
        """It may have become another: what was known is less certain from now on, but not more so than at first."""
        together, each = _room(max(self.variances), _LOOSE_TOGETHER**2, _LOOSE_EACH**2)
        self._covariance = _plus(self._covariance, together, each)

    def expected_s(self, seen: Sighting) -> float:
        call_s, prefill_token_s, step_s, sequence_s = self.figures
        _, calls, tokens, steps, row_steps, _ = seen
        return calls * call_s + tokens * prefill_token_s + steps * step_s + row_steps * sequence_s

    def learn(self, seen: Sighting) -> None:
        """Written out for four figures: it runs up to three times for each answer."""
        expected_s = self.expected_s(seen)
        if not (0.0 < seen.seconds < math.inf and 0.0 < expected_s < math.inf):
            return
        self.seen += 1
        call_s, prefill_token_s, step_s, sequence_s = self.figures
        # Shares of the figures in the time.
        a, b = seen.calls * call_s / expected_s, seen.tokens * prefill_token_s / expected_s
        c, d = seen.steps * step_s / expected_s, seen.row_steps * sequence_s / expected_s
        aa, ab, ac, ad, bb, bc, bd, cc, cd, dd = self._covariance
        together, each = _room(max(aa, bb, cc, dd), _DRIFT_TOGETHER**2, _DRIFT_EACH**2)
        # Shares add up to 1, so what drifts together is added to each as it is.
        ma = aa * a + ab * b + ac * c + ad * d + together + each * a
        mb = ab * a + bb * b + bc * c + bd * d + together + each * b
        mc = ac * a + bc * b + cc * c + cd * d + together + each * c
        md = ad * a + bd * b + cd * c + dd * d + together + each * d
        error = math.log(seen.seconds / expected_s)
        noise = math.hypot(seen.noise, _FIRST_NOISE / self.seen, _JITTER_S / expected_s)
        variance = ma * a + mb * b + mc * c + md * d + noise * noise
        variance *= self._distrust(error, math.sqrt(variance))
        ka, kb, kc, kd = gains = (ma / variance, mb / variance, mc / variance, md / variance)
        own = together + each
        self._covariance = (
            aa + own - ka * ma,
            ab + together - ka * mb,
            ac + together - ka * mc,
            ad + together - ka * md,
            bb + own - kb * mb,
            bc + together - kb * mc,
            bd + together - kb * md,
            cc + own - kc * mc,
            cd + together - kc * md,
            dd + own - kd * md,
        )
        self.figures = [
            min(max(figure * math.exp(gain * error), lowest), highest)
            for figure, gain, lowest, highest in zip(self.figures, gains, _LOWEST, _HIGHEST, strict=True)
        ]
        if self._far_in_a_row in (_IN_A_ROW, -_IN_A_ROW):
            self._far_in_a_row = 0
            self.loosen()

    def _distrust(self, error: float, deviation: float) -> float:
        """How many times as uncertain a time is as it would be without its error."""
        far = abs(error) / (_FAR * deviation)
        if far <= 1.0:
            self._far_in_a_row = 0
            return 1.0
        side = 1 if error > 0 else -1
        self._far_in_a_row = self._far_in_a_row + side if self._far_in_a_row * side >= 0 else side
        return far


_Triangle = tuple[float, ...]


def _plus(covariance: _Triangle, together: float, each: float) -> _Triangle:
    """`together` more everywhere, and `each` on the diagonal."""
    aa, ab, ac, ad, bb, bc, bd, cc, cd, dd = [value + together for value in covariance]
    return aa + each, ab, ac, ad, bb + each, bc, bd, cc + each, cd, dd + each


def _room(most: float, together: float, each: float) -> tuple[float, float]:
    """What may be added to the covariance, together and for each figure; nothing where it is as at first. `most`: of
    the variances."""
    return (together, each) if most + together + each <= _START_VARIANCE else (0.0, 0.0)
