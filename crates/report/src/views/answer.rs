//! A run's summary: one sentence per variant, and one table with the deciding figures. It is the
//! same in every format.

use dbdyno_analyse::{
    Bound, Code, CostBreakdown, Latency, StepFindings, VariantStep, Verdict, Warning, forecast,
};

use super::details::cause;
use super::{Part, Scope, headline_text, part, placeholder, ratio_or_placeholder};
use crate::document::{Block, Cell, Column, Table, Tone};
use crate::number::{fixed, interval_text, milliseconds, needed_blocks, shared_unit};
use crate::sentences::{sentences, shown_verdict};
use crate::warnings::texts;
use crate::words::{listed, undecided_text};

/// What a reader should know first about one workload: sentences, then one row per step, then the
/// meaning of signs and columns.
pub(crate) fn answer(scope: Scope<'_>) -> Vec<Block> {
    let (tables, note) = (part(scope, Part::Answer), note(scope));
    let sentences = sentences(scope).into_iter().map(|text| Block::Text(Tone::Strong, text));
    let caches = caches(scope).into_iter().map(|text| Block::Text(Tone::Doubt, text));
    let sentences = sentences.chain(caches);
    let note = Some(note).filter(|note| !note.is_empty());
    let note = one_block(scope).into_iter().chain(note).chain(undecided(scope));
    let note = note.collect::<Vec<_>>().join(" ");
    let note = (!note.is_empty()).then_some(Block::Text(Tone::Muted, note));
    sentences.chain(tables).chain(note).collect()
}

/// The sentence for a workload in which no comparison has a second block; `None` otherwise.
pub(crate) fn one_block(scope: Scope<'_>) -> Option<String> {
    let is_one = !scope.compared().is_empty() && scope.workload.most_ratio_blocks(&scope.run.base) == 1;
    is_one.then(|| match scope.run.blocks_planned {
        0 | 1 => "One block: differences may be chance; use --blocks 5.".to_owned(),
        planned => format!("One block of {planned} was measured: differences may be chance."),
    })
}

/// Sentences on caches that answer in place of the engine, whichever variants have them.
fn caches(scope: Scope<'_>) -> Vec<String> {
    let is_cache = |warning: &&Warning| matches!(warning.code, Code::QueryCache | Code::AnsweredByCache);
    texts(scope.warnings.iter().filter(is_cache))
}

/// Sentences on steps that more blocks would not decide, by reason.
fn undecided(scope: Scope<'_>) -> Vec<String> {
    let mut by_reason: Vec<(String, Vec<&str>)> = Vec::new();
    for step in scope.steps() {
        for why in step.variants.iter().filter_map(|variant| variant.to_base.undecided.as_ref()) {
            let text = undecided_text(why);
            match by_reason.iter_mut().find(|(known, _)| *known == text) {
                Some((_, steps)) if steps.contains(&step.name.as_str()) => {}
                Some((_, steps)) => steps.push(&step.name),
                None => by_reason.push((text, vec![&step.name])),
            }
        }
    }
    by_reason.into_iter().map(|(why, steps)| format!("Undecided in {}: {why}.", listed(&steps))).collect()
}

/// What is shown where there is no value.
pub(crate) const NONE: &str = "–";

/// Makes the tables that decide: one variant next to the base, or one column per variant for
/// several.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let steps: Vec<&StepFindings> = scope.steps().collect();
    match scope.compared().as_slice() {
        [] => vec![alone(scope, &steps)],
        [name] => vec![Pairs::new(scope, name, &steps).table()],
        names => {
            let base = &scope.run.base;
            let rates = [unit(&steps), "ratio".to_owned()];
            let p99 = ["p99 ms"; 2].map(str::to_owned);
            let base_rate = |step: &StepFindings| rate_text(scope, step, base).into();
            let base_p99 = |step: &StepFindings| p99_ms(step.variant(base)).into();
            let ratio = |found: &VariantStep| ratio_cell(scope, found);
            let mut tables = vec![each(base, names, &steps, (rates, &base_rate, &ratio))];
            if has_p99(&steps) {
                tables.push(each(base, names, &steps, (p99, &base_p99, &p99_cell)));
            }
            tables
        }
    }
}

/// Says what the tables' signs and columns are.
fn note(scope: Scope<'_>) -> String {
    let steps: Vec<&StepFindings> = scope.steps().collect();
    match scope.compared().as_slice() {
        [] => "Latency: response time, all clients and blocks together.".to_owned(),
        [name] => Pairs::new(scope, name, &steps).note(),
        _ => {
            let base = format!("Base: {}.", scope.run.base);
            std::iter::once(base).chain(blocks_needed(&steps)).collect::<Vec<_>>().join(" ")
        }
    }
}

/// A table with these columns in their order. The first one is the label.
fn table(columns: Vec<Column>, rows: impl Iterator<Item = Vec<Cell>>) -> Table {
    Table { labels: 1, columns, rows: rows.collect(), ..Table::default() }
}

/// A variant's rate, or the placeholder that says why it has none.
fn rate_text(scope: Scope<'_>, step: &StepFindings, variant: &str) -> String {
    let Some(found) = step.variant(variant) else { return NONE.to_owned() };
    match found.rate {
        Some(figure) => headline_text(step, figure, found.cut_off),
        None => placeholder(scope, found).text.to_owned(),
    }
}

/// About how many blocks would decide the noisiest undecided comparison; `None` where there are
/// already as many. A comparison with rates of zero stays undecided after any number.
fn blocks_needed(steps: &[&StepFindings]) -> Option<String> {
    let noise = |step: &StepFindings, variant: &VariantStep| {
        let ratio =
            variant.to_base.ratio.as_ref().filter(|_| variant.to_base.verdict == Some(Verdict::Undecided))?;
        let paired = ratio.inference.as_ref()?.paired.as_ref()?;
        variant.to_base.zero_rates.is_empty().then_some((paired.deviation, step.margin, ratio.blocks.len()))
    };
    let all = steps.iter().flat_map(|step| step.variants.iter().filter_map(|variant| noise(step, variant)));
    let relative = |(deviation, margin, _): &(f64, f64, usize)| deviation / margin;
    let (deviation, margin, blocks) = all.max_by(|one, other| relative(one).total_cmp(&relative(other)))?;
    let found = forecast(deviation, 2, 1, 2.0 * margin, margin);
    let is_more = |needed: Option<u32>| needed.is_none_or(|needed| needed as usize > blocks);
    if !is_more(found.blocks_for_difference) && !is_more(found.blocks_for_same) {
        return None;
    }
    let (twice, same) = (needed_blocks(found.blocks_for_difference), needed_blocks(found.blocks_for_same));
    Some(format!("Undecided: {twice} blocks find twice the margin, {same} show same (noisiest step)."))
}

/// Whether any variant has enough operations for a p99 in any step.
fn has_p99(steps: &[&StepFindings]) -> bool {
    steps.iter().flat_map(|step| &step.variants).any(|variant| p99_ms(Some(variant)) != NONE)
}

fn p99_ms(variant: Option<&VariantStep>) -> String {
    let latency = variant.and_then(|variant| variant.latency.as_ref());
    latency.and_then(Latency::known_p99_us).map_or(NONE.to_owned(), milliseconds)
}

/// The unit that all steps share, for the head of a column. A step that never ran has no unit.
fn unit(steps: &[&StepFindings]) -> String {
    shared_unit(steps.iter().map(|step| step.rate_label.as_str())).unwrap_or("per s").to_owned()
}

/// A function that gives a figure in microseconds.
type Figure = fn(&Latency) -> u64;

fn alone(scope: Scope<'_>, steps: &[&StepFindings]) -> Table {
    let head = if scope.are_times() { "time" } else { "rate" };
    let mut columns = vec![Column::ranked("step", "", 0), Column::ranked(head, &unit(steps), 0)];
    let figures: [(&str, Figure); 5] = [
        ("mean", |latency| latency.mean_us.round() as u64),
        ("p50", |latency| latency.p50_us),
        ("p95", |latency| latency.p95_us),
        ("p99", |latency| latency.p99_us),
        ("max", |latency| latency.max_us),
    ];
    columns.extend(figures.iter().map(|(name, _)| Column::ranked(name, "ms", 0)));
    let row = |step: &&StepFindings| {
        let variant = step.variants.first();
        let latency = variant.and_then(|variant| variant.latency.as_ref());
        let figures = figures.iter().map(|(_, figure)| {
            Cell::from(latency.map_or(NONE.to_owned(), |latency| milliseconds(figure(latency))))
        });
        let name = variant.map_or("", |variant| &variant.variant);
        let head = [step.name.clone(), rate_text(scope, step, name)].map(Cell::from);
        head.into_iter().chain(figures).collect()
    };
    table(columns, steps.iter().map(row))
}

/// The rows for one variant against the base.
struct Pairs<'a> {
    rows: Vec<Pair<'a>>,
    unit: String,
}

struct Pair<'a> {
    step: &'a StepFindings,
    rates: [String; 2],
    ratio: String,
    base: Option<&'a VariantStep>,
    new: Option<&'a VariantStep>,
}

impl<'a> Pairs<'a> {
    fn new(scope: Scope<'a>, name: &str, steps: &[&'a StepFindings]) -> Self {
        let base = scope.run.base.as_str();
        let pair = |step: &&'a StepFindings| Pair {
            step,
            rates: [base, name].map(|variant| rate_text(scope, step, variant)),
            ratio: step.variant(name).map_or(NONE.to_owned(), |found| ratio_or_placeholder(scope, found)),
            base: step.variant(base),
            new: step.variant(name),
        };
        Self { rows: steps.iter().map(pair).collect(), unit: unit(steps) }
    }

    fn table(&self) -> Table {
        let mut columns = vec![
            Column::ranked("step", "", 0),
            Column::ranked("base", &self.unit, 2),
            Column::ranked("new", &self.unit, 1),
            Column::ranked("ratio", "", 0),
        ];
        let has_verdicts = self.rows.iter().any(|pair| pair.verdict().is_some());
        if has_verdicts {
            columns.extend([Column::ranked("95 %", "interval", 3), Column::ranked("verdict", "", 0)]);
        }
        // Times of queries are few, and are themselves the headline.
        let has_p99 = !self.rows.iter().all(|pair| pair.step.less_is_better);
        if has_p99 {
            columns.push(Column::ranked("p99", "base → new, ms", 0));
        }
        let has_causes = self.rows.iter().any(|pair| pair.cause().is_some());
        if has_causes {
            // Steps that are times have no factors.
            columns.push(Column::ranked("main cause", if has_p99 { "× on rate" } else { "" }, 4));
        }
        let row = |pair: &Pair<'_>| {
            let verdict = pair.verdict();
            let mut cells = vec![
                pair.step.name.clone().into(),
                pair.rate(0, pair.base),
                pair.rate(1, pair.new),
                with_ratio(pair.new, Cell::toned(&pair.ratio, Tone::of(verdict))),
            ];
            if has_verdicts {
                let interval = pair.new.and_then(|new| new.to_base.interval());
                let text = interval.map_or(NONE.to_owned(), interval_text);
                cells.push(Cell { drawn: interval, ..Cell::from(text) });
                let word = verdict.map_or(NONE.to_owned(), |verdict| verdict.word().to_owned());
                cells.push(Cell::toned(word, Tone::of(verdict)));
            }
            cells.extend(has_p99.then(|| pair.p99()));
            cells.extend(has_causes.then(|| pair.cause().unwrap_or_default().into()));
            cells
        };
        table(columns, self.rows.iter().map(row))
    }

    fn note(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(blocks_needed(&self.rows.iter().map(|pair| pair.step).collect::<Vec<_>>()));
        let has = |verdict| self.rows.iter().any(|pair| pair.p99_verdict() == Some(verdict));
        if has(Verdict::Faster) || has(Verdict::Slower) {
            parts.push("↓ p99 is lower, ↑ higher than the base's, by verdict.".to_owned());
        }
        parts.join(" ")
    }
}

impl Pair<'_> {
    /// Returns the table cell of a rate. It has the number too, where the text is no placeholder.
    fn rate(&self, side: usize, variant: Option<&VariantStep>) -> Cell {
        let bound = variant.filter(|variant| variant.cut_off).map(|_| Bound::MoreThan);
        let value = variant.and_then(|variant| variant.rate);
        Cell { value, bound, ..Cell::from(self.rates[side].as_str()) }
    }

    fn verdict(&self) -> Option<Verdict> {
        self.new.and_then(shown_verdict)
    }

    fn p99_verdict(&self) -> Option<Verdict> {
        self.new?.to_base.p99.as_ref()?.verdict
    }

    fn p99(&self) -> Cell {
        let (base, new) = (p99_ms(self.base), p99_ms(self.new));
        if base == NONE && new == NONE {
            return NONE.to_owned().into();
        }
        let verdict = self.p99_verdict();
        Cell::toned(format!("{base} → {new}{}", arrow(verdict)), Tone::of(verdict))
    }

    /// The cause of most of the difference; `None` where no difference was found.
    fn cause(&self) -> Option<String> {
        let differs = match self.verdict() {
            Some(verdict) => matches!(verdict, Verdict::Faster | Verdict::Slower | Verdict::Missed),
            None => (self.new?.to_base.value()? - 1.0).abs() > 0.05,
        };
        let new = self.new.filter(|_| differs)?;
        if !new.context.query_plans.is_empty() {
            return Some("other plan".to_owned());
        }
        greatest(new.to_base.cost_breakdown.as_ref()?)
    }
}

pub(crate) fn arrow(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Faster) => " ↓",
        Some(Verdict::Slower) => " ↑",
        _ => "",
    }
}

/// The largest cause, such as `user CPU ×0.81`.
fn greatest(cost_breakdown: &CostBreakdown) -> Option<String> {
    let part = cost_breakdown.main_part()?;
    Some(format!("{} ×{}", cause(part.cause), fixed(Some(part.factor), 2)))
}

/// A function that gives the base's table cell for a step, in a table of several variants.
type BaseCell<'a> = dyn Fn(&StepFindings) -> Cell + 'a;

/// A function that gives another variant's table cell.
type Cells<'a> = dyn Fn(&VariantStep) -> Cell + 'a;

/// Several variants against the base, with one column each.
fn each(
    base: &str,
    names: &[&str],
    steps: &[&StepFindings],
    ([of_base, of_others], base_cell, cells): ([String; 2], &BaseCell<'_>, &Cells<'_>),
) -> Table {
    let mut columns = vec![Column::ranked("step", "", 0), Column::ranked(base, &of_base, 0)];
    columns.extend(names.iter().map(|name| Column::ranked(name, &of_others, 0)));
    let row = |step: &&StepFindings| {
        let mut line: Vec<Cell> = vec![step.name.clone().into(), base_cell(step)];
        line.extend(names.iter().map(|name| step.variant(name).map_or(NONE.into(), cells)));
        line
    };
    table(columns, steps.iter().map(row))
}

/// Returns the text of a ratio with its number, and on which side of it the true one lies.
fn with_ratio(found: Option<&VariantStep>, cell: Cell) -> Cell {
    let ratio = found.and_then(|found| found.to_base.ratio.as_ref());
    Cell { value: ratio.map(|ratio| ratio.value), bound: ratio.and_then(|ratio| ratio.bound), ..cell }
}

fn ratio_cell(scope: Scope<'_>, found: &VariantStep) -> Cell {
    let verdict = shown_verdict(found);
    let word = verdict.map_or(String::new(), |verdict| format!(" {}", verdict.word()));
    let drawn = found.to_base.interval();
    let text = format!("{}{word}", ratio_or_placeholder(scope, found));
    with_ratio(Some(found), Cell { drawn, ..Cell::toned(text, Tone::of(verdict)) })
}

fn p99_cell(found: &VariantStep) -> Cell {
    let verdict = found.to_base.p99.as_ref().and_then(|p99| p99.verdict);
    Cell::toned(format!("{}{}", p99_ms(Some(found)), arrow(verdict)), Tone::of(verdict))
}
