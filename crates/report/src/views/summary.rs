//! A run's summary: one sentence per variant, with the number of steps in which it is faster,
//! slower or the same, and one table with the deciding figures. It is the same in every format. A
//! sentence names steps whose medians and ratio point in opposite directions, so that a reader does
//! not take one of the two for a mistake.

use dbdyno_analyse::{
    Bound, Code, CostPart, LEVEL, Latency, Ratio, RunSummary, StepFindings, VariantStep, Verdict, Warning,
    WorkloadFindings, forecast, numbered,
};

use super::cells::{is_open, sign_of};
use super::details::{cause, explanations};
use super::{
    Scope, ViewPart, why, bounded_text, headline_text, part, placeholder, ratio_or_placeholder, ratio_tone,
};
use crate::document::{Block, Column, Table, TableCell, Tone};
use crate::number::{duration_whole_us, fixed, interval_text, milliseconds, needed_blocks, shared_unit};
use crate::warnings::texts;
use crate::words::{blocks_text, listed, reached_rate_text, undecided_text, zero_rate_text};

/// Returns the summary of one workload: sentences, then one row per step,
/// then the meaning of signs and columns.
pub(crate) fn blocks(scope: Scope<'_>) -> Vec<Block> {
    let (tables, legend) = (part(scope, ViewPart::Summary), note(scope));
    let sentences = sentences(scope).into_iter().map(|text| Block::Text(Tone::Strong, text));
    let caches = caches(scope).into_iter().map(|text| Block::Text(Tone::Doubt, text));
    let sentences = sentences.chain(caches);
    let legend = Some(legend).filter(|legend| !legend.is_empty());
    let remarks = one_block(scope).into_iter().chain(legend).chain(by_instructions(scope));
    let remarks = remarks.chain(corrected(scope)).chain(undecided(scope));
    let remarks = remarks.collect::<Vec<_>>().join(" ");
    let last_block = (!remarks.is_empty()).then_some(Block::Text(Tone::Muted, remarks));
    let causes = why::sentences(scope.why, &scope.workload.name).into_iter().map(Block::text);
    sentences.chain(tables).chain(causes).chain(last_block).collect()
}

/// Says why a comparison can be undecided although its interval leaves out 1. It is `None` where
/// there is no such comparison.
fn corrected(scope: Scope<'_>) -> Option<String> {
    let is_such = |variant: &VariantStep| {
        let interval = variant.to_base.interval();
        variant.to_base.verdict == Some(Verdict::Undecided)
            && interval.is_some_and(|interval| interval.low > 1.0 || interval.high < 1.0)
    };
    let steps: Vec<&str> = scope
        .steps()
        .filter(|step| step.variants.iter().any(is_such))
        .map(|step| step.name.as_str())
        .collect();
    (!steps.is_empty()).then(|| {
        format!(
            "In {} an interval leaves out 1, but the difference may be chance among so many comparisons \
             (false discovery rate {:.0} %), or is within the margin.",
            listed(&steps),
            100.0 * LEVEL
        )
    })
}

/// Returns a sentence for each comparison that is undecided by its rate and decided by the server's
/// instructions per operation, which scatter least.
fn by_instructions(scope: Scope<'_>) -> Vec<String> {
    let of = |step: &StepFindings, variant: &VariantStep| {
        let found = variant.to_base.instructions.as_ref()?;
        let (verdict, interval) = (found.verdict?, found.ratio.interval()?);
        let is_decided = matches!(verdict, Verdict::Faster | Verdict::Slower | Verdict::Same);
        let is_open = variant.to_base.verdict == Some(Verdict::Undecided);
        (is_decided && is_open).then(|| {
            format!(
                "{}: the rate of {} is undecided, and decided by instructions per operation: {} ({} of the base's).",
                step.name,
                variant.variant,
                verdict.word(),
                interval_text(interval)
            )
        })
    };
    let all = scope.steps().flat_map(|step| step.variants.iter().map(move |variant| (step, variant)));
    all.filter_map(|(step, variant)| of(step, variant)).collect()
}

/// Returns the sentence for a workload in which no comparison has a second block. It is `None` for
/// any other workload.
pub(crate) fn one_block(scope: Scope<'_>) -> Option<String> {
    let is_one = !scope.compared().is_empty() && scope.workload.max_ratio_blocks(&scope.run.base) == 1;
    is_one.then(|| match scope.run.blocks_planned {
        0 | 1 => "One block: differences may be chance; use --blocks 5.".to_owned(),
        planned => format!("One block of {planned} was measured: differences may be chance."),
    })
}

/// Returns sentences on caches that answer in place of the engine, for the run as a whole.
fn caches(scope: Scope<'_>) -> Vec<String> {
    let is_cache = |warning: &&Warning| matches!(warning.code, Code::QueryCache | Code::AnsweredByCache);
    texts(scope.warnings.iter().filter(is_cache))
}

/// Returns sentences on steps that more blocks would not decide, by reason.
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

/// Says why a ratio need not be the quotient of the rates or times next to it.
fn medians_and_mean(scope: Scope<'_>) -> String {
    let what = if scope.are_times() { "Seconds" } else { "Rates" };
    let direction = if scope.are_times() { "; below 1 is faster" } else { "" };
    format!("{what}: medians of the blocks. Ratio: geometric mean of the blocks' ratios{direction}.")
}

/// Text in place of a verdict, where only one block of several has a ratio.
const ONE_BLOCK: &str = "one block";

/// Text that is shown where there is no value.
pub(crate) const NONE: &str = "–";

/// Makes the tables of the deciding figures. They show one variant next to the base, or several
/// variants with one column each. A run that compares nothing has one table, with the latencies.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let steps: Vec<&StepFindings> = scope.steps().collect();
    match scope.compared().as_slice() {
        [] => vec![alone(scope, &steps)],
        [name] => vec![Pairs::new(scope, name, &steps).table()],
        names => {
            let base = &scope.run.base;
            let mut tables = vec![ratios_table(scope, names, &steps)];
            if has_p99(&steps) {
                tables.push(p99_table(base, names, &steps));
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
        [name] => Pairs::new(scope, name, &steps).note(scope),
        _ => {
            let base = format!("Base: {}.", scope.run.base);
            let means = has_verdicts(scope).then(|| medians_and_mean(scope));
            std::iter::once(base).chain(means).chain(blocks_needed(&steps)).collect::<Vec<_>>().join(" ")
        }
    }
}

/// Makes a table with these columns in their order. The first one is the label. The arguments of
/// `Column::ranked` are the column's name, its unit and its rank: on a narrow page, columns of a
/// higher rank are left out first.
fn table(columns: Vec<Column>, rows: impl Iterator<Item = Vec<TableCell>>) -> Table {
    Table { labels: 1, columns, rows: rows.collect(), ..Table::default() }
}

/// Returns a variant's rate, or the placeholder that says why it has none.
fn rate_text(scope: Scope<'_>, step: &StepFindings, variant: &str) -> String {
    let Some(found) = step.variant(variant) else { return NONE.to_owned() };
    match found.rate {
        Some(figure) => headline_text(step, figure, found.cut_off),
        None => placeholder(scope, found).text.to_owned(),
    }
}

/// Returns a sentence with the approximate number of blocks that would decide the noisiest
/// undecided comparison, which is the one with the highest deviation per margin. It is `None` where
/// the run has that many blocks already. A comparison with rates of zero is left out, because no
/// number of blocks decides it.
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
    // The wanted difference is twice the margin. The number of blocks (2) and the number of
    // comparisons (1) do not affect the two figures that are used here.
    let found = forecast(deviation, 2, 1, 2.0 * margin, margin);
    let is_more = |needed: Option<u32>| needed.is_none_or(|needed| needed as usize > blocks);
    if !is_more(found.blocks_for_difference) && !is_more(found.blocks_for_same) {
        return None;
    }
    let (twice, same) = (needed_blocks(found.blocks_for_difference), needed_blocks(found.blocks_for_same));
    if twice == same {
        return Some(format!("Undecided: the noisiest step would need {twice} blocks."));
    }
    Some(format!(
        "Undecided: in the noisiest step, {twice} blocks would find a difference of twice the margin, and {same} would show same."
    ))
}

/// Whether any variant has enough operations for a p99 in any step.
fn has_p99(steps: &[&StepFindings]) -> bool {
    steps.iter().flat_map(|step| &step.variants).any(|variant| p99_ms(Some(variant)) != NONE)
}

fn p99_ms(variant: Option<&VariantStep>) -> String {
    let latency = variant.and_then(|variant| variant.latency.as_ref());
    latency.and_then(Latency::known_p99_us).map_or(NONE.to_owned(), milliseconds)
}

/// Returns the unit that all steps share, for the head of a column. A step that never ran has no
/// unit.
fn unit(steps: &[&StepFindings]) -> String {
    shared_unit(steps.iter().map(|step| step.rate_label.as_str())).unwrap_or("per s").to_owned()
}

/// A function that gives a figure in microseconds, if it is known.
type LatencyFigure = fn(&Latency) -> Option<u64>;

fn alone(scope: Scope<'_>, steps: &[&StepFindings]) -> Table {
    let head = if scope.are_times() { "time" } else { "rate" };
    let mut columns = vec![Column::ranked("step", "", 0), Column::ranked(head, &unit(steps), 0)];
    let figures: [(&str, LatencyFigure); 5] = [
        ("mean", |latency| Some(latency.mean_us.round() as u64)),
        ("p50", |latency| Some(latency.p50_us)),
        ("p95", Latency::known_p95_us),
        ("p99", Latency::known_p99_us),
        ("max", |latency| Some(latency.max_us)),
    ];
    columns.extend(figures.iter().map(|(name, _)| Column::ranked(name, "ms", 0)));
    let row = |step: &&StepFindings| {
        let variant = step.variants.first();
        let latency = variant.and_then(|variant| variant.latency.as_ref());
        let figures = figures.iter().map(|(_, figure)| {
            TableCell::from(latency.and_then(figure).map_or(NONE.to_owned(), milliseconds))
        });
        let name = variant.map_or("", |variant| &variant.variant);
        let head = [step.name.clone(), rate_text(scope, step, name)].map(TableCell::from);
        head.into_iter().chain(figures).collect()
    };
    table(columns, steps.iter().map(row))
}

/// The rows for one variant against the base.
struct Pairs<'a> {
    rows: Vec<Pair<'a>>,
    /// The base's name and the variant's.
    names: [String; 2],
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
        let names = [base, name].map(str::to_owned);
        Self { rows: steps.iter().map(pair).collect(), names, unit: unit(steps) }
    }

    fn table(&self) -> Table {
        let mut columns = vec![Column::ranked("step", "", 0)];
        let has_meanings = self.rows.iter().any(|pair| !pair.step.meaning.is_empty());
        columns.extend(has_meanings.then(meanings));
        columns.extend([
            Column::ranked(&self.names[0], &self.unit, 2),
            Column::ranked(&self.names[1], &self.unit, 1),
            Column::ranked("ratio", "", 0),
        ]);
        let has_verdicts = self.has_verdicts();
        if has_verdicts {
            columns.extend([Column::ranked("95 % CI", "", 3), Column::ranked("verdict", "", 0)]);
        }
        // If all headlines are times, there is no p99 column: such steps run few queries, and the
        // columns of base and new already show the times.
        let has_rates = !self.rows.iter().all(|pair| pair.step.less_is_better);
        if has_rates {
            columns.push(Column::ranked("p99", "base → new, ms", 0));
        }
        let causes: Vec<[Option<String>; 2]> = self.rows.iter().map(Pair::causes).collect();
        let [has_causes, has_next] = [0, 1].map(|at| causes.iter().any(|causes| causes[at].is_some()));
        // If the headlines are rates, a cause is shown with its factor on the rate. If they are
        // times, the only cause that can be shown is another query plan.
        let unit = if has_rates { "× on rate" } else { "" };
        columns.extend(has_causes.then(|| Column::ranked("main cause", unit, 4)));
        columns.extend(has_next.then(|| Column::ranked("next cause", unit, 6)));
        let row = |(pair, causes): (&Pair<'_>, [Option<String>; 2])| {
            let verdict = pair.verdict();
            let mut cells = vec![pair.step.name.clone().into()];
            cells.extend(has_meanings.then(|| pair.step.meaning.clone().into()));
            cells.extend([
                pair.rate(0, pair.base),
                pair.rate(1, pair.new),
                with_ratio(pair.new, TableCell::toned(&pair.ratio, Tone::of(verdict))),
            ]);
            if has_verdicts {
                let drawn = pair.new.and_then(|new| new.to_base.interval());
                cells.push(TableCell { drawn, ..interval_cell(pair.new) });
                let is_one_block = pair.new.is_some_and(|new| new.to_base.ratio.is_some());
                let none = if is_one_block { ONE_BLOCK } else { NONE };
                let word = verdict.map_or(none, |verdict| verdict.word());
                cells.push(TableCell::toned(word, Tone::of(verdict)));
            }
            cells.extend(has_rates.then(|| pair.p99()));
            let shown = [has_causes, has_next].into_iter().zip(causes);
            cells.extend(
                shown.filter(|(is_shown, _)| *is_shown).map(|(_, cause)| cause.unwrap_or_default().into()),
            );
            cells
        };
        table(columns, self.rows.iter().zip(causes).map(row))
    }

    fn has_verdicts(&self) -> bool {
        self.rows.iter().any(|pair| pair.verdict().is_some())
    }

    fn note(&self, scope: Scope<'_>) -> String {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.has_verdicts().then(|| medians_and_mean(scope)));
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
    fn rate(&self, side: usize, variant: Option<&VariantStep>) -> TableCell {
        let bound = variant.filter(|variant| variant.cut_off).map(|_| Bound::MoreThan);
        let value = variant.and_then(|variant| variant.rate);
        TableCell { value, bound, ..TableCell::from(self.rates[side].as_str()) }
    }

    fn verdict(&self) -> Option<Verdict> {
        self.new.and_then(shown_verdict)
    }

    fn p99_verdict(&self) -> Option<Verdict> {
        self.new?.to_base.p99.as_ref()?.verdict
    }

    fn p99(&self) -> TableCell {
        let (base, new) = (p99_ms(self.base), p99_ms(self.new));
        if base == NONE && new == NONE {
            return NONE.to_owned().into();
        }
        let verdict = self.p99_verdict();
        TableCell::toned(format!("{base} → {new}{}", arrow(verdict)), Tone::of(verdict))
    }

    /// Names the largest cause of the difference, such as `user CPU ×0.81`, and the next one where
    /// the first leaves more than 5 % of the ratio unexplained. There is none where no difference
    /// was found.
    fn causes(&self) -> [Option<String>; 2] {
        let differs = match self.verdict() {
            Some(verdict) => matches!(verdict, Verdict::Faster | Verdict::Slower | Verdict::Missed),
            None => {
                let ratio = self.new.and_then(|new| new.to_base.value());
                ratio.is_some_and(|ratio| (ratio - 1.0).abs() > NEAR)
            }
        };
        let Some(new) = self.new.filter(|_| differs) else { return [None, None] };
        if !new.context.query_plans.is_empty() {
            return [Some("other plan".to_owned()), None];
        }
        let Some(cost_breakdown) = &new.to_base.cost_breakdown else { return [None, None] };
        let parts = cost_breakdown.by_weight();
        let rest: f64 = parts.iter().skip(1).map(|part| part.factor.ln()).sum();
        let count = if rest.abs() <= NEAR.ln_1p() { 1 } else { 2 };
        let text = |part: &&CostPart| format!("{} ×{}", cause(part.cause), fixed(Some(part.factor), 2));
        let mut named = parts.iter().take(count).map(text);
        [named.next(), named.next()]
    }
}

pub(crate) fn arrow(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Faster) => " ↓",
        Some(Verdict::Slower) => " ↑",
        _ => "",
    }
}

/// Makes the column that says in a few words what a step does.
fn meanings() -> Column {
    Column { is_words: true, ..Column::ranked("what", "", 5) }
}

/// The largest number of variants whose intervals the answer's table has, next to the ratios. With more
/// of them it would be wider than a page. The table of relative rates has all intervals.
const WITH_INTERVALS: usize = 3;

/// Makes the table of several variants' ratios to the base, each with its interval. A terminal has
/// the intervals where there is room for all of them.
fn ratios_table(scope: Scope<'_>, names: &[&str], steps: &[&StepFindings]) -> Table {
    let base = &scope.run.base;
    let has_meanings = steps.iter().any(|step| !step.meaning.is_empty());
    let has_intervals = has_verdicts(scope) && names.len() <= WITH_INTERVALS;
    let mut columns = vec![Column::ranked("step", "", 0)];
    columns.extend(has_meanings.then(meanings));
    columns.push(Column::ranked(base, &unit(steps), 0));
    for name in names {
        columns.push(Column::ranked(name, "ratio", 0));
        columns.extend(has_intervals.then(|| Column::ranked("95 % CI", "", 6)));
    }
    let row = |step: &&StepFindings| {
        let mut line: Vec<TableCell> = vec![step.name.clone().into()];
        line.extend(has_meanings.then(|| step.meaning.clone().into()));
        line.push(rate_text(scope, step, base).into());
        for found in names.iter().map(|name| step.variant(name)) {
            line.push(found.map_or(NONE.into(), |found| ratio_cell(scope, found)));
            line.extend(has_intervals.then(|| interval_cell(found)));
        }
        line
    };
    table(columns, steps.iter().map(row))
}

/// Makes the table of the p99 response times of the base and of several variants.
fn p99_table(base: &str, names: &[&str], steps: &[&StepFindings]) -> Table {
    let columns = ["step"].into_iter().map(|name| Column::ranked(name, "", 0));
    let columns =
        columns.chain([&base].into_iter().chain(names).map(|name| Column::ranked(name, "p99 ms", 0)));
    let row = |step: &&StepFindings| {
        let head = [step.name.clone(), p99_ms(step.variant(base))].map(TableCell::from);
        let cells = names.iter().map(|name| step.variant(name).map_or(NONE.into(), p99_cell));
        head.into_iter().chain(cells).collect()
    };
    table(columns.collect(), steps.iter().map(row))
}

/// Makes the table cell of a ratio's interval.
fn interval_cell(found: Option<&VariantStep>) -> TableCell {
    let interval = found.and_then(|found| found.to_base.interval());
    interval.map_or(NONE.to_owned(), interval_text).into()
}

/// Adds to a table cell the ratio's number, and on which side of it the true ratio lies.
fn with_ratio(found: Option<&VariantStep>, cell: TableCell) -> TableCell {
    let ratio = found.and_then(|found| found.to_base.ratio.as_ref());
    TableCell { value: ratio.map(|ratio| ratio.value), bound: ratio.and_then(|ratio| ratio.bound), ..cell }
}

fn ratio_cell(scope: Scope<'_>, found: &VariantStep) -> TableCell {
    let verdict = shown_verdict(found);
    let word = match verdict {
        Some(verdict) => format!(" {}", verdict.word()),
        None if has_verdicts(scope) && found.to_base.ratio.is_some() => format!(" {ONE_BLOCK}"),
        None => String::new(),
    };
    let text = format!("{}{word}", ratio_or_placeholder(scope, found));
    with_ratio(Some(found), TableCell::toned(text, Tone::of(verdict)))
}

fn p99_cell(found: &VariantStep) -> TableCell {
    let verdict = found.to_base.p99.as_ref().and_then(|p99| p99.verdict);
    TableCell::toned(format!("{}{}", p99_ms(Some(found)), arrow(verdict)), Tone::of(verdict))
}

/// Returns sentences for the variants other than the base. Variants with the same result share a
/// sentence.
pub(crate) fn sentences(scope: Scope<'_>) -> Vec<String> {
    let has_verdicts = has_verdicts(scope);
    let mut by_text: Vec<(Vec<&str>, String)> = Vec::new();
    for name in scope.compared() {
        let against = Against { scope, name };
        let text = if has_verdicts { against.verdicts() } else { against.differences() };
        match by_text.iter_mut().find(|(_, same)| *same == text) {
            Some((names, _)) => names.push(name),
            None => by_text.push((vec![name], text)),
        }
    }
    let sentence = |(names, text): (Vec<&str>, String)| match names.as_slice() {
        [name] => format!("{name} {text}"),
        names => match text.strip_prefix("is ") {
            Some(predicate) => format!("{} are {predicate}", listed(names)),
            None => format!("{} {}", listed(names), text.replace(") and is ", ") and are ")),
        },
    };
    by_text.into_iter().map(sentence).collect()
}

/// Returns sentences on the causes of the largest differences, and on medians that disagree with a
/// ratio.
pub(crate) fn reasons(scope: Scope<'_>) -> Vec<String> {
    if !has_verdicts(scope) {
        return Vec::new();
    }
    explanations(scope.workload).into_iter().chain(opposite(scope.run, scope.workload)).collect()
}

/// Whether any step can have a verdict: its ratio has an interval, or there are several blocks. The
/// number of blocks counts too, because steps whose rate the plan sets have verdicts but no
/// interval.
fn has_verdicts(scope: Scope<'_>) -> bool {
    let mut variants = scope.steps().flat_map(|step| &step.variants);
    variants.any(|variant| variant.to_base.inference().is_some())
        || scope.workload.max_ratio_blocks(&scope.run.base) > 1
}

/// Returns the variant's verdict in a step. It is `None` where there is no ratio, no rate of zero
/// and no reason for being undecided. A verdict without any of these (`Invalid`) says only that no
/// valid runs could be compared.
fn shown_verdict(variant: &VariantStep) -> Option<Verdict> {
    let says_something = variant.to_base.ratio.is_some()
        || !variant.to_base.zero_rates.is_empty()
        || variant.to_base.undecided.is_some();
    variant.to_base.verdict.filter(|_| says_something)
}

/// One variant against the base.
#[derive(Clone, Copy)]
struct Against<'a> {
    scope: Scope<'a>,
    name: &'a str,
}

type StepOfVariant<'a> = (&'a StepFindings, &'a VariantStep);

impl<'a> Against<'a> {
    fn steps(self) -> impl Iterator<Item = StepOfVariant<'a>> {
        self.scope.steps().filter_map(move |step| Some((step, step.variant(self.name)?)))
    }

    fn with(self, verdict: Verdict) -> impl Iterator<Item = StepOfVariant<'a>> {
        self.steps().filter(move |(_, variant)| shown_verdict(variant) == Some(verdict))
    }

    fn sentence(self, parts: &[String]) -> String {
        format!("against {}: {}.", self.scope.run.base, parts.join("; "))
    }

    /// Counts the steps with each verdict, and names steps where something differs. Verdicts that
    /// no step has are left out.
    fn verdicts(self) -> String {
        let base = &self.scope.run.base;
        let mut parts: Vec<String> = Vec::new();
        parts.extend(counted("same", self.with(Verdict::Same).count()));
        parts.extend(counted("undecided", self.with(Verdict::Undecided).count()));
        // `Missed` has two meanings: the variant missed the background rate (named here), or the
        // schedule of the headline's own operations (named in `on_schedule`).
        let missed: Vec<String> = self
            .with(Verdict::Missed)
            .filter(|(step, _)| !step.only_variant_misses_schedule(base, self.name))
            .map(ratio_of)
            .collect();
        if !missed.is_empty() {
            parts.push(format!(
                "target missed in {} ({}: not slower, but it missed a background rate that {base} kept)",
                numbered(missed.len(), "step"),
                missed.join(", ")
            ));
        }
        parts.extend(self.on_schedule());
        // If later blocks restore a load step's data from a snapshot, the step has one block only,
        // and so a ratio but no verdict.
        let is_single =
            |variant: &VariantStep| variant.to_base.ratio.is_some() && variant.to_base.verdict.is_none();
        parts.extend(counted("one block only", self.steps().filter(|(_, found)| is_single(found)).count()));
        parts.extend(counted("no ratio", self.without_ratio()));
        self.predicate(&parts) + &self.base_stalled() + &self.other_misses()
    }

    /// Returns a sentence without its subject, such as `is slower than rollback in all 8 steps:
    /// 0.32 (l.i1) to 0.86 (qp100).` `parts` are the counts of the other steps.
    fn predicate(self, parts: &[String]) -> String {
        let base = &self.scope.run.base;
        let all = self.steps().count();
        let mut differing = Vec::new();
        for (word, verdict) in [("slower", Verdict::Slower), ("faster", Verdict::Faster)] {
            let mut ratios: Vec<(&Ratio, &str)> = self
                .with(verdict)
                .filter_map(|(step, found)| Some((found.to_base.ratio.as_ref()?, step.name.as_str())))
                .collect();
            ratios.sort_by(|(one, _), (other, _)| one.value.total_cmp(&other.value));
            let than = if differing.is_empty() { format!(" than {base}") } else { String::new() };
            let count = ratios.len();
            let text = |(ratio, step): &(&Ratio, &str)| format!("{} in {step}", bounded_text(ratio));
            differing.extend(match ratios.as_slice() {
                [] => None,
                [one] => Some(format!("{word}{than} in 1 of {all} steps ({})", text(one))),
                [lowest, .., highest] if count == all => Some(format!(
                    "{word}{than} in all {all} steps: {} ({}) to {} ({})",
                    bounded_text(lowest.0),
                    lowest.1,
                    bounded_text(highest.0),
                    highest.1
                )),
                [lowest, .., highest] => {
                    let of = if differing.is_empty() { format!(" of {all} steps") } else { String::new() };
                    Some(format!("{word}{than} in {count}{of} ({} to {})", text(lowest), text(highest)))
                }
            });
        }
        let is = (!differing.is_empty()).then(|| format!("is {}", differing.join(" and ")));
        let said: Vec<String> = self.stalled().into_iter().chain(is).collect();
        match said.is_empty() {
            true => self.sentence(parts),
            false => {
                let rest: String = parts.iter().map(|part| format!("; {part}")).collect();
                format!("{}{rest}.", said.join(" and "))
            }
        }
    }

    /// Says, for one block, in how many steps the ratios are far from 1. Which of them is farthest
    /// may be chance, so that a ratio is named only where it is the only one.
    fn differences(self) -> String {
        let steps = self.steps().filter(|(_, variant)| {
            !matches!(shown_verdict(variant), Some(Verdict::Stalled | Verdict::OnSchedule))
        });
        let ratios = steps.filter_map(|(step, variant)| Some((variant.to_base.ratio.as_ref()?, step)));
        // The tone says whether a ratio, of rates or of times, is more than 5 % faster (`Above`),
        // more than 5 % slower (`Below`) or neither (`Plain`). Where a time limit ended runs, the
        // value is only a bound. The side is then known only if the bound points away from 1 (not
        // `is_open`) and the value itself is already more than 5 % from 1.
        let says_side = |ratio: &Ratio, step: &StepFindings| {
            let tone = ratio_tone(ratio.value, step.less_is_better);
            ratio.bound.is_none() || (!is_open(ratio.value, ratio.bound) && tone != Tone::Plain)
        };
        let (known, open): (Vec<(&Ratio, &StepFindings)>, Vec<_>) =
            ratios.partition(|(ratio, step)| says_side(ratio, step));
        let with_tone = |tone: Tone| -> Vec<(&Ratio, &StepFindings)> {
            let has_tone = |(ratio, step): &&(&Ratio, &StepFindings)| {
                ratio_tone(ratio.value, step.less_is_better) == tone
            };
            known.iter().filter(has_tone).copied().collect()
        };
        let [above, below, near] = [Tone::Above, Tone::Below, Tone::Plain].map(with_tone);
        let only = |of: &[(&Ratio, &StepFindings)]| match of {
            [(ratio, step)] => {
                let time = if step.less_is_better { "time " } else { "" };
                let text = fixed(Some(ratio.value), 2);
                format!(" ({time}{}{text} in {})", sign_of(ratio.bound), step.name)
            }
            _ => String::new(),
        };
        let (rate, better, worse) = match self.scope.steps().any(|step| step.less_is_better) {
            true => ("", "more than 5 % faster", "more than 5 % slower"),
            false => ("rate ", "more than 5 % higher", "more than 5 % lower"),
        };
        let is_missed =
            |step: &StepFindings| step.only_variant_misses_target(&self.scope.run.base, self.name);
        let fewer_writes = match above.iter().filter(|(_, step)| is_missed(step)).count() {
            0 => String::new(),
            all if all == above.len() => ", with fewer background writes than planned".to_owned(),
            some => format!(", in {some} of them with fewer background writes than planned"),
        };
        let mut parts: Vec<String> = self.stalled().into_iter().collect();
        let better = counted(better, above.len()).map(|text| text + &only(&above) + &fewer_writes);
        let worse = counted(worse, below.len()).map(|text| text + &only(&below));
        let differing = better.into_iter().chain(worse).collect::<Vec<_>>().join("; ");
        parts.extend((!differing.is_empty()).then(|| format!("{rate}{differing}")));
        parts.extend(counted("within 5 %", near.len()));
        parts.extend(counted("unknown because of a time limit", open.len()));
        parts.extend(self.on_schedule());
        parts.extend(counted("no ratio", self.without_ratio()));
        self.sentence(&parts) + &self.base_stalled()
    }

    /// Returns words such as `stalled in 1 step (qr100: answered nothing in block 2 of 5, in which
    /// wal answered)`.
    fn stalled(self) -> Option<String> {
        let text = |(step, variant): StepOfVariant<'_>| {
            let text = zero_rate_text(&variant.to_base.zero_rates, &self.scope.run.base);
            format!("{}: {}", step.name, text.unwrap_or_default())
        };
        let steps: Vec<String> = self.with(Verdict::Stalled).map(text).collect();
        (!steps.is_empty())
            .then(|| format!("stalled in {} ({})", numbered(steps.len(), "step"), steps.join("; ")))
    }

    /// Returns the sentence on blocks in which the base stalled. It is empty where the base always
    /// answered.
    fn base_stalled(self) -> String {
        let stalled = self.steps().filter(|(_, variant)| !variant.to_base.zero_rates.base_stalled.is_empty());
        let text = |(step, variant): StepOfVariant<'_>| {
            format!("{} of {}", blocks_text(&variant.to_base.zero_rates.base_stalled), step.name)
        };
        let steps: Vec<String> = stalled.map(text).collect();
        if steps.is_empty() {
            return String::new();
        }
        let base = &self.scope.run.base;
        format!(" {base} answered nothing in {}: no verdict of faster or same there.", steps.join(", "))
    }

    /// Counts the steps whose rate the plan sets: those in which this variant missed the rate and
    /// the base kept it, and those in which the variant kept it.
    fn on_schedule(self) -> Vec<String> {
        let base = &self.scope.run.base;
        let missed: Vec<String> = self
            .with(Verdict::Missed)
            .filter(|(step, _)| step.only_variant_misses_schedule(base, self.name))
            .filter_map(|(step, variant)| {
                Some(format!("{}: {}", step.name, reached_rate_text(step.reached_rate(variant)?)))
            })
            .collect();
        let missed_text = (!missed.is_empty()).then(|| {
            let steps = numbered(missed.len(), "step");
            format!("schedule missed, which {base} kept, in {steps} ({})", missed.join("; "))
        });
        let on_schedule: Vec<String> =
            self.with(Verdict::OnSchedule).map(|found| self.times(found)).collect();
        let on_schedule_text = (!on_schedule.is_empty()).then(|| {
            let steps = numbered(on_schedule.len(), "step");
            format!(
                "on schedule in {steps} (the plan fixes the rate; p99 response time: {})",
                on_schedule.join(", ")
            )
        });
        missed_text.into_iter().chain(on_schedule_text).collect()
    }

    /// Returns words such as `qr100 1.52 ms against 1.40 ms`, with the p99 response times of
    /// variant and base that the table has too.
    fn times(self, (step, variant): StepOfVariant<'_>) -> String {
        let text = |variant: &VariantStep| Some(duration_whole_us(variant.latency.as_ref()?.known_p99_us()?));
        match (text(variant), step.variant(&self.scope.run.base).and_then(text)) {
            (Some(own), Some(base)) => format!("{} {own} against {base}", step.name),
            _ => step.name.clone(),
        }
    }

    /// Names the steps in which this variant missed the background rate and the base kept it. Steps
    /// with the verdict `Missed` are left out, because they are counted under that verdict.
    fn other_misses(self) -> String {
        let base = &self.scope.run.base;
        let steps: Vec<&str> = self
            .steps()
            .filter(|(step, _)| step.only_variant_misses_target(base, self.name))
            .filter(|(_, variant)| shown_verdict(variant) != Some(Verdict::Missed))
            .map(|(step, _)| step.name.as_str())
            .collect();
        match steps.is_empty() {
            true => String::new(),
            false => {
                format!(" It missed the background target in {}, which {base} kept.", steps.join(", "))
            }
        }
    }

    /// Counts the steps with neither a ratio nor a verdict to show.
    fn without_ratio(self) -> usize {
        let has_neither =
            |variant: &VariantStep| variant.to_base.ratio.is_none() && shown_verdict(variant).is_none();
        self.steps().filter(|(_, variant)| has_neither(variant)).count()
    }
}

/// Returns words such as `qr100 1.30`.
fn ratio_of((step, variant): StepOfVariant<'_>) -> String {
    let ratio = variant.to_base.ratio.as_ref().map_or("n/a".to_owned(), bounded_text);
    format!("{} {ratio}", step.name)
}

/// Returns words such as `same in 3 steps`. It is `None` without a step.
fn counted(word: &str, steps: usize) -> Option<String> {
    (steps > 0).then(|| format!("{word} in {}", numbered(steps, "step")))
}

/// A figure that differs from 1 by no more than this counts as near 1. Ratios without a verdict are
/// coloured beyond the same limit.
const NEAR: f64 = 0.05;

/// Names the steps whose medians and ratio point in opposite directions, in one sentence. It is
/// `None` where there is no such step.
///
/// A ratio is formed within each block, and the rates are medians over the blocks. Where blocks
/// differ much, the variant with the higher median can be slower in most blocks.
fn opposite(run: &RunSummary, workload: &WorkloadFindings) -> Option<String> {
    let mut found = Vec::new();
    for step in &workload.steps {
        let Some(base) = step.variant(&run.base) else { continue };
        for variant in &step.variants {
            found.extend(opposite_in_step(step, base, variant));
        }
    }
    let found = (!found.is_empty()).then(|| found.join(", "))?;
    Some(format!(
        "Medians and ratio disagree in {found}: the ratio is the mean over the blocks' ratios, not \
         the quotient of the medians."
    ))
}

/// Names the step and the variant, if the medians and the ratio point in opposite directions there.
fn opposite_in_step(step: &StepFindings, base: &VariantStep, variant: &VariantStep) -> Option<String> {
    let (quotient, ratio) = (variant.rate? / base.rate?, variant.to_base.value()?);
    let is_opposite = (quotient - 1.0) * (ratio - 1.0) < 0.0;
    let is_seen = [quotient, ratio].iter().any(|value| (value - 1.0).abs() > NEAR);
    (is_opposite && is_seen).then(|| format!("{} ({})", step.name, variant.variant))
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Findings, ZeroRates};

    use super::*;
    use crate::fixture;

    fn first(findings: &Findings) -> String {
        sentences(Scope::of(findings, &findings.workloads[0])).remove(0)
    }

    #[test]
    fn the_summary_of_one_block_counts_steps_and_names_no_extremes() {
        insta::assert_snapshot!(first(&fixture::findings()), @r#"<b>&" against rollback: rate more than 5 % higher in 3 steps; more than 5 % lower in 1 step (0.80 in qr1000); within 5 % in 4 steps; no ratio in 2 steps."#);
    }

    #[test]
    fn with_several_blocks_the_summary_is_made_of_verdicts() {
        insta::assert_snapshot!(first(&fixture::with_blocks(3)), @r#"<b>&" is slower than rollback in 1 of 10 steps (0.80 in qr1000) and faster in 3 (1.30 in qp100 to 9.87 in l.i2); same in 1 step; undecided in 3 steps; no ratio in 2 steps. It missed the background target in qr1000, which rollback kept."#);
    }

    #[test]
    fn with_one_block_a_ratio_is_unknown_if_a_time_limit_hides_its_side() {
        let mut findings = fixture::findings();
        let step = &mut findings.workloads[0].steps[3];
        let ratio = step.variants[1].to_base.ratio.as_mut().expect("it is compared");
        let above = ratio.value > 1.0;
        ratio.bound = Some(if above { Bound::LessThan } else { Bound::MoreThan });
        assert!(
            first(&findings).contains("; unknown because of a time limit in 1 step"),
            "{}",
            first(&findings)
        );
        let ratio =
            findings.workloads[0].steps[3].variants[1].to_base.ratio.as_mut().expect("it is compared");
        ratio.bound = Some(if above { Bound::MoreThan } else { Bound::LessThan });
        assert!(!first(&findings).contains("time limit"), "{}", first(&findings));
    }

    #[test]
    fn variants_with_the_same_result_share_a_sentence() {
        let mut findings = fixture::findings();
        let alone = first(&findings);
        let mut twin = findings.variants[1].clone();
        twin.name = "twin".to_owned();
        findings.variants.push(twin);
        for step in &mut findings.workloads[0].steps {
            let of_twin = step
                .variants
                .last()
                .cloned()
                .map(|of| dbdyno_analyse::VariantStep { variant: "twin".to_owned(), ..of });
            step.variants.extend(of_twin);
        }
        let said = sentences(Scope::of(&findings, &findings.workloads[0]));
        assert_eq!(said, [alone.replace(" against", " and twin against")]);
    }

    /// Halves the second variant's background rate in these steps, and returns the first sentence.
    fn missed(mut findings: Findings, steps: &[usize]) -> String {
        for step in steps {
            let variant = &mut findings.workloads[0].steps[*step].variants[1];
            variant.judged_background_rate = variant.judged_background_rate.map(|rate| rate / 2.0);
            if variant.to_base.verdict == Some(Verdict::Faster) {
                variant.to_base.verdict = Some(Verdict::Missed);
            }
        }
        first(&findings)
    }

    #[test]
    fn steps_in_which_only_the_variant_missed_the_background_rate_are_named() {
        insta::assert_snapshot!(missed(fixture::findings(), &[5]), @r#"<b>&" against rollback: rate more than 5 % higher in 3 steps, in 1 of them with fewer background writes than planned; more than 5 % lower in 1 step (0.80 in qr1000); within 5 % in 4 steps; no ratio in 2 steps."#);
        insta::assert_snapshot!(missed(fixture::with_blocks(3), &[5, 6]), @r#"<b>&" is slower than rollback in 1 of 10 steps (0.80 in qr1000) and faster in 2 (2.50 in l.i1 to 9.87 in l.i2); same in 1 step; undecided in 3 steps; target missed in 1 step (qp100 1.30: not slower, but it missed a background rate that rollback kept); no ratio in 2 steps. It missed the background target in qr500, qr1000, which rollback kept."#);
    }

    #[test]
    fn steps_of_one_block_among_steps_of_several_are_counted() {
        let mut findings = fixture::with_blocks(3);
        let variant = &mut findings.workloads[0].steps[0].variants[1];
        variant.to_base.verdict = None;
        variant.to_base.ratio.as_mut().unwrap().inference = None;
        let text = first(&findings);
        assert!(text.contains("; one block only in 1 step; no ratio in 2 steps."), "{text}");
    }

    /// Makes the second variant answer nothing in block 2 of this step, and returns the first
    /// sentence.
    fn stalled(mut findings: Findings, step: usize) -> String {
        let variant = &mut findings.workloads[0].steps[step].variants[1];
        variant.to_base.zero_rates = ZeroRates { stalled: vec![2], base_stalled: Vec::new(), blocks: 4 };
        variant.to_base.verdict = Some(Verdict::Stalled);
        first(&findings)
    }

    #[test]
    fn a_rate_of_zero_is_said_first() {
        insta::assert_snapshot!(stalled(fixture::findings(), 5), @r#"<b>&" against rollback: stalled in 1 step (qp100: answered nothing in block 2 of 4, in which rollback answered); rate more than 5 % higher in 2 steps; more than 5 % lower in 1 step (0.80 in qr1000); within 5 % in 4 steps; no ratio in 2 steps."#);
        insta::assert_snapshot!(stalled(fixture::with_blocks(3), 5), @r#"<b>&" stalled in 1 step (qp100: answered nothing in block 2 of 4, in which rollback answered) and is slower than rollback in 1 of 10 steps (0.80 in qr1000) and faster in 2 (2.50 in l.i1 to 9.87 in l.i2); same in 1 step; undecided in 3 steps; no ratio in 2 steps. It missed the background target in qr1000, which rollback kept."#);
    }

    #[test]
    fn a_stalled_base_is_named_too() {
        let mut findings = fixture::with_blocks(3);
        for step in [4, 5] {
            let zero_rates = ZeroRates { stalled: Vec::new(), base_stalled: vec![1, 3], blocks: 4 };
            findings.workloads[0].steps[step].variants[1].to_base.zero_rates = zero_rates;
        }
        let text = first(&findings);
        let expected = ". rollback answered nothing in blocks 1 and 3 of qr100, blocks 1 and 3 of \
                        qp100: no verdict of faster or same there.";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn steps_whose_rate_the_plan_sets_are_counted_apart_with_their_response_times() {
        let mut findings = fixture::with_blocks(3);
        findings.workloads[0].steps[5].variants[1].to_base.verdict = Some(Verdict::OnSchedule);
        insta::assert_snapshot!(first(&findings), @r#"<b>&" is slower than rollback in 1 of 10 steps (0.80 in qr1000) and faster in 2 (2.50 in l.i1 to 9.87 in l.i2); same in 1 step; undecided in 3 steps; on schedule in 1 step (the plan fixes the rate; p99 response time: qp100 1.90 ms against 1.52 ms); no ratio in 2 steps. It missed the background target in qr1000, which rollback kept."#);
    }

    fn said(base: f64, variant: f64, ratio: f64) -> Option<String> {
        let findings = fixture::with_blocks(3);
        let mut workload = findings.workloads[0].clone();
        workload.steps.truncate(1);
        let [first, second] = workload.steps[0].variants.as_mut_slice() else { panic!("two variants") };
        (first.rate, second.rate) = (Some(base), Some(variant));
        second.to_base.ratio.as_mut().unwrap().value = ratio;
        opposite(&findings.run, &workload)
    }

    #[test]
    fn a_ratio_above_1_with_a_lower_median_is_explained() {
        let text = said(7_106.0, 4_139.0, 1.17).unwrap();
        assert!(text.starts_with("Medians and ratio disagree in l.i0 (<b>&\"): "), "{text}");
    }

    #[test]
    fn medians_and_ratios_that_agree_or_hardly_differ_need_no_words() {
        assert_eq!(said(7_106.0, 4_139.0, 0.6), None);
        assert_eq!(said(1_000.0, 999.0, 1.01), None);
    }
}
