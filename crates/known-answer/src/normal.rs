//! The quantile function of the normal distribution.
//!
//! Wichura, M. J. (1988): "Algorithm AS241: the percentage points of the normal distribution", Applied Statistics 37,
//! 477-484; its routine PPND16, accurate to about 1 part in 10^16.

/// Coefficients in descending powers: numerator, denominator.
type Ratio = ([f64; 8], [f64; 8]);

const CENTRE: Ratio = (
    [
        2.509_080_928_730_122_7e3,
        3.343_057_558_358_813e4,
        6.726_577_092_700_87e4,
        4.592_195_393_154_987e4,
        1.373_169_376_550_946e4,
        1.971_590_950_306_551_3e3,
        1.331_416_678_917_843_8e2,
        3.387_132_872_796_366_5,
    ],
    [
        5.226_495_278_852_854e3,
        2.872_908_573_572_194_3e4,
        3.930_789_580_009_271e4,
        2.121_379_430_158_659_7e4,
        5.394_196_021_424_751e3,
        6.871_870_074_920_579e2,
        4.231_333_070_160_091e1,
        1.0,
    ],
);
const MIDDLE: Ratio = (
    [
        7.745_450_142_783_414e-4,
        2.272_384_498_926_918_4e-2,
        2.417_807_251_774_506e-1,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        1.519_866_656_361_645_7e-2,
        1.481_039_764_274_800_8e-1,
        6.897_673_349_851e-1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
);
const TAIL: Ratio = (
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        1.242_660_947_388_078_4e-3,
        2.653_218_952_657_612_4e-2,
        2.965_605_718_285_048_7e-1,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_8e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        7.868_691_311_456_133e-4,
        1.487_536_129_085_061_5e-2,
        1.369_298_809_227_358e-1,
        5.998_322_065_558_88e-1,
        1.0,
    ],
);

/// The value below which a standard normal variable lies with `probability`, which is between 0 and 1, both excluded.
pub(crate) fn quantile(probability: f64) -> f64 {
    let from_centre = probability - 0.5;
    if from_centre.abs() <= 0.425 {
        return from_centre * ratio(&CENTRE, 0.180_625 - from_centre * from_centre);
    }
    let tail = if from_centre < 0.0 { probability } else { 1.0 - probability };
    let root = (-tail.ln()).sqrt();
    let size = if root <= 5.0 { ratio(&MIDDLE, root - 1.6) } else { ratio(&TAIL, root - 5.0) };
    size.copysign(from_centre)
}

fn ratio((numerator, denominator): &Ratio, at: f64) -> f64 {
    let horner = |terms: &[f64; 8]| terms.iter().fold(0.0, |sum, term| sum * at + term);
    horner(numerator) / horner(denominator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, expected) in [
            (0.5, 0.0),
            (0.25, -0.674_489_750_196_081_7),
            (0.9, 1.281_551_565_544_600_4),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813_5),
            (1e-10, -6.361_340_902_404_056),
            (1e-20, -9.262_340_089_798_409),
        ] {
            let found = quantile(probability);
            assert!((found - expected).abs() < 1e-9, "{probability}: {found}, not {expected}");
        }
    }
}
