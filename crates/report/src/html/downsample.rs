//! Fewer points for a line without losing its extremes.

/// At most `limit` points (at least 4): time is cut into equal parts, of each the least and the greatest stay, in their order.
/// A stall of one second is what a reader looks for, so averaging would be the wrong reduction.
pub(super) fn downsample(points: &[(f64, f64)], limit: usize) -> Vec<(f64, f64)> {
    let limit = limit.max(4);
    if points.len() <= limit {
        return points.to_vec();
    }
    let parts = limit / 2;
    let mut kept = Vec::with_capacity(limit);
    for part in 0..parts {
        let slice = &points[part * points.len() / parts..(part + 1) * points.len() / parts];
        let least = slice.iter().enumerate().min_by(|a, b| a.1.1.total_cmp(&b.1.1)).map(|(at, _)| at);
        let greatest = slice.iter().enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1)).map(|(at, _)| at);
        let (Some(least), Some(greatest)) = (least, greatest) else { continue };
        kept.push(slice[least.min(greatest)]);
        if least != greatest {
            kept.push(slice[least.max(greatest)]);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_stall_and_a_single_peak_survive_in_their_order() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|second| (f64::from(second), 100.0)).collect();
        points[4_321].1 = 0.0;
        points[8_888].1 = 500.0;
        let kept = downsample(&points, 600);
        assert!(kept.len() <= 600, "{}", kept.len());
        assert!(kept.contains(&(4_321.0, 0.0)));
        assert!(kept.contains(&(8_888.0, 500.0)));
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn a_short_line_is_left_alone() {
        let points = [(0.0, 1.0), (1.0, 2.0)];
        assert_eq!(downsample(&points, 600), points);
    }
}
