//! Tests that charts have exactly the values in the findings.

use dbdyno_analyse::{Findings, Latency, Schedule};
use serde_json::{Value, json};

use super::*;
use crate::fixture;

fn charts_in(blocks: &[Block]) -> Vec<(String, Value)> {
    let of = |block: &Block| match block {
        Block::Chart(chart) => vec![(chart.title.clone(), chart.data.clone())],
        Block::Fold(_, blocks) => charts_in(blocks),
        _ => Vec::new(),
    };
    blocks.iter().flat_map(of).collect()
}

fn ratios_of(findings: &Findings) -> Vec<(String, Value)> {
    charts_in(&Charts::new(findings).of_workload(Scope::of(findings, &findings.workloads[0]), "w0"))
}

#[test]
fn a_chart_of_ratios_has_value_interval_and_verdict_of_each_step_and_none_for_the_base() {
    let findings = fixture::with_blocks(3);
    let [(title, data)] = &ratios_of(&findings)[..] else { panic!("one chart") };
    assert!(title.ends_with("Base: rollback"), "{title}");
    let step = &findings.workloads[0].steps[3];
    let ratio = step.variants[1].to_base.ratio.as_ref().unwrap();
    let interval = ratio.inference.as_ref().unwrap().interval;
    assert_eq!(data["points"][3], json!([3, 1, ratio.value, interval.low, interval.high, "faster"]));
    assert_eq!((data["rows"][3].as_str(), data["keys"][3].as_str()), (Some("l.i2"), Some("w0s3")));
    assert_eq!((&data["base"], &data["of"]), (&json!(0), &json!("rate")), "the title of the axis names them");
    let points = data["points"].as_array().unwrap();
    assert!(points.iter().all(|point| point[1] == 1));
}

#[test]
fn a_ratio_that_is_only_a_bound_says_so() {
    let mut findings = fixture::with_blocks(3);
    let ratio = findings.workloads[0].steps[3].variants[1].to_base.ratio.as_mut().unwrap();
    ratio.bound = Some(dbdyno_analyse::Bound::MoreThan);
    let [(title, data)] = &ratios_of(&findings)[..] else { panic!("one chart") };
    assert!(title.contains("; marked >, < or ≷: only a bound"), "{title}");
    assert_eq!((data["points"][3][6].as_str(), data["points"][2].get(6)), (Some(">"), None));
}

#[test]
fn each_group_has_a_chart_of_its_own() {
    let mut findings = fixture::with_blocks(2);
    for (at, step) in findings.workloads[0].steps.iter_mut().enumerate() {
        step.groups.insert("2024".to_owned(), if at < 4 { "writes" } else { "reads" }.to_owned());
    }
    let found = ratios_of(&findings);
    let rows: Vec<usize> = found.iter().map(|(_, data)| data["rows"].as_array().unwrap().len()).collect();
    assert_eq!(rows, [4, 6]);
    assert!(found[1].0.contains(", reads:"), "{}", found[1].0);
}

#[test]
fn the_overall_score_leaves_out_warm_up_and_rates_that_the_plan_sets() {
    let mut findings = fixture::with_blocks(3);
    let steps = &mut findings.workloads[0].steps;
    steps[0].is_warm_up = true;
    let headline_kind = steps[1].headline_kind.clone();
    let kept = Schedule {
        process: "constant".to_owned(),
        asked_per_second: 100.0,
        due: 1_000,
        backlog_max: 0,
        queue_growth: 0,
        lag: Latency::default(),
    };
    for run in &mut steps[1].variants[1].runs {
        let kind = run.kinds.iter_mut().find(|kind| kind.kind == headline_kind).unwrap();
        kind.schedule = Some(kept.clone());
    }
    let data = Charts::new(&findings).page_data();
    let is_scored = |at: usize| data["steps"][at]["is_scored"].as_bool().unwrap();
    assert_eq!([0, 1, 2, 3].map(is_scored), [false, false, true, true]);
}

#[test]
fn nothing_is_drawn_where_nothing_is_compared() {
    let mut findings = fixture::findings();
    findings.workloads[0].steps.iter_mut().for_each(|step| step.variants.truncate(1));
    assert!(ratios_of(&findings).is_empty());
}

#[test]
fn a_sweep_has_the_values_of_each_concurrency_level_and_a_gap_where_there_is_none() {
    let findings = fixture::with_sweep();
    let found =
        charts_in(&Charts::new(&findings).of_workload(Scope::of(&findings, &findings.workloads[0]), "w0"));
    let data = &found.iter().find(|(_, data)| data["kind"] == "sweep").unwrap().1;
    assert_eq!(data["connections"], json!([1, 2, 4, 1024]));
    assert_eq!(data["series"][0]["rate"], json!([1000, 2000, 4000, 2000]));
    assert_eq!(data["series"][0]["p95"], json!([0.5, 1, 2, 2000]));
    assert_eq!(data["series"][0]["spread"]["p95"][0], json!([0.45, 0.6]));
    assert_eq!(data["series"][1]["p95"][3], Value::Null);
}

#[test]
fn a_step_has_its_seconds_with_the_device_under_the_rate() {
    let findings = fixture::findings();
    let step = &findings.workloads[0].steps[0];
    let found = charts_in(&Charts::new(&findings).of_step(step, "w0s0").0);
    let data = &found[0].1;
    let rates: Vec<f64> = step.variants[1].runs[0].seconds.iter().map(|point| point.rate).collect();
    assert_eq!(
        data["panels"][0]["lines"][1]["y"],
        json!(rates.iter().map(|rate| figure(*rate)).collect::<Vec<_>>())
    );
    assert_eq!(data["panels"][0]["name"], step.rate_label);
    let device = &step.variants[0].runs[0].device_seconds[0];
    let mib = (device.read_kib_per_second + device.written_kib_per_second) / 1024.0;
    assert_eq!(data["panels"][2]["lines"][0]["y"][0], rounded(mib, 3));
    assert_eq!(data["panels"].as_array().unwrap().len(), 5);
}

#[test]
fn other_kinds_have_their_own_charts_and_a_short_step_says_why_it_has_none() {
    let findings = fixture::findings();
    let steps = &findings.workloads[0].steps;
    let charts = Charts::new(&findings);
    let further = |at: usize| charts.of_step(&steps[at], "w0s0").1.len();
    assert_eq!([further(0), further(2), further(4)], [0, 1, 2]);
    let [Block::Text(_, why)] = &charts.of_step(&steps[1], "w0s1").0[..] else { panic!("no chart") };
    assert!(why.starts_with("No chart:"), "{why}");
}

#[test]
fn a_large_run_draws_one_block_of_each_variant() {
    let mut findings = fixture::with_blocks(3);
    let rates = |found: &[(String, Value)]| found[0].1["panels"][0]["lines"].as_array().unwrap().len();
    let drawn = |findings: &dbdyno_analyse::Findings| {
        let step = &findings.workloads[0].steps[0];
        rates(&charts_in(&Charts::new(findings).of_step(step, "w0s0").0))
    };
    assert_eq!(drawn(&findings), 2 * 3);
    let steps = findings.workloads[0].steps.clone();
    findings.workloads[0].steps = steps.into_iter().cycle().take(200).collect();
    assert_eq!(drawn(&findings), 2);
}

#[test]
fn percentiles_and_blocks_are_those_of_the_findings() {
    let findings = fixture::with_blocks(3);
    let (charts, step) = (Charts::new(&findings), &findings.workloads[0].steps[0]);
    let data = &charts_in(&charts.of_topic(step, Topic::Latency, "x"))[0].1;
    assert_eq!(
        data["percentiles"],
        json!([50, 99, 100])
            .as_array()
            .map(|all| all.iter().map(|p| json!(p.as_f64())).collect::<Value>())
            .unwrap()
    );
    assert_eq!(data["series"][1]["ms"], json!([0.096, 1.9, 2314]));
    let data = &charts_in(&charts.of_topic(step, Topic::Statistics, "x"))[0].1;
    let rates = step.variants[0].runs.iter().map(|run| json!([run.block, figure(run.rate)]));
    assert_eq!(data["series"][0]["points"], rates.collect::<Value>());
    let one = fixture::findings();
    assert!(
        charts_in(&Charts::new(&one).of_topic(&one.workloads[0].steps[0], Topic::Statistics, "x")).is_empty()
    );
}

#[test]
fn what_an_operation_cost_is_stacked_by_who_used_it() {
    let findings = fixture::with_blocks(3);
    let step = &findings.workloads[0].steps[0];
    let data = &charts_in(&Charts::new(&findings).of_topic(step, Topic::Cost, "x"))[0].1;
    let expected = step.variants[0].runs[0].cost.client_cpu_us;
    let part =
        data["panels"][0]["parts"].as_array().unwrap().iter().find(|part| part["name"] == "client").unwrap();
    assert_eq!(part["values"][0].as_f64(), expected.map(|value| (value * 1e4).round() / 1e4));
}

#[test]
fn two_factors_have_a_line_for_each_level_of_the_second() {
    let mut findings = fixture::sized(&["rollback", "b", "c", "d"], 2, 30);
    let levels = [("on", "on"), ("on", "off"), ("off", "on"), ("off", "off")];
    for (variant, (first, second)) in findings.variants.iter_mut().zip(levels) {
        variant.factors =
            [("binlog", first), ("doublewrite", second)].map(|(f, l)| (f.to_owned(), l.to_owned())).into();
    }
    let step = &findings.workloads[0].steps[0];
    let charts = charts_in(&Charts::new(&findings).of_topic(step, Topic::Statistics, "x"));
    let data = &charts[1].1;
    let rate = |variant: usize| step.variants[variant].rate.map(figure);
    assert_eq!(data["lines"][0], json!({ "level": "on", "rates": [rate(0), rate(2)] }));
    assert_eq!(data["lines"][1], json!({ "level": "off", "rates": [rate(1), rate(3)] }));
}

#[test]
fn whole_numbers_are_short() {
    assert_eq!(
        [figure(5.0), figure(0.25), rounded(1.23456, 2)].map(|value| value.to_string()),
        ["5", "0.25", "1.23"]
    );
}

#[test]
fn queries_have_all_executions_with_the_base_as_100_percent_and_a_second_chart_cuts_outliers() {
    let mut findings = fixture::with_blocks(3);
    let times = [[2.0, 2.1, 1.9], [3.0, 2.9, 3.3]];
    for step in &mut findings.workloads[0].steps {
        step.less_is_better = true;
        for (variant, times) in step.variants.iter_mut().zip(times) {
            variant.rate = Some(times[0]);
            for (run, seconds) in variant.runs.iter_mut().zip(times) {
                run.validity = dbdyno_analyse::Validity::Valid;
                run.executions = vec![dbdyno_analyse::Execution {
                    name: "q".to_owned(),
                    client: 1,
                    repetition: 1,
                    seconds,
                    cut_off: false,
                    rows: 1,
                    answer: None,
                }];
            }
        }
    }
    let of = |findings: &Findings| -> Vec<Value> {
        let charts = ratios_of(findings).into_iter().map(|(_, data)| data);
        charts.filter(|data| data["kind"] == "queries").collect()
    };
    let [data] = &of(&findings)[..] else { panic!("no outliers: one chart") };
    let point = &data["series"][1]["points"][0];
    assert_eq!(point["median"].as_f64(), Some(150.0));
    assert_eq!(
        (&point["min"], &point["max"], &point["times"]),
        (&json!(145), &json!(165), &json!([150, 145, 165]))
    );
    findings.workloads[0].steps[3].variants[1].rate = Some(80.0);
    findings.workloads[0].steps[3].variants[1].cut_off = true;
    let found = of(&findings);
    assert_eq!((found.len(), &found[0]["cut"], &found[1]["cut"]), (2, &Value::Null, &json!(187.5)));
    assert_eq!(found[1]["series"][1]["points"][3]["sign"], json!(">"));
    for step in &mut findings.workloads[0].steps {
        step.variants.truncate(1);
    }
    assert_eq!(of(&findings)[0]["unit"], "seconds");
}
