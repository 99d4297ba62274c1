//! Reduces a line's number of points without losing its extremes.

/// Position along the axis, and value; `None` is a gap in the line.
pub(super) type Point = (f64, Option<f64>);

/// Returns at most `limit` points (at least 6). Time is cut into equal parts, and each part keeps
/// its lowest value, its highest value and a gap, in their order. An average would hide a stall of
/// one second, which is what a reader looks for.
pub(super) fn downsample(points: &[Point], limit: usize) -> Vec<Point> {
    let limit = limit.max(6);
    if points.len() <= limit {
        return points.to_vec();
    }
    let parts = limit / if points.iter().all(|point| point.1.is_some()) { 2 } else { 3 };
    let mut kept = Vec::with_capacity(limit);
    for part in 0..parts {
        let slice = &points[part * points.len() / parts..(part + 1) * points.len() / parts];
        let known = || slice.iter().enumerate().filter_map(|(at, point)| Some((at, point.1?)));
        let mut stay = vec![
            known().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at),
            known().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at),
            slice.iter().position(|point| point.1.is_none()),
        ];
        stay.sort_unstable();
        stay.dedup();
        kept.extend(stay.into_iter().flatten().map(|at| slice[at]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_stall_and_a_single_peak_survive_in_their_order() {
        let mut points: Vec<Point> = (0..10_000).map(|second| (f64::from(second), Some(100.0))).collect();
        points[4_321].1 = Some(0.0);
        points[8_888].1 = Some(500.0);
        let kept = downsample(&points, 600);
        assert!(kept.len() <= 600, "{}", kept.len());
        assert!(kept.contains(&(4_321.0, Some(0.0))));
        assert!(kept.contains(&(8_888.0, Some(500.0))));
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn a_short_line_is_left_alone() {
        let points = [(0.0, Some(1.0)), (1.0, None)];
        assert_eq!(downsample(&points, 600), points);
    }

    #[test]
    fn a_single_gap_survives() {
        let mut points: Vec<Point> = (0..10_000).map(|second| (f64::from(second), Some(100.0))).collect();
        points[4_321].1 = None;
        let kept = downsample(&points, 600);
        assert!(kept.len() <= 600, "{}", kept.len());
        assert!(kept.contains(&(4_321.0, None)));
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
