//! Parameters of the queries. They are those with which answers are published, or random ones by the
//! specification's rules.

use tpchgen::distribution::{Distribution, Distributions};
use tpchgen::generators::NationGenerator;

use crate::Philox;
use crate::oltp::draws::OltpDraws;

/// Stream of the draws. No other workload uses it.
const STREAM: u32 = 0x6462_7433;
/// Fraction of q11 at scale factor 1.
const FRACTION: f64 = 0.0001;
const Q13_FIRST: [&str; 4] = ["special", "pending", "unusual", "express"];
const Q13_SECOND: [&str; 4] = ["packages", "requests", "accounts", "deposits"];

/// The order of the queries in each stream. The first is that of the power test. The orders are from
/// the specification's appendix A.
pub(crate) const ORDERS: [[u8; 22]; 11] = [
    [14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12],
    [21, 3, 18, 5, 11, 7, 6, 20, 17, 12, 16, 15, 13, 10, 2, 8, 14, 19, 9, 22, 1, 4],
    [6, 17, 14, 16, 19, 10, 9, 2, 15, 8, 5, 22, 12, 7, 13, 18, 1, 4, 20, 3, 11, 21],
    [8, 5, 4, 6, 17, 7, 1, 18, 22, 14, 9, 10, 15, 11, 20, 2, 21, 19, 13, 16, 12, 3],
    [5, 21, 14, 19, 15, 17, 12, 6, 4, 9, 8, 16, 11, 2, 10, 18, 1, 13, 7, 22, 3, 20],
    [21, 15, 4, 6, 7, 16, 19, 18, 14, 22, 11, 13, 3, 1, 2, 5, 8, 20, 12, 17, 10, 9],
    [10, 3, 15, 13, 6, 8, 9, 7, 4, 11, 22, 18, 12, 1, 5, 16, 2, 14, 19, 20, 17, 21],
    [18, 8, 20, 21, 2, 4, 22, 17, 1, 11, 9, 19, 3, 13, 5, 7, 10, 16, 6, 14, 15, 12],
    [19, 1, 15, 17, 5, 8, 9, 12, 14, 7, 4, 3, 20, 16, 6, 22, 10, 13, 2, 21, 18, 11],
    [8, 13, 2, 20, 17, 3, 6, 21, 18, 11, 19, 10, 15, 4, 22, 1, 7, 12, 9, 14, 5, 16],
    [6, 15, 18, 17, 12, 1, 7, 2, 22, 13, 21, 10, 14, 9, 3, 16, 20, 19, 11, 4, 8, 5],
];

/// Returns the parameters of query `number` with which answers are published.
pub(crate) fn validation(number: u8, scale_factor: f64) -> Vec<String> {
    let fraction = fraction(scale_factor);
    let params: &[&str] = match number {
        1 => &["90"],
        2 => &["15", "BRASS", "EUROPE"],
        3 => &["BUILDING", "1995-03-15"],
        4 => &["1993-07-01"],
        5 => &["ASIA", "1994-01-01"],
        6 => &["1994-01-01", "0.06", "24"],
        7 => &["FRANCE", "GERMANY"],
        8 => &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
        9 => &["green"],
        10 => &["1993-10-01"],
        11 => &["GERMANY", &fraction],
        12 => &["MAIL", "SHIP", "1994-01-01"],
        13 => &["special", "requests"],
        14 => &["1995-09-01"],
        15 => &["1996-01-01"],
        16 => &["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"],
        17 => &["Brand#23", "MED BOX"],
        18 => &["300"],
        19 => &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
        20 => &["forest", "1994-01-01", "CANADA"],
        21 => &["SAUDI ARABIA"],
        _ => &["13", "31", "23", "29", "30", "18", "17"],
    };
    params.iter().map(|param| (*param).to_owned()).collect()
}

fn fraction(scale_factor: f64) -> String {
    format!("{:.10}", FRACTION / scale_factor)
}

/// Returns the parameters of query `number` in stream `stream`, drawn by `seed`. They are the same for
/// every variant.
pub(crate) fn drawn(number: u8, scale_factor: f64, seed: u64, stream: u32) -> Vec<String> {
    let philox = Philox::new(seed, STREAM);
    Rules { draws: OltpDraws::new(&philox, stream, number.into()), lists: Distributions::static_default() }
        .of(number, scale_factor)
}

struct Rules {
    draws: OltpDraws,
    lists: &'static Distributions,
}

impl Rules {
    fn of(&mut self, number: u8, scale_factor: f64) -> Vec<String> {
        match number {
            1 => vec![self.between(60, 120).to_string()],
            2 => {
                let size = self.between(1, 50).to_string();
                let kind = self.word(self.lists.part_types());
                vec![size, last_word(&kind), self.word(self.lists.regions())]
            }
            3 => {
                let segment = self.word(self.lists.market_segments());
                vec![segment, format!("1995-03-{:02}", self.between(1, 31))]
            }
            4 | 15 => vec![self.month(57)],
            5 => vec![self.word(self.lists.regions()), self.year()],
            6 => vec![self.year(), format!("0.0{}", self.between(2, 9)), self.between(24, 25).to_string()],
            7 => {
                let [a, b] = self.two(25).map(|nation| self.lists.nations().get_values()[nation].to_owned());
                vec![a, b]
            }
            8 => {
                let nations = NationGenerator::default();
                let at = self.below(25);
                let nation = nations.iter().nth(at).expect("25 nations");
                let regions = self.lists.regions().get_values();
                let region = regions[usize::try_from(nation.n_regionkey).unwrap_or(0)].to_owned();
                vec![nation.n_name.to_owned(), region, self.word(self.lists.part_types())]
            }
            9 => vec![self.word(self.lists.part_colors())],
            10 => {
                let month = 1 + self.below(24) as u64;
                vec![month_after_1993(month)]
            }
            11 => vec![self.word(self.lists.nations()), fraction(scale_factor)],
            12 => {
                let modes = self.lists.ship_modes().get_values();
                let [a, b] = self.two(modes.len()).map(|mode| modes[mode].to_owned());
                vec![a, b, self.year()]
            }
            13 => vec![self.pick(&Q13_FIRST), self.pick(&Q13_SECOND)],
            _ => self.of_later(number),
        }
    }

    /// Returns the parameters of the queries from q14 on.
    fn of_later(&mut self, number: u8) -> Vec<String> {
        match number {
            14 => vec![self.month(59)],
            16 => {
                let brand = self.brand();
                let kind = self.word(self.lists.part_types());
                let words = kind.rsplit_once(' ').map_or(kind.as_str(), |(words, _)| words).to_owned();
                let sizes = self.some_of(50, 8).into_iter().map(|size| (1 + size).to_string());
                [brand, words].into_iter().chain(sizes).collect()
            }
            17 => vec![self.brand(), self.word(self.lists.part_containers())],
            18 => vec![self.between(312, 315).to_string()],
            19 => {
                let brands = [self.brand(), self.brand(), self.brand()];
                let quantities =
                    [(1, 10), (10, 20), (20, 30)].map(|(least, most)| self.between(least, most).to_string());
                brands.into_iter().chain(quantities).collect()
            }
            20 => vec![self.word(self.lists.part_colors()), self.year(), self.word(self.lists.nations())],
            21 => vec![self.word(self.lists.nations())],
            _ => self.some_of(25, 7).into_iter().map(|code| (10 + code).to_string()).collect(),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.draws.below(bound as u64) as usize
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.draws.below(most - least + 1)
    }

    fn pick(&mut self, list: &[&str]) -> String {
        list[self.below(list.len())].to_owned()
    }

    fn word(&mut self, list: &Distribution) -> String {
        self.pick(list.get_values())
    }

    /// Returns `count` different numbers of `0..bound`.
    fn some_of(&mut self, bound: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..bound).collect();
        for at in 0..count {
            let other = at + self.below(bound - at);
            all.swap(at, other);
        }
        all.truncate(count);
        all
    }

    fn two(&mut self, bound: usize) -> [usize; 2] {
        let some = self.some_of(bound, 2);
        [some[0], some[1]]
    }

    fn brand(&mut self) -> String {
        format!("Brand#{}{}", self.between(1, 5), self.between(1, 5))
    }

    fn year(&mut self) -> String {
        format!("{}-01-01", self.between(1993, 1997))
    }

    /// Returns the first day of a month, from January 1993 to `last` months later.
    fn month(&mut self, last: u64) -> String {
        month_after_1993(self.between(0, last))
    }
}

fn month_after_1993(months: u64) -> String {
    format!("{}-{:02}-01", 1993 + months / 12, 1 + months % 12)
}

fn last_word(text: &str) -> String {
    text.rsplit(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_has_every_query_once() {
        for order in ORDERS {
            let mut sorted = order;
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(1..=22), "{order:?}");
        }
    }

    #[test]
    fn parameters_depend_on_seed_stream_and_query_alone() {
        let all = |seed, stream| (1..=22).map(|number| drawn(number, 1.0, seed, stream)).collect::<Vec<_>>();
        assert_eq!(all(1, 2), all(1, 2));
        assert_ne!(all(1, 2), all(1, 3));
        assert_ne!(all(1, 2), all(2, 2));
        for number in 1..=22 {
            assert_eq!(drawn(number, 1.0, 7, 0).len(), validation(number, 1.0).len(), "q{number}");
        }
    }

    #[test]
    fn q8_asks_for_the_region_of_its_nation() {
        let asked: Vec<(String, String)> = (0..50)
            .map(|stream| drawn(8, 1.0, 1, stream))
            .map(|params| (params[0].clone(), params[1].clone()))
            .collect();
        let known =
            [("FRANCE", "EUROPE"), ("KENYA", "AFRICA"), ("IRAN", "MIDDLE EAST"), ("CANADA", "AMERICA")];
        let region =
            |nation: &str| asked.iter().find(|(name, _)| name == nation).map(|(_, region)| region.as_str());
        for (nation, wanted) in known {
            assert!(region(nation).is_none_or(|region| region == wanted), "{nation} {asked:?}");
        }
        assert!(known.iter().filter(|(nation, _)| region(nation).is_some()).count() > 1, "{asked:?}");
    }

    #[test]
    fn lists_of_sizes_and_codes_hold_nothing_twice() {
        for stream in 0..20 {
            for (number, from) in [(16, 2), (22, 0)] {
                let mut values = drawn(number, 1.0, 3, stream).split_off(from);
                let count = values.len();
                values.sort();
                values.dedup();
                assert_eq!(values.len(), count);
            }
        }
    }

    #[test]
    fn the_share_of_q11_follows_the_scale_factor() {
        assert_eq!(validation(11, 1.0)[1], "0.0001000000");
        assert_eq!(validation(11, 30.0)[1], "0.0000033333");
        assert_eq!(validation(11, 0.01)[1], "0.0100000000");
    }
}
